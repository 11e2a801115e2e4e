"""Defines the JSON of `/api/pipelines`, in the form of `shapes`."""

from __future__ import annotations

from typing import TypedDict


class Reason(TypedDict):
    """Why records were rejected."""

    reason: str
    records: int


class PipelineRow(TypedDict):
    """A page that a pipeline has written, with the account of its records."""

    folder: str
    """As given on the command line."""
    number: int
    """The place of the folder on the command line, from 0 on."""
    page: str
    """The file name of the page; "": there is none."""
    problem: str
    """Why the page or its account cannot be shown, and what to do; "" if both can."""
    made_at: int | None
    """When the page was written."""
    batch_at: int | None
    """When the last batch was added to the tables; None: the folder has no tables."""
    read: int | None
    valid: int | None
    rejected: int | None
    sent_twice: int | None
    balances: bool | None
    """Whether each record that was read has exactly one outcome."""
    reasons: list[Reason]
    """The most common ones first, at most 20."""


class Pipelines(TypedDict):
    """`/api/pipelines`."""

    folders: int
    """How many folders were given on the command line."""
    pipelines: list[PipelineRow]
