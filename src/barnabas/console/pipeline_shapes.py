"""Defines the JSON of `/api/pipelines`. See `shapes` for the conventions."""

from __future__ import annotations

from typing import TypedDict


class Reason(TypedDict):
    """A reason why records were rejected."""

    reason: str
    records: int


class PipelineRow(TypedDict):
    """A page written by a pipeline, with the account of the records."""

    folder: str
    """The folder, as given on the command line."""
    number: int
    """The index of the folder on the command line, starting from 0."""
    page: str
    """The file name of the page, or "" if there is no page."""
    problem: str
    """Why the page or its account cannot be shown, and what to do about it. It is "" if both can be
    shown.
    """
    made_at: int | None
    """The time when the page was written."""
    batch_at: int | None
    """The time when the last batch was added to the tables, or None if the folder has no tables."""
    read: int | None
    valid: int | None
    rejected: int | None
    sent_twice: int | None
    balances: bool | None
    """Whether each record that was read has exactly one outcome."""
    reasons: list[Reason]
    """At most 20 reasons, with the most common first."""
    explore: str
    """The relative address of the interactive pages over the tables, or "" if there are no tables,
    or if the packages of these pages are not installed."""


class Pipelines(TypedDict):
    """`/api/pipelines`."""

    folders: int
    """The number of folders given on the command line."""
    pipelines: list[PipelineRow]
