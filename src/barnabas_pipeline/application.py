"""Defines the interface through which `run.py` uses a pipeline, from its input to its page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from barnabas_pipeline.accounts import Accounts, DeadLetters
from barnabas_pipeline.page.page import PageOptions
from barnabas_pipeline.view import View
from barnabas_pipeline.work import Definition
from barnabas_pipeline.workspace import Workspace


class Collecting(Protocol):
    """Collects the lines of an input into a topic."""

    def collect(self) -> str:
        """Send all existing lines that have not been sent, and return a summary."""
        ...

    def poll(self) -> None:
        """Send the lines written since the last call; a service calls this often."""
        ...

    def sent_lines(self) -> int | None:
        """Return the total number of lines sent so far, if known."""
        ...


class Source(NamedTuple):
    """The source and the destination of the lines."""

    bootstrap_servers: str
    topic: str
    input: Path
    workspace: Workspace
    patience_s: float  # how long to wait for an acknowledgement
    client_options: Mapping[str, Any] = {}


class Report(NamedTuple):
    """The results of a run that has written a page."""

    accounts: Accounts
    summary: list[tuple[str, str]]
    """The figures in brief, as (label, text) pairs."""
    dead_letters: list[DeadLetters]
    failure: str | None = None
    """Why the run failed despite valid records; None if it did not."""


class Application(NamedTuple):
    """The parts of a run that differ between pipelines."""

    definition: Definition
    title: str
    topic: str
    partitions: int
    generate: Callable[[Path, int, int], None]
    """Generates an input, given the path, the number of lines and the seed."""
    generated: str
    """The name of the generated input, with {seed} and {lines}."""
    check_input: Callable[[Path], None]
    """Raises `ConfigError` or `OSError` if the input cannot be read."""
    collecting: Callable[[Source], AbstractContextManager[Collecting]]
    write_report: Callable[[View, Path, PageOptions], Report]
    """Writes a page about the state of the tables to this path."""
    counted: str
    """The unit of the counts: lines, or records of one or more lines."""
    expected: str
    """A text that tells the user which lines are recognised, and what to do about the rest."""

    @property
    def dead_letter_topic(self) -> str:
        return f"{self.topic}-dead-letters"
