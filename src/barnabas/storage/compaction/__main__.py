"""Runs the process that compacts logs.

It reads jobs from standard input and writes events to standard output (`job` describes the lines).

It exits at the end of its input: the broker has nothing more to clean, or has died. It checks its
input between steps, because no process may write to the directory of a dead broker. It runs at a
lower priority than the broker, so that produce requests do not wait for a CPU.
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
    """Process jobs until the input ends."""
    gc.disable()  # there are millions of keys, but no cycles to collect
    os.nice(_NICENESS)
    clock = SystemClock()
    jobs = iter(sys.stdin.buffer.readline, b"")
    while (received := read_job(jobs)) is not None:
        for event in _events(*received, clock):
            if not isinstance(event, Progress):
                _answer(event)


def _answer(event: Event) -> None:
    """Write an event for the broker, or exit quietly if the broker has died."""
    try:
        sys.stdout.buffer.write(event_line(event))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # Otherwise, Python would flush the buffer again at exit and report an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit()


def _events(job: Job, producers: Producers, clock: Clock) -> Iterator[Event]:
    """Yield the events of one job, throttled as the job requires."""
    began_ms, moved_bytes = clock.monotonic_ms(), 0
    try:
        # Use relative paths: deleting a topic renames its directory, and another log may take the
        # name.
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
    """Wait, but exit if input arrives: the broker sends nothing during a job, so it has died."""
    readable, _, _ = select.select([sys.stdin.fileno()], [], [], wait_ms / 1000)
    if readable:
        sys.exit()


if __name__ == "__main__":
    main()
