"""The least that storing bytes can cost on this machine: what a produce row stands on.

    python -m benchmarks.bare_write FILE     started by `workloads`

A process that receives bytes into a buffer of 256 KiB and writes each full one to a file with one
`writev`; it looks at none of them. What it pays for as many bytes as a broker appended, on the same
file system and a moment later, is the kernel's price: the copy out of the socket, the copy into the
page cache, and the page that must be found for it. In a virtual machine whose host takes free pages
back that last one alone can be ten times all the rest, for every server alike.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from types import TracebackType

from benchmarks.accounting import Cpu, cpu

_BUFFER_BYTES = 256 * 1024
_SENT_AT_ONCE = bytes(1 << 20)
_TIMEOUT_SECONDS = 120.0


class BareWrite:
    """`with BareWrite(directory) as floor:` and `floor.store(size)` for what that costs."""

    def __init__(self, directory: Path) -> None:
        """`directory` has to be on the file system that is compared with."""
        self._path = directory / "bare-write.data"

    def __enter__(self) -> BareWrite:
        command = [sys.executable, "-m", "benchmarks.bare_write", str(self._path)]
        checkout = Path(__file__).parents[1]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=checkout)
        assert self._process.stdout is not None
        self._port = int(self._process.stdout.readline())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._path.unlink(missing_ok=True)

    def store(self, size_bytes: int) -> Cpu:
        """What the process uses for so many bytes."""
        with socket.create_connection(("127.0.0.1", self._port), _TIMEOUT_SECONDS) as client:
            client.recv(1)  # the file is empty again
            before = cpu(self._process.pid)
            for left in range(size_bytes, 0, -len(_SENT_AT_ONCE)):
                client.sendall(_SENT_AT_ONCE[:left])
            client.shutdown(socket.SHUT_WR)
            client.recv(1)  # all of it is written
            return cpu(self._process.pid).since(before)


def serve(path: Path) -> None:
    """One client after the other, until it is killed."""
    buffer = memoryview(bytearray(_BUFFER_BYTES))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(listening.getsockname()[1], flush=True)
        while True:
            client, _ = listening.accept()
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with client:
                client.send(b"1")
                while received := client.recv_into(buffer, 0, socket.MSG_WAITALL):
                    if os.writev(file, [buffer[:received]]) != received:
                        raise OSError("a short write: the disk is full")
                client.send(b"2")
            os.close(file)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
