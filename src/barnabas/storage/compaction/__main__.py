"""Runs the cleaner process, which compacts logs.

The cleaner reads jobs from standard input and writes events to standard output; `job` describes the
format of the lines.

The cleaner exits at the end of its input, which means that the broker has no more work or has died.
It checks its input between steps, because nothing may write to the directory of a broker that has
died. It runs at a lower priority than the broker, so that produce requests do not have to wait for
a CPU.
"""

from __future__ import annotations

import gc
import os
import select
import sys
from collections.abc import Iterator
from pathlib import Path

from barnabas.clock import Clock, SystemClock
from barnabas.errors import CorruptData
from barnabas.storage.compaction.compaction import Compaction
from barnabas.storage.compaction.job import (
    Event,
    Failed,
    Job,
    Producers,
    Progress,
    event_line,
    read_job,
)
from barnabas.storage.files import OsFiles

_NICENESS = 10


def main() -> None:
    """Run jobs until the end of the input."""
    gc.disable()  # millions of keys contain no cycles to collect
    os.nice(_NICENESS)
    clock = SystemClock()
    jobs = iter(sys.stdin.buffer.readline, b"")
    while (received := read_job(jobs)) is not None:
        for event in _events(*received, clock):
            if not isinstance(event, Progress):
                _answer(event)


def _answer(event: Event) -> None:
    """Write an event for the broker; exit without an error message if the broker has died."""
    try:
        sys.stdout.buffer.write(event_line(event))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # Without this, Python would try to flush the buffer again at exit and report an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit()


def _events(job: Job, producers: Producers, clock: Clock) -> Iterator[Event]:
    """Yield the events of a job, limiting its I/O rate as the job requires."""
    began_ms, moved_bytes = clock.monotonic_ms(), 0
    try:
        # Use relative paths, because the directory is renamed if the topic is deleted, and another
        # log may get the old name.
        os.chdir(job.directory)
        for event in Compaction(OsFiles(), Path(), job, producers).run():
            yield event
            wait_ms = 0.0
            if isinstance(event, Progress):
                moved_bytes += event.size_bytes
                due_ms = began_ms + moved_bytes * 1000 / job.bytes_per_second
                wait_ms = max(0.0, due_ms - clock.monotonic_ms())
            _exit_with_input(wait_ms)
    except CorruptData as error:
        yield Failed(str(error), is_corrupt=True)
    except OSError as error:
        yield Failed(str(error), is_corrupt=False)


def _exit_with_input(wait_ms: float) -> None:
    """Wait, but exit if the input becomes readable. The broker sends nothing during a job, so this
    means that it has died.
    """
    readable, _, _ = select.select([sys.stdin.fileno()], [], [], wait_ms / 1000)
    if readable:
        sys.exit()


if __name__ == "__main__":
    main()
