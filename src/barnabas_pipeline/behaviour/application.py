"""Defines the user-behaviour pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from barnabas.counted import counted
from barnabas_collector.log_file import open_log
from barnabas_collector.registry import Registry
from barnabas_formats.user_formats import read_access_formats
from barnabas_pipeline.application import Application, Collecting, Source
from barnabas_pipeline.behaviour.definition import Behaviour
from barnabas_pipeline.behaviour.generator import write_log
from barnabas_pipeline.behaviour.report import write_page
from barnabas_pipeline.collector import Collected, Collector, Follower


def user_behaviour(formats: Path | None = None, zone: str | None = None) -> Application:
    """Return the pipeline. `formats`: a file with the user's own formats, which are tried before
    the catalogue's. `zone`: the zone of times without an offset, in formats that define no zone.

    Raises `ConfigError` or `OSError` if that file or the zone is invalid.
    """
    return Application(
        definition=Behaviour(read_access_formats(formats, zone)),
        title="barnabas user behaviour",
        topic="web-access",
        partitions=3,
        generate=write_log,
        generated="access-{seed}-{lines}.log",
        check_input=check_log,
        collecting=collecting_lines,
        write_report=write_page,
        counted="lines",
        expected="an access log in a format of `barnabas formats list` is expected",
    )


class _Lines:
    """Implements `Collecting` for a single log. From the first poll on, a `Follower` keeps the log
    open.
    """

    def __init__(self, collector: Collector, path: Path, stack: ExitStack) -> None:
        self._collector = collector
        self._path = path
        self._stack = stack
        self._follower: Follower | None = None

    def collect(self) -> str:
        return _sent_text(self._collector.collect(self._path), self._path)

    def poll(self) -> None:
        if self._follower is None:
            self._follower = self._stack.enter_context(Follower(self._collector, self._path))
        self._follower.poll()

    def sent_lines(self) -> int:
        return self._collector.registry.lines_sent()


@contextmanager
def collecting_lines(source: Source) -> Iterator[Collecting]:
    """Collect the lines of a single file."""
    registry = Registry(source.workspace.registry)
    with (
        Collector(
            source.bootstrap_servers,
            source.topic,
            registry,
            patience_s=source.patience_s,
            client_options=source.client_options,
        ) as collector,
        ExitStack() as stack,
    ):
        yield _Lines(collector, source.input, stack)


def check_log(path: Path) -> None:
    """Check that a file can be read. Raises `ConfigError` or `OSError`."""
    open_log(path).close()


def _sent_text(sent: Collected, path: Path) -> str:
    left = sent.unfinished_bytes
    waiting = (
        f"; {counted(left, 'byte')} of an unfinished line left for the next run" if left else ""
    )
    if not sent.lines:
        is_empty = path.exists() and not path.stat().st_size
        return f"nothing: {path} is empty" if is_empty else f"nothing new in {path}{waiting}"
    cut = f", {sent.cut_lines:,} of them cut to the maximum" if sent.cut_lines else ""
    return f"{counted(sent.lines, 'line')}, {sent.size_bytes / 1e6:.1f} MB{cut}{waiting}"
