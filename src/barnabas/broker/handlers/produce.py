"""Produce (key 0): append batches as the leader, answer as `acks` asks.

Stage one patches in place and stages; there is no `await` in it, so requests of one connection
append in their order. The router has all that a wake-up staged written, then asks for the answers.
Stage two, only where the high watermark has not yet passed (acks=all) or a flush is under way,
waits for that. A failed partition does not fail its neighbours.

`append` and `settled` do both stages for whoever has taken a request apart: this handler, and
`broker.repeated_produce` for requests that need no decoding.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

from barnabas.broker.context import Context
from barnabas.broker.network.outcome import Hold, Later, Outcome, Staged
from barnabas.broker.partitions.batch_conversion import Preparation
from barnabas.broker.partitions.replica import Replica
from barnabas.cluster.layout import INTERNAL_TOPICS
from barnabas.errors import (
    InvalidRecord,
    InvalidRequiredAcks,
    InvalidTopic,
    KafkaError,
    KafkaStorageError,
    NotEnoughReplicasAfterAppend,
    RequestTimedOut,
    TopicAuthorizationFailed,
    UnsupportedCompressionType,
)
from barnabas.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from barnabas.protocol.wire import Records
from barnabas.records.batch import CODEC_MASK, TRANSACTIONAL
from barnabas.records.compression import NONE, ZSTD
from barnabas.records.plausible import is_plausible
from barnabas.storage.batch_validation import ATTRIBUTES_LOW_AT, codec_of, is_transactional
from barnabas.storage.placed import AppendResult
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.coordination.verifier import Unverified

# What was appended: the replica, the offset that has to be reached, the answer to correct.
Appended = list[tuple[Replica, int, PartitionProduceResponse]]

# A batch that has to be prepared first: its topic, where it goes, and the preparation.
Unprepared = list[tuple[str, PartitionProduceData, Preparation]]

ACKS_NONE, ACKS_ALL = 0, -1
_ZSTD = 7  # the first version that may carry it (KIP-110)
_ACKS = (ACKS_NONE, 1, ACKS_ALL)
_MAX_VERIFIED = 1000  # topics of a connection whose compressed batches are believed


def handle(context: Context, request: ProduceRequest) -> Outcome:
    produced = _Produced(context, request)
    unprepared = produced.prepare_all()
    if unprepared:
        return Hold(produced.finish(unprepared))
    if (
        request.transactional_id is not None
        and context.node.verifier is not None
        and produced.must_ask()
    ):
        return Hold(produced.finish([]))
    produced.append_all()
    return produced


class _Produced(Staged):
    """One request on its way: what it appended, and what will be answered."""

    __slots__ = ("_appended", "_context", "_refused", "_request", "_responses")

    def __init__(self, context: Context, request: ProduceRequest) -> None:
        self._context = context
        self._request = request
        self._responses: list[TopicProduceResponse] = []
        self._appended: Appended = []
        self._refused: dict[tuple[str, int], KafkaError] | None = None  # before the append

    def prepare_all(self) -> Unprepared:
        """Batches whose topics look at each record or keep another codec, and those in doubt; what
        takes longer is returned, to be awaited by `finish`."""
        unprepared: Unprepared = []
        context = self._context
        preparing = context.node.replicas.preparing
        now_ms = context.node.clock.wall_ms()
        for topic in self._request.topic_data:
            name = topic.name
            for data in topic.partition_data:
                if not isinstance(data.records, memoryview):
                    continue
                is_doubted = in_doubt(context, name, data.records, now_ms)
                if is_doubted or name in preparing:
                    preparation = self._prepare(name, data, now_ms, is_doubted=is_doubted)
                    if preparation is not None:
                        unprepared.append((name, data, preparation))
        return unprepared

    def _prepare(
        self, topic: str, data: PartitionProduceData, now_ms: int, *, is_doubted: bool
    ) -> Preparation | None:
        """Prepare one batch, at once or by what is returned."""
        node, records = self._context.node, data.records
        assert isinstance(records, memoryview)
        try:
            limits = node.replicas.leader_of((topic, data.index)).log.limits
            batch = node.preparer.prepared(records, limits, now_ms, is_doubted=is_doubted)
        except KafkaError as error:
            self._refuse(topic, data, error)
            return None
        if not isinstance(batch, memoryview):
            return batch
        self._prepared(topic, data, batch)
        return None

    def _prepared(self, topic: str, data: PartitionProduceData, batch: memoryview) -> None:
        """What is compressed was good once: this connection's next to the topic is believed."""
        data.records = batch
        verified_topics = self._context.client.verified_topics
        if topic not in verified_topics and codec_of(batch) != NONE:
            if len(verified_topics) >= _MAX_VERIFIED:
                verified_topics.clear()
            verified_topics.add(topic)

    def _refuse(self, topic: str, data: PartitionProduceData, error: KafkaError) -> None:
        if self._refused is None:
            self._refused = {}
        # Its frames lead back to this request, whose memory would stay until the collector runs.
        self._refused[topic, data.index] = error.with_traceback(None)

    def must_ask(self) -> bool:
        """Whether a coordinator on another broker has to be asked before the append."""
        from barnabas.broker.coordination.verification import unverified  # few brokers need it

        return bool(unverified(self._context.node, self._transactional()))

    def _transactional(self) -> Iterator[Unverified]:
        from barnabas.broker.coordination.verification import batches_of

        transactional_id = self._request.transactional_id
        assert transactional_id is not None
        return batches_of(
            transactional_id,
            (
                (TopicPartition(topic.name, data.index), data.records)
                for topic in self._request.topic_data
                for data in topic.partition_data
                if isinstance(data.records, memoryview) and is_transactional(data.records)
            ),
        )

    async def finish(self, unprepared: Unprepared) -> ProduceResponse | None:
        """Prepare, append, write and answer: this connection's next request waits for the first
        three of them."""
        for topic, data, preparation in unprepared:
            try:
                self._prepared(topic, data, await preparation())
            except KafkaError as error:
                self._refuse(topic, data, error)
        if self._context.node.verifier is not None and self._request.transactional_id is not None:
            from barnabas.broker.coordination.verification import verify

            await verify(self._context.node, self._transactional())
        self.append_all()
        self._context.node.replicas.write_staged()
        answer = self.answer()
        if answer is None or isinstance(answer, ProduceResponse):
            return answer
        response = await answer
        assert isinstance(response, ProduceResponse)
        return response

    def append_all(self) -> None:
        """Stage one: every failure of a partition is that partition's answer."""
        for topic in self._request.topic_data:
            answers = [self._append(topic.name, data) for data in topic.partition_data]
            self._responses.append(
                TopicProduceResponse(name=topic.name, partition_responses=answers)
            )

    def _append(self, topic: str, data: PartitionProduceData) -> PartitionProduceResponse:
        context, acks, index = self._context, self._request.acks, data.index
        try:
            if self._refused is not None and (topic, index) in self._refused:
                _check(context, acks, topic)
                raise self._refused[topic, index]
            place, transactional_id = (topic, index), self._request.transactional_id
            replica = admitted(context, acks, place, data.records, transactional_id)
            assert isinstance(data.records, memoryview)
            result = append(context, replica, data.records)
        except KafkaError as error:
            return failed(index, error)
        answer = PartitionProduceResponse(
            index=index,
            base_offset=result.base_offset,
            log_append_time_ms=result.log_append_time_ms,
            log_start_offset=result.log_start_offset,
        )
        self._appended.append((replica, result.last_offset + 1, answer))
        return answer

    def answer(self) -> ProduceResponse | Later | None:
        """Once the logs are written: the answer, or what has to be awaited for it."""
        request = self._request
        response = ProduceResponse(responses=self._responses)
        outcome = settled(response, self._appended, request.acks, request.timeout_ms)
        if request.acks == ACKS_NONE:
            _tell_by_closing(self._responses)
            return None
        return outcome


