"""Recovers the logs in a directory with several processes (`num.recovery.threads.per.data.dir`).

A scan after a crash runs Python code for every batch, so a single process can use only one core.
Child processes therefore recover the largest logs of a directory before this process opens any log.
A log that was recovered by a child is opened as after a clean shutdown. If a child fails for any
reason, this process recovers the logs itself. If there is little data, starting a process would
take longer than the scan.
"""

from __future__ import annotations

import logging
import os
import selectors
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from barnabas.config import LogConfig
from barnabas.storage.files import Files, OsFiles
from barnabas.storage.loading import Start
from barnabas.storage.recovery_child import job_line
from barnabas.storage.segment import LOG_SUFFIX, base_offset_in
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from subprocess import Popen

    from barnabas.storage.loading import Loading

_log = logging.getLogger(__name__)

_MODULE = "barnabas.storage.recovery_child"
LEAST_BYTES = 64_000_000
_LOOK_EVERY_S = 0.2
_PIPE_BYTES = 64 * 1024


class Unscanned(NamedTuple):
    """Describes a log that has to be recovered."""

    name: TopicPartition
    path: Path
    start: Start
    size_bytes: int
    """The approximate size of the part of the log above the recovery point."""


def are_worth_it(processes: int, files: Files, logs: Sequence[Unscanned]) -> bool:
    """Return whether child processes can recover these logs faster than this process can.

    Child processes can access only the real disk of the machine.
    """
    if processes < 2 or type(files) is not OsFiles:
        return False
    return sum(each.size_bytes for each in logs) >= LEAST_BYTES


def recover_all(
    processes: int, config: LogConfig, logs: Sequence[Unscanned], loading: Loading | None
) -> set[TopicPartition]:
    """Recover these logs in several processes. Returns the logs that were recovered. Raises
    LoadingStopped.
    """
    children: list[_Child] = []
    try:
        for share in _shares(logs, min(processes, max(2, os.cpu_count() or 1))):
            try:
                children.append(_Child(share, config))
            except OSError as error:
                _log.warning(
                    "cannot start a recovery process: %s; the broker's process recovers the logs "
                    "instead",
                    error,
                )
        _await(children, loading)
    finally:
        for child in children:
            child.end()
    return {name for child in children for name in child.recovered}


def unscanned_bytes(files: Files, path: Path, recovery_point: int) -> int:
    """Estimate how many bytes of a log have to be scanned. Raises OSError."""
    found = sorted(
        (base, entry.size_bytes)
        for entry in files.list(path)
        if entry.name.endswith(LOG_SUFFIX) and (base := base_offset_in(entry.name)) is not None
    )
    last_below = max((base for base, _ in found if base <= recovery_point), default=0)
    return sum(size for base, size in found if base >= last_below)


def _shares(logs: Sequence[Unscanned], count: int) -> list[list[Unscanned]]:
    """Divide the logs into `count` shares of similar size."""
    shares: list[list[Unscanned]] = [[] for _ in range(count)]
    sizes = [0] * count
    for each in sorted(logs, key=lambda log: log.size_bytes, reverse=True):
        # Starting with the largest log, give each log to the process that has the least to do so
        # far.
        smallest = sizes.index(min(sizes))
        shares[smallest].append(each)
        sizes[smallest] += each.size_bytes
    return [share for share in shares if share]


def _await(children: Sequence[_Child], loading: Loading | None) -> None:
    """Wait until all child processes have exited."""
    with selectors.DefaultSelector() as selector:
        for child in children:
            selector.register(child.descriptor, selectors.EVENT_READ, child)
        while selector.get_map():
            for key, _ in selector.select(_LOOK_EVERY_S):
                child = key.data
                size_bytes = child.hear()
                if size_bytes is None:
                    selector.unregister(key.fd)
                elif loading is not None:
                    loading.read(size_bytes)
            if loading is not None:
                loading.read(0)  # raises LoadingStopped if loading was stopped


class _Child:
    """Represents a child process and the logs assigned to it."""

    def __init__(self, share: Sequence[Unscanned], config: LogConfig) -> None:
        """Start the process. Raises OSError."""
        # not imported at the top, because it is rarely needed
        from barnabas.storage.python_child import start_child

        self._share = share
        self._rest = b""
        self.recovered: list[TopicPartition] = []
        self._process: Popen[bytes] = start_child(_MODULE)
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        self._hang_up: Callable[[], None] = stdin.close
        self._close = stdout.close
        self.descriptor = stdout.fileno()
        try:
            for each in share:
                stdin.write(job_line(each.path, each.name, config, each.start))
            stdin.write(b"\n")
            stdin.flush()
        except OSError:
            self.end()
            raise

    def hear(self) -> int | None:
        """Return how many bytes it has read since the last call, or None if it has exited."""
        found = os.read(self.descriptor, _PIPE_BYTES)
        # The child has exited. This process recovers the logs for which the child has not sent a
        # result.
        if not found:
            return None
        *lines, self._rest = (self._rest + found).split(b"\n")
        size_bytes = 0
        for line in lines:
            word, _, number = line.partition(b" ")
            if word == b"done":
                self.recovered.append(self._share[int(number)].name)
            else:
                size_bytes += int(number)
        return size_bytes

    def end(self) -> None:
        """Kill the process and wait until it has exited."""
        # It is safe to kill the child at any time, because it never leaves files that a second
        # recovery could misinterpret.
        self._process.kill()
        self._process.wait()
        with suppress(OSError):  # it may have unread input
            self._hang_up()
        self._close()
