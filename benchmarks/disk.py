"""Why a log is appended to and sent by `sendfile`: the two comparisons, side by side (ST-11).

    python -m benchmarks.disk [--megabytes N] [--directory DIR] [--json FILE]

Writes are of 4 KiB in both cases, into a file that has its size already, with one `fdatasync` per
mebibyte and one at the end: one after another, or each page once in random order. Sending goes over
a TCP connection on loopback to a process that drops what comes, from a file in the page cache, by
`sendfile` or by `read` into a buffer and `send`; CPU is the sender's.
"""

from __future__ import annotations

import os
import random
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.figures import Figure, parser_of, show

COMMAND = "python -m benchmarks.disk"
MEGABYTE, GIGABYTE = 1e6, 1e9
PAGE_BYTES = 4096
PAGES_PER_SYNC = 256
CHUNK_BYTES = 1 << 20
ROUNDS = 4  # of sending, each of the whole file

_DROP = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as peer:
    buffer = bytearray(1 << 20)
    while peer.recv_into(buffer, 0, socket.MSG_TRUNC):
        pass
"""


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--megabytes", type=int, default=128)
    parser.add_argument("--directory", type=Path, help="on the disk that is meant")
    options = parser.parse_args()
    figures = measure(options.megabytes, options.directory)
    show("the disk, and sendfile", figures, options.json, "the other way")


def measure(megabytes: int, directory: Path | None = None) -> list[Figure]:
    pages = max(PAGES_PER_SYNC, int(megabytes * MEGABYTE) // PAGE_BYTES)
    with tempfile.TemporaryDirectory(prefix="barnabas-benchmark-", dir=directory) as name:
        path = Path(name) / "data"
        path.write_bytes(bytes(PAGE_BYTES) * pages)
        shuffled = list(range(pages))
        random.Random(1).shuffle(shuffled)
        sequential = pages * PAGE_BYTES / MEGABYTE / write_pages(path, range(pages))
        scattered = pages * PAGE_BYTES / MEGABYTE / write_pages(path, shuffled)
        by_kernel = send(path, send_by_sendfile)
        by_hand = send(path, send_by_reading)
    name = "4 KiB writes, fdatasync per MiB: sequential, random"
    return [
        Figure(name, "MB/s", sequential, other=scattered, command=COMMAND),
        Figure("sendfile, read + send: rate", "MB/s", by_kernel[0], other=by_hand[0]),
        Figure("sendfile, read + send: CPU", "CPU s/GB", by_kernel[1], other=by_hand[1]),
    ]


def write_pages(path: Path, pages: range | list[int]) -> float:
    """The seconds to write each of these pages."""
    page = random.Random(2).randbytes(PAGE_BYTES)
    file = os.open(path, os.O_WRONLY)
    try:
        os.fsync(file)
        began = time.perf_counter()
        for number, at in enumerate(pages, 1):
            os.pwrite(file, page, at * PAGE_BYTES)
            if number % PAGES_PER_SYNC == 0:
                os.fdatasync(file)
        os.fdatasync(file)
        return time.perf_counter() - began
    finally:
        os.close(file)


def send(path: Path, way: Callable[[socket.socket, int, int], None]) -> tuple[float, float]:
    """Megabytes a second and CPU seconds per gigabyte, of the whole file several times."""
    with dropping_peer() as peer, path.open("rb", buffering=0) as file:
        size = path.stat().st_size
        way(peer, file.fileno(), size)
        cpu, began = time.process_time(), time.perf_counter()
        for _ in range(ROUNDS):
            way(peer, file.fileno(), size)
        cpu, seconds = time.process_time() - cpu, time.perf_counter() - began
    return ROUNDS * size / MEGABYTE / seconds, cpu / (ROUNDS * size) * GIGABYTE


def send_by_sendfile(peer: socket.socket, file: int, size: int) -> None:
    at = 0
    while at < size:
        try:
            at += os.sendfile(peer.fileno(), file, at, min(CHUNK_BYTES, size - at))
        except BlockingIOError:
            select.select([], [peer], [])


def send_by_reading(peer: socket.socket, file: int, size: int) -> None:
    buffer = memoryview(bytearray(CHUNK_BYTES))
    at = 0
    while at < size:
        unsent = buffer[: os.preadv(file, [buffer], at)]
        at += len(unsent)
        while unsent:
            try:
                unsent = unsent[peer.send(unsent) :]
            except BlockingIOError:
                select.select([], [peer], [])


@contextmanager
def dropping_peer() -> Iterator[socket.socket]:
    """A connection to a process that reads and forgets."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = str(listening.getsockname()[1])
        with subprocess.Popen([sys.executable, "-c", _DROP, port]) as process:
            try:
                peer, _ = listening.accept()
                with peer:
                    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    # As in an event loop; a blocked sendfile is woken for every packet instead.
                    peer.setblocking(False)
                    yield peer
                process.wait(10)
            finally:
                process.kill()


if __name__ == "__main__":
    main()
