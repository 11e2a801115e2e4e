"""A client that costs as little as can be: it sends frames made beforehand and counts answers.

It must not be what is measured. So requests go out as blocks of many frames, answers are counted by
their size, which is the same for all of a run, and the bytes of a fetch are dropped in the kernel
(`MSG_TRUNC`) instead of being copied.
"""

from __future__ import annotations

import socket
import struct
import time
from typing import NamedTuple

from barnabas.protocol.api import FETCH, PRODUCE
from barnabas.protocol.frame import encode_request
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.records.batch import HEADER_BYTES
from barnabas.records.record import BatchBuilder
from barnabas.types import FileSlice, Part

_LENGTH = struct.Struct(">i")
_TIMEOUT_SECONDS = 30.0
_VALUE = bytes(range(100))

PRODUCE_VERSION = 9
FETCH_VERSION = 11  # by topic name, without the flexible parts


class Frames(NamedTuple):
    """Requests of one kind, to be sent again and again in a circle."""

    frames: list[bytes]
    per_block: int
    """How many go out by one `send`."""
    window: int
    """How many may be unanswered."""

    def blocks(self) -> list[bytes]:
        step = self.per_block
        return [b"".join(self.frames[at : at + step]) for at in range(0, len(self.frames), step)]


class Run(NamedTuple):
    """What one round on one connection came to."""

    requests: int
    seconds: float


def batch_of(size_bytes: int, value: bytes = _VALUE) -> tuple[bytes, int]:
    """A batch of exactly that size, of 100-byte records and a last one that fills it; its records.

    Too small a size gives one record.
    """
    builder = BatchBuilder()
    now_ms = int(time.time() * 1000)
    builder.append(now_ms, None, value)
    overhead = 10  # of a record with a two-byte length, offset delta and value length
    while size_bytes - builder.size_bytes > 3 * len(value):
        builder.append(now_ms, None, value)
    if builder.record_count > 1:
        builder.append(now_ms, None, bytes(size_bytes - builder.size_bytes - overhead))
    batch = builder.build()
    assert builder.record_count == 1 or len(batch) == size_bytes, len(batch)
    return batch, builder.record_count


def produce_frame(topic: str, batch: bytes) -> tuple[bytes, int, int]:
    """A Produce request with acks=all, where the batch begins in it, what follows the batch."""
    data = PartitionProduceData(index=0, records=memoryview(batch))
    request = ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )
    frame = _joined(encode_request(PRODUCE, PRODUCE_VERSION, 1, "raw", request))
    batch_at = frame.index(batch[:HEADER_BYTES])
    return frame, batch_at, len(frame) - batch_at - len(batch)


def fetch_frame(topic: str, offset: int, max_bytes: int) -> bytes:
    """A Fetch request without a session for `max_bytes` from that offset."""
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    request = FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=max_bytes,
        topics=[FetchTopic(topic=topic, partitions=[partition])],
    )
    return _joined(encode_request(FETCH, FETCH_VERSION, 1, "raw", request))


def _joined(parts: list[Part]) -> bytes:
    return b"".join(part for part in parts if not isinstance(part, FileSlice))


class Pipeline:
    """One connection that is never idle."""

    def __init__(self, port: int, frames: Frames) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), _TIMEOUT_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._frames = frames
        self._blocks = frames.blocks()
        self._received = bytearray(1 << 20)

    def close(self) -> None:
        self._socket.close()

    def run(self, seconds: float) -> Run:
        """Requests for so long, then the answers to the last of them.

        Raises ConnectionError where the server hangs up, ValueError where answers differ in size.
        """
        size = self._first_answer()
        step, window = self._frames.per_block, self._frames.window
        outstanding = answered = unread = sent = 0
        began = time.perf_counter()
        ends_at = began + seconds
        while True:
            open_ = time.perf_counter() < ends_at
            while open_ and outstanding + step <= window:
                self._socket.sendall(self._blocks[sent % len(self._blocks)])
                sent += 1
                outstanding += step
            if outstanding <= 0:
                break
            unread += self._drop()
            done, unread = divmod(unread, size)
            outstanding -= done
            answered += done
        if unread or outstanding:
            raise ValueError(f"answers are not all of {size} bytes")
        return Run(answered, time.perf_counter() - began)

    def one_at_a_time(self, count: int) -> list[float]:
        """So many requests, each after the answer to the one before; the sorted times in ms."""
        size = self._first_answer()
        frame, receive = self._frames.frames[0], self._socket.recv_into
        taken = []
        for _ in range(count):
            began = time.perf_counter()
            self._socket.sendall(frame)
            received = 0
            while received < size:
                received += receive(self._received)
            taken.append((time.perf_counter() - began) * 1000)
        return sorted(taken)

    def send(self, count: int) -> None:
        """That many requests and their answers."""
        size = self._first_answer()
        outstanding = unread = 0
        for _ in range(1, count):
            self._socket.sendall(self._frames.frames[0])
            outstanding += 1
            while outstanding >= self._frames.window:
                unread += self._drop()
                done, unread = divmod(unread, size)
                outstanding -= done
        while outstanding > 0:
            unread += self._drop()
            done, unread = divmod(unread, size)
            outstanding -= done

    def _drop(self) -> int:
        received = self._socket.recv_into(self._received, 0, socket.MSG_TRUNC)
        if not received:
            raise ConnectionError("the server closed the connection")
        return received

    def _first_answer(self) -> int:
        """The size of an answer, its length included."""
        self._socket.sendall(self._frames.frames[0])
        while len(head := self._socket.recv(4, socket.MSG_PEEK)) < 4:
            if not head:
                raise ConnectionError("the server closed the connection")
        size: int = 4 + _LENGTH.unpack(head)[0]
        received = 0
        while received < size:
            received += self._drop()
        return size


def fill(port: int, frames: Frames, count: int) -> None:
    """So many requests, answered all."""
    pipeline = Pipeline(port, frames)
    try:
        pipeline.send(count)
    finally:
        pipeline.close()