def in_doubt(context: Context, topic: str, batch: memoryview, now_ms: int) -> bool:
    """Whether the batch's records have to be walked before its header is believed: what cannot be
    so, and the first compressed batch of each connection and topic, for a producer that miscounts
    does so from the beginning."""
    return (
        not is_plausible(batch, now_ms)
        or (topic not in context.client.verified_topics and codec_of(batch) != NONE)
        or context.node.preparer.walks_all
    )


def admitted(
    context: Context,
    acks: int,
    place: tuple[str, int],
    records: Records | None,
    transactional_id: str | None = None,
) -> Replica:
    """To which replica a batch for that partition (topic and number) may be appended, for all that
    is asked before a look into it. Raises the row to answer."""
    _check(context, acks, place[0])
    node = context.node
    replica = node.replicas.leader_of(place)
    if acks == ACKS_ALL:
        replica.partition.check_acks_all()
    if not isinstance(records, memoryview) or not len(records):
        raise InvalidRecord(f"no records for {place[0]}-{place[1]}")
    attributes = records[ATTRIBUTES_LOW_AT] if len(records) > ATTRIBUTES_LOW_AT else 0
    if attributes & CODEC_MASK == ZSTD and context.version < _ZSTD:
        raise UnsupportedCompressionType(f"zstd needs Produce version {_ZSTD}")
    if attributes & TRANSACTIONAL:
        from barnabas.broker.coordination.verification import check_produced  # few brokers need it

        check_produced(context, replica, transactional_id, records)
    return replica


