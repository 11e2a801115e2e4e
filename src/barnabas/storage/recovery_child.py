"""Runs a child process that recovers some of the logs in a directory (`recovery_children`).

    in      one line of JSON for each log, then an empty line that ends the list
    out     `read <bytes>` periodically, and `done <line number>` for each log

When a log has been recovered, its files are complete, so the broker can open it as after a clean
shutdown. If a log cannot be recovered, the broker tries to recover it itself and gets the same
error. The process exits as soon as its input ends, because the broker has then died and another
broker may use the directory.
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
    """Return the input line that describes one log."""
    topic_id = None if start.topic_id is None else start.topic_id.hex()
    known = start._replace(loading=None, topic_id=None)._asdict()
    job = [str(path), name.topic, name.partition, config._asdict(), known, topic_id]
    return json.dumps(job).encode() + b"\n"


def recover(
    files: Files, path: Path, name: TopicPartition, config: LogConfig, start: Start
) -> None:
    """Recover a log and write the result to the log's files. Raises OSError or CorruptData."""
    log = open_log(files, path, name, config, start)
    try:
        # All index entries must be in the files, because the broker trusts the files as after a
        # clean shutdown.
        log.segments[-1].write_out()
        unsaved = log.epochs.take_unsaved()
        if unsaved is not None and LeaderEpochs(files, path).entries != log.epochs.entries:
            # The broker assumes that this file is durable, so sync it.
            log.epochs.save(unsaved)
            files.sync(path)
    finally:
        log.release()


class _Watching(Loading):
    """Reports how many bytes were read, and exits when the input ends."""

    def opening(self, topic_partition: TopicPartition) -> None:
        _exit_with_input()

    def read(self, size_bytes: int) -> None:
        _exit_with_input()
        _answer(f"read {size_bytes}")


def main() -> None:
    """Recover the logs that are listed in the input."""
    # the broker handles Ctrl-C and then ends this process
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
    """Exit if the input is readable. The broker sends nothing more, so this means that the input
    has ended.
    """
    if select.select([sys.stdin.fileno()], [], [], 0)[0]:
        sys.exit()


if __name__ == "__main__":
    main()
