"""Handles Produce requests that differ from an earlier one only in their records.

    key, version | correlation id | client id ... topic, 1 | partition, size | batch | no tags
    ~~~ as before ~~~          ~~~ as before ~~~                                      ~~~~~~~

These are not the duplicate batches that `storage/producers.py` detects by their sequence numbers.
The records are new, and only the bytes around them are the same. A producer that sends one
partition per request, as librdkafka always does, sends the same header bytes again and again. The
header is decoded once, and the start and end of the response are encoded once. From then on, the
head of each frame is looked up instead of being decoded, and the response is packed directly. This
makes a small request a third faster.

Invariant: each response is identical, byte for byte, to the one that `handlers.produce` would send.
That handler gets all other requests, and the same function appends the records in both cases. If
the packed response cannot be sent because the write failed or replicas lag behind, it is decoded
again and completed in the same way as the handler's response.
"""

from __future__ import annotations

from struct import Struct, error
from typing import TYPE_CHECKING

from barnabas.broker.handlers.produce import ACKS_ALL, admit, admit_granted, append, failure, settle
from barnabas.broker.outcome import Separate, StagedRun
from barnabas.errors import CorruptData, KafkaError
from barnabas.protocol.api import PRODUCE
from barnabas.protocol.frame import decode_response, encode_request, encode_response
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from barnabas.protocol.wire import rest_of_uvarint
from barnabas.records.batch import CODEC_MASK
from barnabas.storage.batch_validation import ATTRIBUTES_LOW_AT, Doubt
from barnabas.types import FileSlice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.broker.context import Context
    from barnabas.broker.network.request_metrics import RequestTimes
    from barnabas.broker.network.response_queue import ResponseQueue
    from barnabas.broker.partitions.replica import Replica
    from barnabas.types import Part

_OLDEST = 7  # older versions have a different response format and reject zstd
_MOST_HEADS = 64  # per connection, which is about forty kilobytes
_LONGEST_NAME = 126  # length plus one is a one-byte varint
_HEAD_FROM = 8  # the head begins after the correlation id
_BEHIND_HEAD = 8  # bytes from the partition on, in a request with an empty batch

_START = Struct(">ii")  # key and version, correlation id
_INDEX_AND_SIZE = Struct(">ii")
_INDEX_AND_VARINT = Struct(">iB")
_ROW = Struct(">ihqqq")
_NO_TAGS = bytes(3)  # the empty tag sections of the partition, the topic and the request


class _Head:
    """The decoded head of a frame, and the parts of its response that are already encoded."""

    __slots__ = ("acks", "grants", "pack", "prefix", "size", "tail", "timeout_ms", "topic")

    def __init__(self, request: ProduceRequest, version: int) -> None:
        self.acks = request.acks
        self.grants: object | None = None  # the grants that allow the client to write to the topic
        self.timeout_ms = request.timeout_ms
        self.topic = request.topic_data[0].name
        row = PartitionProduceResponse()
        topic = TopicProduceResponse(name=self.topic, partition_responses=[row])
        answer = _join(encode_response(PRODUCE, version, 0, ProduceResponse(responses=[topic])))
        # These bytes are not valid UTF-8, so they cannot occur in a name.
        at = answer.rindex(_ROW.pack(0, 0, 0, -1, -1))
        self.prefix = answer[8:at]
        self.tail = answer[at + _ROW.size :]
        packed = Struct(f">ii{len(self.prefix)}sihqqq{len(self.tail)}s")
        self.pack = packed.pack
        self.size = packed.size - 4


# A packed response, its replica, and the offset up to which the log must be written before the
# response may be sent.
_Entry = tuple[bytes, "Replica", int, _Head]


class _Run(StagedRun):
    """Repeated requests that arrived one after the other. Their responses are sent together."""

    __slots__ = ("_entries", "append", "version")

    def __init__(self, version: int) -> None:
        self.version = version
        self._entries: list[_Entry] = []
        self.append = self._entries.append

    def __len__(self) -> int:
        return len(self._entries)

    def answers(self) -> bytes | list[Separate]:
        answers = []
        for packed, replica, end_offset, head in self._entries:
            if (
                (replica.partition.high_watermark < end_offset and head.acks == ACKS_ALL)
                or replica.waits_for_disk
                or replica.log.health.is_failed
            ):
                return [self._separate(entry) for entry in self._entries]
            answers.append(packed)
        return b"".join(answers)

    def _separate(self, entry: _Entry) -> Separate:
        packed, replica, end_offset, head = entry
        correlation_id, response = decode_response(PRODUCE, self.version, memoryview(packed)[4:])
        assert isinstance(response, ProduceResponse)
        row = response.responses[0].partition_responses[0]
        appended = [(replica, end_offset, row)]
        return Separate(correlation_id, settle(response, appended, head.acks, head.timeout_ms))


