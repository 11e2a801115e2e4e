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
        """Send all lines that exist but have not been sent yet, and return a summary."""
        ...

    def poll(self) -> None:
        """Send the lines written since the last call; a service calls this often."""
        ...

    def sent_lines(self) -> int | None:
        """Return the total number of lines sent so far, if known."""
        ...


class Source(NamedTuple):
    """Describes where the lines come from and where they are sent."""

    bootstrap_servers: str
    topic: str
    input: Path
    workspace: Workspace
    patience_s: float  # how long to wait for an acknowledgement
    client_options: Mapping[str, Any] = {}


class Report(NamedTuple):
    """Represents the results of a run that has written a page."""

    accounts: Accounts
    summary: list[tuple[str, str]]
    """The main figures, as (label, text) pairs."""
    dead_letters: list[DeadLetters]
    failure: str | None = None
    """The reason why the run failed even though it read valid records, or None if it succeeded."""
    repeated: int = 0
    """The number of records that repeat another record although the collector sent each record only
    once. The accounts count them as sent twice."""


class Application(NamedTuple):
    """Defines the parts of a run that differ between pipelines."""

    definition: Definition
    title: str
    topic: str
    partitions: int
    generate: Callable[[Path, int, int], None]
    """Generates an input, given a path, a number of lines and a seed."""
    generated: str
    """The name of the generated input, with {seed} and {lines}."""
    check_input: Callable[[Path], None]
    """Raises `ConfigError` or `OSError` if the input cannot be read."""
    collecting: Callable[[Source], AbstractContextManager[Collecting]]
    write_report: Callable[[View, Path, PageOptions], Report]
    """Writes a page about the state of the tables to this path."""
    counted: str
    """The unit in which input is counted: lines, or records of one or more lines."""
    expected: str
    """A text that tells the user which lines are recognised, and what to do about other lines."""

    @property
    def dead_letter_topic(self) -> str:
        return f"{self.topic}-dead-letters"
