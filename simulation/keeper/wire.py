"""A client's end of a connection to a ZooKeeper server: whole frames in both directions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from struct import Struct
from typing import cast

_LENGTH = Struct(">i")
_BUFFER_BYTES = 1 << 16


class Wire(asyncio.BufferedProtocol):
    """Cuts what arrives into frames."""

    def __init__(self, on_frame: Callable[[bytes], None]) -> None:
        self._on_frame = on_frame
        self._buffer = bytearray(_BUFFER_BYTES)
        self._received = bytearray()
        self.transport: asyncio.Transport | None = None
        self.lost = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set()

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._received += self._buffer[:nbytes]
        while len(self._received) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._received)[0]
            if len(self._received) < end:
                break
            frame = bytes(self._received[_LENGTH.size : end])
            del self._received[:end]
            self._on_frame(frame)

    def send(self, body: bytes) -> None:
        assert self.transport is not None
        self.transport.write(_LENGTH.pack(len(body)) + body)

    def drop(self) -> None:
        if self.transport is not None:
            self.transport.abort()