def append(
    context: Context, replica: Replica, records: memoryview, *, is_unseen: bool = False
) -> AppendResult:
    """Stage one of one partition: where its batch came to stand.

    Raises the row to answer, or Doubt if it `is_unseen`, and has to be walked first.
    """
    node = context.node
    try:
        return replica.append(records, node.clock.wall_ms(), is_unseen)
    except OSError as error:
        node.replicas.fail_directory(replica, error)
        raise KafkaStorageError(str(error)) from error


def _check(context: Context, acks: int, topic: str) -> None:
    if acks not in _ACKS:
        raise InvalidRequiredAcks(f"acks={acks}: use 0, 1 or -1 (all)")
    if not context.allowed(topic):
        raise TopicAuthorizationFailed(f"not allowed to write to {topic}")
    if topic in INTERNAL_TOPICS:
        raise InvalidTopic(f"{topic} is internal: clients may not write to it")


def settled(
    response: ProduceResponse, appended: Appended, acks: int, timeout_ms: int
) -> ProduceResponse | Later:
    """Once the logs are written: the answer, or what has to be awaited for it."""
    waiting: Appended = []
    for each in appended:
        replica, end_offset, answer = each
        if replica.log.is_failed:
            _fail(answer, KafkaStorageError(f"{replica.topic_partition} cannot be written"))
        elif (acks == ACKS_ALL and replica.high_watermark < end_offset) or (
            replica.flush and acks != ACKS_NONE
        ):
            waiting.append(each)
    return _wait(response, waiting, acks, timeout_ms) if waiting else response


def failed(index: int, error: KafkaError) -> PartitionProduceResponse:
    """The answer for a partition to which nothing was appended."""
    answer = PartitionProduceResponse(index=index)
    _fail(answer, error)
    return answer


def _fail(answer: PartitionProduceResponse, error: KafkaError) -> None:
    answer.error_code = error.code
    answer.error_message = str(error) or None
    answer.record_errors = [
        BatchIndexAndErrorMessage(batch_index=record, batch_index_error_message=message)
        for record, message in error.record_errors
    ]
    answer.base_offset = answer.log_append_time_ms = answer.log_start_offset = -1


def _tell_by_closing(responses: list[TopicProduceResponse]) -> None:
    """acks=0: nothing is answered; an error is told by closing the connection, as Kafka does."""
    for topic in responses:
        for partition in topic.partition_responses:
            if partition.error_code:
                raise InvalidRecord(
                    f"produce with acks=0 to {topic.name}-{partition.index} failed with error "
                    f"{partition.error_code}: {partition.error_message}"
                )


async def _wait(
    response: ProduceResponse, waiting: Appended, acks: int, timeout_ms: int
) -> ProduceResponse:
    """Stage two: it is on disk, if the topic asks for that, and for acks=all in the whole ISR."""
    deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
    for replica, end_offset, answer in waiting:
        try:
            async with asyncio.timeout_at(deadline):
                if acks == ACKS_ALL:
                    await replica.wait_for(end_offset, is_strict=True)
                else:
                    await replica.flushed(end_offset)
                    if replica.log.is_failed:
                        raise KafkaStorageError(f"{replica.topic_partition} cannot be written")
            if acks == ACKS_ALL and not replica.partition.has_enough_in_sync():
                raise NotEnoughReplicasAfterAppend(
                    f"{replica.topic_partition}: written, but the ISR shrank below "
                    "min.insync.replicas"
                )
        except TimeoutError:
            answer.error_code = RequestTimedOut.code
            answer.error_message = f"not replicated within {timeout_ms} ms"
        except KafkaError as error:
            answer.error_code = error.code
            answer.error_message = str(error)
    return response
