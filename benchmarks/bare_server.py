"""The least that a server on one Python event loop can do: what Barnabas is measured against.

    python -m benchmarks.bare_server produce FILE BATCH_AT TRAILER     started by `pipelined`
    python -m benchmarks.bare_server fetch FILE SIZE

`produce` reads length-prefixed frames, finds the batch in each (`BATCH_AT` bytes from the frame's
start, `TRAILER` bytes before its end), checks its CRC, appends it to FILE and answers with a fixed
response. It does what pays for a broker and nothing else: a receive buffer of 256 KiB, one `writev`
and one `send` per wake-up. No API, topic, offset, index or error is known to it.

`fetch` answers every request with SIZE bytes of FILE by a loop around `sendfile`.

The port is the first line on standard output. One connection at a time; ends with its last client.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import struct
import sys
from pathlib import Path

from barnabas.net.loop import new_event_loop
from barnabas.records.crc32c import crc32c

_LENGTH = struct.Struct(">i")
_CRC = struct.Struct(">I")
_CRC_AT, _CHECKED_FROM = 17, 21  # in a batch of magic 2
_BUFFER_BYTES = 256 * 1024
_IOV_MAX = 1024
_FILE_LIMIT_BYTES = 1 << 30
_RESPONSE = _LENGTH.pack(12) + bytes(12)


class BareProduce(asyncio.BufferedProtocol):
    """One connection: frames in, batches to the file, answers out."""

    def __init__(self, file: int, batch_at: int, trailer: int, done: asyncio.Event) -> None:
        self._file = file
        self._file_bytes = 0
        self._batch_at = batch_at
        self._trailer = trailer
        self._done = done
        self._buffer = bytearray(_BUFFER_BYTES)
        self._end = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self._buffer)[self._end :]

    def buffer_updated(self, nbytes: int) -> None:
        self._end += nbytes
        batches: list[memoryview] = []
        view = memoryview(self._buffer)
        at, end = 0, self._end
        batch_at, trailer = self._batch_at, self._trailer
        while end - at >= 4:
            (size,) = _LENGTH.unpack_from(view, at)
            frame_end = at + 4 + size
            if frame_end > end:
                break
            batch = view[at + batch_at : frame_end - trailer]
            if crc32c(batch[_CHECKED_FROM:]) != _CRC.unpack_from(batch, _CRC_AT)[0]:
                raise ValueError("a batch fails its checksum")
            batches.append(batch)
            at = frame_end
        if batches:
            self._append(batches)
            self._transport.write(_RESPONSE * len(batches))  # type: ignore[attr-defined]
        self._keep_rest(at)

    def _append(self, batches: list[memoryview]) -> None:
        written = 0
        for start in range(0, len(batches), _IOV_MAX):
            written += os.writev(self._file, batches[start : start + _IOV_MAX])
        if written != sum(map(len, batches)):
            raise OSError("a short write: the disk is full")
        self._file_bytes += written
        if self._file_bytes > _FILE_LIMIT_BYTES:
            os.ftruncate(self._file, 0)  # it is opened for appending
            self._file_bytes = 0

    def _keep_rest(self, at: int) -> None:
        """Move the torn frame at the end to the front of a buffer that has room for it."""
        held = self._end - at
        if at:
            self._buffer[:held] = self._buffer[at : self._end]
            self._end = held
        elif held == len(self._buffer):
            # No view of it is alive: a batch is only cut out of a frame that is whole.
            self._buffer = self._buffer + bytes(held)

    def connection_lost(self, exc: Exception | None) -> None:
        self._done.set()


async def serve_produce(path: Path, batch_at: int, trailer: int) -> None:
    done = asyncio.Event()
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    try:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: BareProduce(file, batch_at, trailer, done), "127.0.0.1", 0
        )
        print(server.sockets[0].getsockname()[1], flush=True)
        await done.wait()
        server.close()
    finally:
        os.close(file)


def serve_fetch(path: Path, size: int) -> None:
    """Request in, header and file out, for one client.

    Not blocking: the kernel wakes a blocked `sendfile` for every packet that has room, but says
    "writable" only when a third of the socket's buffer is free. Without TCP_NODELAY (asyncio sets
    it) an answer of this size costs twice as much.
    """
    with socket.create_server(("127.0.0.1", 0)) as listening, path.open("rb") as file:
        print(listening.getsockname()[1], flush=True)
        client, _ = listening.accept()
        client.setblocking(False)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with client:
            limit = os.fstat(file.fileno()).st_size - size
            position = 0
            unread = b""
            while received := _receive(client):
                unread += received
                while len(unread) >= 4 and len(unread) >= 4 + _LENGTH.unpack_from(unread)[0]:
                    unread = unread[4 + _LENGTH.unpack_from(unread)[0] :]
                    _send_slice(client, file.fileno(), position, size)
                    position = position + size if position + size <= limit else 0


def _receive(client: socket.socket) -> bytes:
    while True:
        try:
            return client.recv(_BUFFER_BYTES)
        except BlockingIOError:
            select.select([client], [], [])


def _send_slice(client: socket.socket, file: int, position: int, size: int) -> None:
    head, end = _LENGTH.pack(size), position + size
    while True:
        try:
            if head:
                client.send(head, socket.MSG_MORE)
                head = b""
            position += os.sendfile(client.fileno(), file, position, end - position)
            if position == end:
                return
        except BlockingIOError:
            select.select([], [client], [])


def main(words: list[str]) -> None:
    kind, path, *numbers = words
    if kind == "produce":
        batch_at, trailer = map(int, numbers)
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(serve_produce(Path(path), batch_at, trailer))
    else:
        serve_fetch(Path(path), int(numbers[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
