"""Runs a child process that recovers some of a directory's logs (`recovery_children`).

    in      one line of JSON for each log, then an empty line that ends the list
    out     `read <bytes>` periodically, and `done <line number>` for each log

A recovered log's files are complete, so the broker opens it as after a clean stop. A log that
cannot be recovered is left to the broker, which will hit the same problem. The process exits as
soon as its input ends: the broker has died, and another one may use the directory.
"""

from __future__ import annotations

import json
import select
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from barnabas.clock import SystemClock
from barnabas.config import LogConfig
from barnabas.errors import CorruptData
from barnabas.storage.epochs import LeaderEpochs
from barnabas.storage.files import Files, OsFiles
from barnabas.storage.loading import Loading, Start
from barnabas.storage.recovery import open_log
from barnabas.types import TopicPartition


def job_line(path: Path, name: TopicPartition, config: LogConfig, start: Start) -> bytes:
    """Return the line for one log."""
    topic_id = None if start.topic_id is None else start.topic_id.hex()
    known = start._replace(loading=None, topic_id=None)._asdict()
    job = [str(path), name.topic, name.partition, config._asdict(), known, topic_id]
    return json.dumps(job).encode() + b"\n"


def recover(
    files: Files, path: Path, name: TopicPartition, config: LogConfig, start: Start
) -> None:
    """Recover a log, and write the result to its files. Raises OSError or CorruptData."""
    log = open_log(files, path, name, config, start)
    try:
        # All entries must be in the files, because the broker trusts them as after a clean stop.
        log.segments[-1].write_out()
        unsaved = log.epochs.take_unsaved()
        if unsaved is not None and LeaderEpochs(files, path).entries != log.epochs.entries:
            # Sync this file, because the broker treats it as durable.
            log.epochs.save(unsaved)
            files.sync(path)
    finally:
        log.release()


class _Watching(Loading):
    """Reports the bytes read, and exits when the input ends."""

    def opening(self, topic_partition: TopicPartition) -> None:
        _exit_with_input()

    def read(self, size_bytes: int) -> None:
        _exit_with_input()
        _answer(f"read {size_bytes}")


def main() -> None:
    """Recover the logs that the input lists."""
    # the broker handles Ctrl-C, and ends this process
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    watching = _Watching(SystemClock())
    jobs = [json.loads(line) for line in _lines()]
    for number, job in enumerate(jobs):
        if _is_recovered(job, watching):
            _answer(f"done {number}")


def _lines() -> Iterable[bytes]:
    while (line := sys.stdin.buffer.readline()).strip():
        yield line


def _is_recovered(job: list[Any], watching: Loading) -> bool:
    path, topic, partition, config, known, topic_id = job
    start = Start(**known)._replace(
        loading=watching, topic_id=None if topic_id is None else bytes.fromhex(topic_id)
    )
    name = TopicPartition(topic, partition)
    try:
        recover(OsFiles(), Path(path), name, LogConfig(**config), start)
    except (OSError, CorruptData):
        return False
    return True


def _answer(line: str) -> None:
    try:
        sys.stdout.buffer.write(line.encode() + b"\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        sys.exit()


def _exit_with_input() -> None:
    """Exit if the input is readable: it has ended, because the broker sends nothing more."""
    if select.select([sys.stdin.fileno()], [], [], 0)[0]:
        sys.exit()


if __name__ == "__main__":
    main()
