"""Clients of kinds other than ours, on raw connections: one does not read its answers, another
sends requests without waiting for answers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

from barnabas.errors import NONE, NotController, TopicAlreadyExists, UnknownTopicOrPartition
from barnabas.protocol.api import CREATE_TOPICS, DELETE_TOPICS, HEARTBEAT, METADATA, Api
from barnabas.protocol.frame import decode_response, encode_request
from barnabas.protocol.message import Message
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from simulation.options import Fault
from simulation.whole.brokers import PORT
from simulation.whole.environment import MEMBERS

if TYPE_CHECKING:
    from simulation.whole.brokers import Brokers, MachineRoom
    from simulation.whole.history import History

_UNREAD = 200  # requests for metadata
_WAVES = 10
_MOST_HELD_BYTES = 256 * 1024
"""The bytes that one wake-up of a connection may have written, plus the answers that one request
adds."""
_METADATA, _CREATE, _DELETE, _HEARTBEAT = 4, 2, 3, 1  # versions without tagged fields
_TIMEOUT_MS = 4_000
_PATIENCE_S = 20.0
_BEAT_EVERY_S = 0.1

_BUFFER_BYTES = 64 * 1024


class Guests:
    """All such clients.

    They share a process on a separate machine, and each connects to one broker.
    """

    def __init__(self, room: MachineRoom, brokers: Brokers, history: History) -> None:
        self._loop = room.loop
        self._brokers = brokers
        self._history = history
        self._life = room.network.process("guest")
        self._numbers = count()

    async def do_not_read(self, fault: Fault) -> None:
        """Ask for metadata many times without reading anything, and leave after a while."""
        await self._life.call(self._do_not_read(fault))

    async def pipeline(self, fault: Fault) -> None:
        """Create a topic, delete it and recreate it without waiting, and check the answers."""
        await self._life.call(self._pipeline(fault))

    async def beat(self, broker_ids: Sequence[int], for_ms: int) -> int:
        """Send heartbeats to each of these brokers; returns how long the slowest answer took."""
        beats = [self._life.call(self._beat(each, for_ms)) for each in broker_ids]
        return max(await asyncio.gather(*beats))

    async def _beat(self, broker_id: int, for_ms: int) -> int:
        line = await self._connect(broker_id)
        if line is None:
            return 0
        slowest_us, until_us = 0, self._loop.now_us + 1000 * for_ms
        request = HeartbeatRequest(group_id=MEMBERS, generation_id=0, member_id="guest")
        while self._loop.now_us < until_us:
            sent_us = self._loop.now_us
            line.send(HEARTBEAT, _HEARTBEAT, request)
            answered = await line.codes(1)
            slowest_us = max(slowest_us, self._loop.now_us - sent_us)
            if not answered:
                break
            await asyncio.sleep(_BEAT_EVERY_S)
        line.transport.abort()
        return slowest_us // 1000

    async def _do_not_read(self, fault: Fault) -> None:
        line = await self._connect(fault.first)
        if line is None:
            return
        line.transport.pause_reading()
        for _ in range(_WAVES):
            for _ in range(_UNREAD):
                line.send(METADATA, _METADATA, MetadataRequest(topics=None))
            await asyncio.sleep(fault.for_ms / _WAVES / 1000)
        held = line.transport.held_by_peer()
        self._history.tell("broker {} holds {} bytes for a guest", fault.first, held)
        if held > _MOST_HELD_BYTES:
            self._wrong(f"broker {fault.first} holds {held} bytes for a client that does not read")
        line.transport.abort()

    async def _pipeline(self, fault: Fault) -> None:
        brokers = [fault.first, *(each for each in self._brokers.by_id if each != fault.first)]
        for broker_id in brokers:
            codes = await self._in_one_breath(broker_id)
            if codes and codes[0] != NotController.code:
                break

    async def _in_one_breath(self, broker_id: int) -> list[int]:
        line = await self._connect(broker_id)
        if line is None:
            return []
        name = f"guest-{next(self._numbers)}"
        topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=2)]
        create = CreateTopicsRequest(topics=topics, timeout_ms=_TIMEOUT_MS)
        delete = DeleteTopicsRequest(topic_names=[name], timeout_ms=_TIMEOUT_MS)
        for api, version, request in (
            (CREATE_TOPICS, _CREATE, create),
            (DELETE_TOPICS, _DELETE, delete),
            (CREATE_TOPICS, _CREATE, create),
            (DELETE_TOPICS, _DELETE, delete),
        ):
            line.send(api, version, request)
        codes = await line.codes(4)
        line.transport.abort()
        self._history.tell("a guest on broker {} is answered {}", broker_id, codes)
        created, deleted, again = (*codes, -1, -1, -1)[:3]
        if created == NONE and deleted == UnknownTopicOrPartition.code:
            self._wrong(f"{name} was deleted before it was created, its first request: {codes}")
        if deleted == NONE and again == TopicAlreadyExists.code:
            self._wrong(f"{name} was created before it was deleted, as was asked: {codes}")
        return codes

    def _wrong(self, text: str) -> None:
        self._history.surprise("a guest", AssertionError(text))

    async def _connect(self, broker_id: int) -> _Line | None:
        line = _Line()
        try:
            await self._loop.create_connection(lambda: line, self._brokers[broker_id].host, PORT)
        except OSError:
            return None
        return line


class _Line(asyncio.BufferedProtocol):
    """A connection on which requests go out immediately, and answers are read in order."""

    def __init__(self) -> None:
        self.transport: Any = None
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._data = bytearray()
        self._sent: list[tuple[Api, int]] = []
        self._taken = 0
        self._news = asyncio.Event()
        self._is_over = False

    def send(self, api: Api, version: int, request: Message) -> None:
        self._sent.append((api, version))
        parts = encode_request(api, version, len(self._sent), "guest", request)
        self.transport.writelines(parts)

    async def codes(self, most: int) -> list[int]:
        """Return the error code of each answer, or of its first topic; there are fewer if the
        connection or the time ends."""
        found: list[int] = []
        try:
            async with asyncio.timeout(_PATIENCE_S):
                while len(found) < most and not self._is_over:
                    await self._news.wait()
                    self._news.clear()
                    found += self._answers()
        except TimeoutError:
            pass
        return found

    def _answers(self) -> list[int]:
        found = []
        while len(self._data) >= 4:
            size = int.from_bytes(self._data[:4], "big")
            if len(self._data) < 4 + size:
                break
            frame = bytes(self._data[4 : 4 + size])
            del self._data[: 4 + size]
            api, version = self._sent[self._taken]
            self._taken += 1
            number, answer = decode_response(api, version, memoryview(frame))
            assert number == self._taken, f"answer {number} came as {self._taken}"
            topics: Any = getattr(answer, "topics", None) or getattr(answer, "responses", ())
            coded: Any = topics[0] if topics else answer
            found.append(int(coded.error_code))
        return found

    # --- what the transport calls ----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._data += self._buffer[:nbytes]
        self._news.set()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_over = True
        self._news.set()
