"""Collects log files into the pipeline's topic, using the collector of `barnabas collect`."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from pathlib import Path

from barnabas.client.loop_thread import LoopThread
from barnabas.counted import counted
from barnabas.errors import ConfigError
from barnabas_collector.log_paths import LogPaths
from barnabas_collector.shipment import Shipment, Shipped
from barnabas_collector.shipper import ship
from barnabas_formats.continuation import RecordStart
from barnabas_pipeline.application import Source

_STOP_S = 30.0


class Files:
    """Implements `Collecting` for a file, or for all files in a directory."""

    def __init__(self, source: Source) -> None:
        self._paths = [str(source.input)]
        # Include the workspace in the name, because two workspaces must not share positions.
        name = f"pipeline-{source.workspace.directory.resolve()}"
        rule = RecordStart()
        self._shipment = Shipment(
            source.bootstrap_servers,
            source.topic,
            name,
            socket.gethostname(),
            is_start=rule,
            client_options=source.client_options,
        )
        self._stopping = asyncio.Event()
        self._service: tuple[LoopThread, Future[Shipped]] | None = None

    def collect(self) -> str:
        stopping = asyncio.Event()
        shipped = asyncio.run(ship(self._shipment, LogPaths(self._paths), stopping, once=True))
        if not shipped.lines:
            return f"nothing new in {self._paths[0]}"
        cut = f", {shipped.cut_lines:,} of them cut to the maximum" if shipped.cut_lines else ""
        size = f"{shipped.size_bytes / 1e6:.1f} MB"
        return f"{counted(shipped.lines, 'record')}, with their stack traces, {size}{cut}"

    def poll(self) -> None:
        """Start the collector's thread if it is not running. If the collector has failed, raise its
        error.
        """
        if self._service is None:
            work = ship(self._shipment, LogPaths(self._paths), self._stopping)
            thread = LoopThread("collector")
            self._service = thread, thread.submit(work)
        _, shipping = self._service
        if shipping.done():
            shipping.result()

    def sent_lines(self) -> None:
        """Return None. The number of lines is not known, because a record may consist of several
        lines.
        """
        return

    def close(self) -> None:
        if self._service is not None:
            thread, shipping = self._service
            thread.call_soon(self._stopping.set)
            wait([shipping], _STOP_S)  # `poll` raises its error
            thread.stop()


@contextmanager
def collecting(source: Source) -> Iterator[Files]:
    files = Files(source)
    try:
        yield files
    finally:
        files.close()


def check_input(path: Path) -> None:
    """Raise `ConfigError` if the path is not an existing file or directory and no file matches it
    as a pattern.
    """
    if not path.is_dir() and not any(each.exists() for each in LogPaths([str(path)]).paths()):
        raise ConfigError(f"{path}: there is no such file or directory")
