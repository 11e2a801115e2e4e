"""Very many connections from one process: requests made beforehand, answers decoded if wanted.

A client of a few kilobytes, so that ten thousand of them measure the broker and not themselves.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from typing import cast

from barnabas.protocol.api import Api
from barnabas.protocol.codec import M
from barnabas.protocol.frame import decode_response, encode_request
from barnabas.protocol.message import Message
from barnabas.types import FileSlice

_LENGTH = struct.Struct(">i")


def frame_of(api: Api, version: int, request: Message) -> bytes:
    """The request with its length in front, as it goes over the wire."""
    parts = encode_request(api, version, 1, "light", request)
    return b"".join(part for part in parts if not isinstance(part, FileSlice))


class LightClient(asyncio.Protocol):
    """One connection; answers come in the order of the requests."""

    __slots__ = ("_buffer", "_transport", "_waiting")

    def __init__(self) -> None:
        self._buffer = b""
        self._waiting: deque[asyncio.Future[bytes]] = deque()
        self._transport: asyncio.Transport

    @classmethod
    async def connect(cls, port: int) -> LightClient:
        loop = asyncio.get_running_loop()
        _, protocol = await loop.create_connection(cls, "127.0.0.1", port)
        return protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        data = self._buffer + data
        at = 0
        while len(data) - at >= 4:
            end = at + 4 + _LENGTH.unpack_from(data, at)[0]
            if end > len(data):
                break
            answered = self._waiting.popleft()
            if not answered.done():
                answered.set_result(data[at + 4 : end])
            at = end
        self._buffer = data[at:]

    def connection_lost(self, error: Exception | None) -> None:
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_exception(ConnectionError(f"the broker hung up: {error}"))

    def send(self, frame: bytes) -> asyncio.Future[bytes]:
        """The answer's bytes, without their length."""
        answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting.append(answered)
        self._transport.write(frame)
        return answered

    async def call(self, api: Api, version: int, request: Message, answer: type[M]) -> M:
        data = await self.send(frame_of(api, version, request))
        _, response = decode_response(api, version, memoryview(data))
        assert isinstance(response, answer)
        return response

    def close(self) -> None:
        self._transport.close()
