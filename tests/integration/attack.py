"""Many connections that send hostile frames at once, and one beside them that behaves."""

from __future__ import annotations

import asyncio
import struct
import threading
import time
from collections import Counter

from barnabas.protocol.api import API_VERSIONS, FETCH, PRODUCE
from barnabas.protocol.frame import encode_request
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from tests.integration.hostile import Hostile
from tests.kit.broker.fetches import fetch_request
from tests.kit.broker.produces import produce_request
from tests.kit.raw_client import RawClient, batch

_LENGTH = struct.Struct(">i")
_SENTINEL = 0x5E171E15
_BURST = 12
_ANSWER_SECONDS = 0.5


class Attack:
    """Sends bursts over ever new connections until enough frames have been dealt with.

    A frame counts when it was answered, or was the one at which its connection was closed: those
    behind it in the burst were never looked at. Requests that are not answered (acks=0) count when
    the harmless request at the end of their burst is answered.
    """

    def __init__(self, port: int, source: Hostile) -> None:
        self.port = port
        self.source = source
        self.frames = 0
        self.outcomes: Counter[str] = Counter()
        correlated = encode_request(API_VERSIONS, 0, _SENTINEL, "end", ApiVersionsRequest())
        self._end = b"".join(map(bytes, correlated))  # type: ignore[arg-type]

    def run(self, frames: int, connections: int = 24) -> None:
        target = self.frames + frames
        asyncio.run(self._run(target, connections))

    async def _run(self, target: int, connections: int) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(connections):
                group.create_task(self._attack(target))

    async def _attack(self, target: int) -> None:
        while self.frames < target:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            try:
                while self.frames < target and await self._burst(reader, writer):
                    pass
            finally:
                writer.transport.abort()

    async def _burst(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection may be used again."""
        frames = [self.source.frame() for _ in range(_BURST)]
        sent = b"".join(_LENGTH.pack(len(frame)) + frame for frame in frames)
        try:
            writer.write(sent + self._end)
            async with asyncio.timeout(_ANSWER_SECONDS):
                answered = 0
                while await self._answer(reader) != _SENTINEL:
                    answered += 1
        except TimeoutError:
            self.frames += min(answered + 1, _BURST)
            self.outcomes["waits"] += 1  # a long poll: the burst's rest stands behind it
            return False
        except (asyncio.IncompleteReadError, ConnectionError):
            self.frames += min(answered + 1, _BURST)
            self.outcomes["answered"] += answered
            self.outcomes["closed"] += 1
            return False
        self.frames += _BURST
        self.outcomes["answered"] += answered
        self.outcomes["unanswered"] += _BURST - answered
        return True

    async def _answer(self, reader: asyncio.StreamReader) -> int:
        """The next answer's correlation id; its length must be possible."""
        (size,) = _LENGTH.unpack(await reader.readexactly(4))
        assert 4 <= size <= 64 << 20, f"an answer of {size} bytes"
        body = await reader.readexactly(size)
        (correlation_id,) = _LENGTH.unpack_from(body)
        return int(correlation_id)


class Bystander:
    """A client that behaves: produces and fetches all the time, and notes how long each takes."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self._client = RawClient(bootstrap_servers, timeout_s=60)
        self._topic = topic
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.answers = 0
        self.slowest_seconds = 0.0
        self.failure: BaseException | None = None

    def __enter__(self) -> Bystander:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join(60)
        self._client.socket.close()

    def _run(self) -> None:
        try:
            while not self._stopped.wait(0.01):
                began = time.monotonic()
                self._exchange()
                self.slowest_seconds = max(self.slowest_seconds, time.monotonic() - began)
                self.answers += 1
        except BaseException as error:  # for the test, which is another thread
            self.failure = error

    def _exchange(self) -> None:
        sent = produce_request(self._topic, {0: batch(b"all is well")})
        stored = self._client.call(PRODUCE, 9, sent).responses[0].partition_responses[0]
        assert stored.error_code == 0, stored
        wanted = fetch_request(self._topic, stored.base_offset)
        found = self._client.call(FETCH, 11, wanted).responses[0].partitions[0]
        assert (found.error_code, found.high_watermark) == (0, stored.base_offset + 1), found
        assert found.records
