"""What `run.py` runs: one of the pipelines that come with Barnabas, from its input to its page."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple, Protocol

from barnabas.pipeline.accounts import Accounts
from barnabas.pipeline.page.page import PageOptions
from barnabas.pipeline.step import Definition
from barnabas.pipeline.workspace import Workspace


class Collecting(Protocol):
    """Brings the lines of an input into a topic."""

    def collect(self) -> str:
        """Send what there is that was not sent before; says what it was."""
        ...

    def poll(self) -> None:
        """For a service, often: send what was written since, or see whether somebody does."""
        ...

    def sent_lines(self) -> int | None:
        """The lines that were ever sent, if that is known."""
        ...


class Source(NamedTuple):
    """Where lines are from and where they go."""

    bootstrap_servers: str
    topic: str
    input: Path
    workspace: Workspace
    patience_s: float  # without an acknowledgement


class Report(NamedTuple):
    """What a run says of the page that it has written."""

    accounts: Accounts
    summary: list[tuple[str, str]]
    """The figures in a few words: labels and texts."""


class Application(NamedTuple):
    """Everything that the pipelines differ in."""

    definition: Definition
    title: str
    topic: str
    partitions: int
    generate: Callable[[Path, int, int], None]
    """Writes an input: to this path, of so many lines, from this seed."""
    generated: str
    """Its name, with {seed} and {lines}."""
    check_input: Callable[[Path], None]
    """Raises `ConfigError` or `OSError` where it cannot be read."""
    collecting: Callable[[Source], AbstractContextManager[Collecting]]
    write_report: Callable[[Path, Path, PageOptions], Report]
    """From the tables in the one directory to a page at the other path."""

    @property
    def dead_letter_topic(self) -> str:
        return f"{self.topic}-dead-letters"