class RepeatedProduce:
    """The known heads of Produce requests with the same version and client id on one connection."""

    __slots__ = (
        "_behind_name",
        "_context",
        "_heads",
        "_is_flexible",
        "_name_at",
        "_preparing",
        "_start",
        "_times",
        "_walks_all",
    )

    def __init__(self, context: Context, times: RequestTimes) -> None:
        """`times` is the object in which the requests' metrics are recorded."""
        version = context.version
        self._context = context
        self._times = times
        self._walks_all = context.node.converter.walks_all
        self._start = PRODUCE.key << 16 | version
        self._is_flexible = version >= PRODUCE.flexible_from
        client_id_bytes = len((context.client_id or "").encode())
        # The position of the topic name's length or of its last byte, and the size of the field
        # after the name.
        self._name_at = client_id_bytes + (19 if self._is_flexible else 23)
        self._behind_name = 1 if self._is_flexible else 5
        self._preparing = context.node.replicas.converting
        self._heads: dict[bytes, _Head] = {}

    def is_for(self, context: Context) -> bool:
        """Return whether a request with this context can match a head stored here."""
        own = self._context
        return (
            own.version == context.version
            and own.client_id == context.client_id
            and own.client is context.client
        )

    def learn(self, frame: memoryview, request: ProduceRequest) -> None:
        """Store the head of this request's frame, because the next frame may repeat it."""
        context = self._context
        topics = request.topic_data
        if (
            # Store the head only if the request has one partition and no transaction, and its
            # response was packed.
            context.version < _OLDEST
            or len(topics) != 1
            or len(topics[0].partition_data) != 1
            or request.transactional_id is not None
            or request.acks == 0
            or len(topics[0].name) > _LONGEST_NAME
            or len(self._heads) >= _MOST_HEADS
        ):
            return
        empty = PartitionProduceData(records=b"")
        alike = ProduceRequest(
            acks=request.acks,
            timeout_ms=request.timeout_ms,
            topic_data=[TopicProduceData(name=topics[0].name, partition_data=[empty])],
        )
        encoded = encode_request(PRODUCE, context.version, 0, context.client_id, alike)
        head = _join(encoded)[4 + _HEAD_FROM : -_BEHIND_HEAD]
        if frame[_HEAD_FROM : _HEAD_FROM + len(head)] == head:  # otherwise it has unusual tags
            self._heads[head] = _Head(request, context.version)

    def append(self, queue: ResponseQueue, frame: memoryview) -> bool:
        """Run stage one of the request, or return False if its frame repeats no known head."""
        name_at = self._name_at
        # If the topic requires every record to be checked, checking the header is not enough.
        if len(frame) <= name_at or self._walks_all:
            return False
        start, correlation_id = _START.unpack_from(frame)
        # Compare the API and the version. The client id after them is part of the head.
        if start != self._start:
            return False
        position = name_at + frame[name_at] + self._behind_name
        head = self._heads.get(frame[_HEAD_FROM:position].tobytes())
        if head is None:
            return False
        # Some batches must be converted or validated before they are appended.
        if self._preparing and head.topic in self._preparing:
            return False
        try:
            if self._is_flexible:
                # The size is encoded as a varint of the size plus one (KIP-482). The batch must be
                # followed by three empty tag sections. Otherwise, the request has additional
                # fields.
                index, size = _INDEX_AND_VARINT.unpack_from(frame, position)
                position += 5
                if size > 0x7F:
                    size, position = rest_of_uvarint(frame, position, size)
                end = position + size - 1
                if frame[end:] != _NO_TAGS:
                    return False
            else:
                index, size = _INDEX_AND_SIZE.unpack_from(frame, position)
                position += 8
                end = position + size
                if end != len(frame):
                    return False
            has_codec = frame[position + ATTRIBUTES_LOW_AT] & CODEC_MASK
        except (error, IndexError, CorruptData):
            return False
        # The first compressed batch of a topic on each connection must be decompressed (see
        # `produce.in_doubt`).
        if has_codec and head.topic not in self._context.client.verified_topics:
            return False
        try:
            self._append(queue, head, correlation_id, index, frame[position:end])
        # The header is implausible, so nothing was appended. Leave the request to the handler,
        # which iterates over the records.
        except Doubt:
            return False
        return True

    def _append(
        self, queue: ResponseQueue, head: _Head, correlation_id: int, index: int, batch: memoryview
    ) -> None:
        context = self._context
        try:
            grants = context.node.authorizer.grants
            # The same grants object has already allowed this topic, so the authorizer does not have
            # to be asked again.
            if grants is not None and head.grants is grants:
                replica = admit_granted(context, head.acks, (head.topic, index), batch)
            else:
                replica = admit(context, head.acks, (head.topic, index), batch)
                head.grants = context.node.authorizer.grants
            result = append(context, replica, batch, is_unseen=True)
        except KafkaError as refusal:
            topic = TopicProduceResponse(
                name=head.topic, partition_responses=[failure(index, refusal)]
            )
            response = ProduceResponse(responses=[topic])
            queue.answer(PRODUCE, correlation_id, context.version, response)
            return
        base_offset, last_offset, log_append_time_ms, log_start_offset, _, _ = result
        packed = head.pack(
            head.size,
            correlation_id,
            head.prefix,
            index,
            0,
            base_offset,
            log_append_time_ms,
            log_start_offset,
            head.tail,
        )
        run = queue.run
        if not isinstance(run, _Run) or run.version != context.version:
            run = _Run(context.version)
            queue.begin_run(PRODUCE, context.version, run, self._times)
        run.append((packed, replica, last_offset + 1, head))


def _join(parts: Sequence[Part]) -> bytes:
    return b"".join(part for part in parts if not isinstance(part, FileSlice))
