"""Produce (key 0): append batches as the leader, and respond according to `acks`.

Stage one patches the batches in place and stages them. It contains no `await`, so a connection's
requests are appended in order. The router writes everything that was staged in one wake-up of the
event loop, and then builds the responses. Stage two waits for the high watermark (acks=all) or for
a flush. If a partition fails, the other partitions are not affected.

`append` and `settle` are the two stages for a request that has been decoded. They are used by this
handler and by `network.repeated_produce`, which handles requests that need no decoding.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

from barnabas.broker.context import Context
from barnabas.broker.outcome import Hold, Later, Outcome, Staged
from barnabas.broker.partitions.batch_conversion import Preparation
from barnabas.broker.partitions.replica import Replica
from barnabas.cluster.layout import INTERNAL_TOPICS
from barnabas.coordinator.decision import TransactionalBatch
from barnabas.errors import (
    CorruptData,
    InvalidRecord,
    InvalidRequiredAcks,
    InvalidTopic,
    KafkaError,
    KafkaStorageError,
    RequestTimedOut,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
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
from barnabas.records.batch import CODEC_MASK, TRANSACTIONAL, read_header
from barnabas.records.compression import NONE, ZSTD
from barnabas.records.plausibility import is_plausible
from barnabas.security.acl import Operation, ResourceType
from barnabas.storage.append_result import AppendResult
from barnabas.storage.batch_validation import ATTRIBUTES_LOW_AT, codec_of, is_transactional
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.coordinator.verifier import Unverified

# For each appended batch, the replica, the offset that the high watermark must reach, and the
# response to update.
Appended = list[tuple[Replica, int, PartitionProduceResponse]]

# A batch to prepare before the append, with its topic, its partition and the preparation.
Unprepared = list[tuple[str, PartitionProduceData, Preparation]]

ACKS_NONE, ACKS_ALL = 0, -1
_ZSTD = 7  # the first version that supports zstd (KIP-110)
_ACKS = (ACKS_NONE, 1, ACKS_ALL)
_KNOWS_ABORTABLE = 11  # the first version with the error TRANSACTION_ABORTABLE
_MAX_VERIFIED = 1000  # the number of topics for which a connection's compressed batches are trusted


def handle(context: Context, request: ProduceRequest) -> Outcome:
    produced = _Produced(context, request)
    unprepared = produced.prepare_all()
    if unprepared:
        # Hold back the connection's next request. Otherwise, sequence numbers would be out of order
        # (PR-6).
        return Hold(produced.finish(unprepared))
    if (
        request.transactional_id is not None
        and context.node.verification.may_wait
        # KIP-890, part 1: if a write arrived after its transaction had ended, it would start a
        # hanging transaction and hold back the last stable offset.
        and produced.must_verify()
    ):
        return Hold(produced.finish([]))
    produced.append_all()
    return produced


class _Produced(Staged):
    """A request in progress, with the batches that have been appended and the response that has
    been built so far.
    """

    __slots__ = ("_appended", "_context", "_denied", "_refused", "_request", "_responses")

    def __init__(self, context: Context, request: ProduceRequest) -> None:
        self._context = context
        self._request = request
        self._responses: list[TopicProduceResponse] = []
        self._appended: Appended = []
        self._refused: dict[tuple[str, int], KafkaError] | None = None  # before the append
        self._denied: dict[str | None, KafkaError] | None = None  # by topic; None for the id

    def prepare_all(self) -> Unprepared:
        """Prepare the batches that must be validated, converted or recompressed before they are
        appended.

        Returns the preparations that take longer. `finish` awaits them.
        """
        unprepared: Unprepared = []
        context = self._context
        preparing = context.node.replicas.converting
        now_ms = context.node.clock.wall_ms()
        for topic in self._request.topic_data:
            name = topic.name
            for data in topic.partition_data:
                # The append rejects null records.
                if not isinstance(data.records, memoryview):
                    continue
                is_doubted = in_doubt(context, name, data.records, now_ms)
                if is_doubted or name in preparing:
                    if not self._could_append(name, data.records):
                        self._refuse(name, data, TopicAuthorizationFailed())
                        continue
                    preparation = self._prepare(name, data, now_ms, is_doubted=is_doubted)
                    if preparation is not None:
                        unprepared.append((name, data, preparation))
        return unprepared

    def _could_append(self, topic: str, records: memoryview) -> bool:
        """Return whether the client is authorized to append.

        If it is not, nothing is decompressed or converted, and no request is sent to another
        broker.
        """
        context, transactional_id = self._context, self._request.transactional_id
        if is_transactional(records) and (
            transactional_id is None
            or not context.could(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
        ):
            return False
        return context.could(Operation.WRITE, ResourceType.TOPIC, topic)

    def _prepare(
        self, topic: str, data: PartitionProduceData, now_ms: int, *, is_doubted: bool
    ) -> Preparation | None:
        """Prepare one batch immediately, or return a preparation to be awaited."""
        node, records = self._context.node, data.records
        assert isinstance(records, memoryview)
        try:
            limits = node.replicas.leader_of((topic, data.index)).log.limits
            batch = node.converter.prepare(records, limits, now_ms, is_doubted=is_doubted)
        except KafkaError as error:
            self._refuse(topic, data, error)
            return None
        if not isinstance(batch, memoryview):
            return batch
        self._replace(topic, data, batch)
        return None

    def _replace(self, topic: str, data: PartitionProduceData, batch: memoryview) -> None:
        """Replace a batch with the batch that was prepared from it.

        If the batch is compressed, later batches for the same topic on this connection are trusted.
        """
        data.records = batch
        verified_topics = self._context.client.verified_topics
        if topic not in verified_topics and codec_of(batch) != NONE:
            if len(verified_topics) >= _MAX_VERIFIED:
                verified_topics.clear()
            verified_topics.add(topic)

    def _refuse(self, topic: str, data: PartitionProduceData, error: KafkaError) -> None:
        if self._refused is None:
            self._refused = {}
        # The traceback references this request, which would stay in memory until the garbage
        # collector runs.
        self._refused[topic, data.index] = error.with_traceback(None)

    def must_verify(self) -> bool:
        """Return whether the batches must first be verified by a transaction
        coordinator (KIP-890).
        """
        return bool(self._context.node.verification.unverified_batches(self._transactional()))

    def _transactional(self) -> Iterator[Unverified]:
        from barnabas.broker.coordinator.verifier import batches_of  # few brokers need it

        transactional_id = self._request.transactional_id
        assert transactional_id is not None
        return batches_of(
            transactional_id,
            (
                (TopicPartition(topic.name, data.index), data.records)
                for topic in self._request.topic_data
                for data in topic.partition_data
                if isinstance(data.records, memoryview)
                and is_transactional(data.records)
                and self._could_append(topic.name, data.records)
            ),
        )

    async def finish(self, unprepared: Unprepared) -> ProduceResponse | None:
        """Prepare, append, write and respond.

        The connection's next request waits until this method is done.
        """
        for topic, data, preparation in unprepared:
            try:
                self._replace(topic, data, await preparation())
            except KafkaError as error:
                self._refuse(topic, data, error)
        verification = self._context.node.verification
        if verification.may_wait and self._request.transactional_id is not None:
            await verification.verify(self._transactional())
        self.append_all()
        self._context.node.replicas.write_staged()
        answer = self.answer()
        if answer is None or isinstance(answer, ProduceResponse):
            return answer
        response = await answer
        assert isinstance(response, ProduceResponse)
        return response

    def append_all(self) -> None:
        """Run stage one. If a partition fails, its response contains the error."""
        for topic in self._request.topic_data:
            answers = [self._append(topic.name, data) for data in topic.partition_data]
            self._responses.append(
                TopicProduceResponse(name=topic.name, partition_responses=answers)
            )

    def _append(self, topic: str, data: PartitionProduceData) -> PartitionProduceResponse:
        context, acks, index = self._context, self._request.acks, data.index
        denial = self._denial(topic, data.records)
        if denial is not None:
            return failure(index, denial)
        try:
            place, transactional_id = (topic, index), self._request.transactional_id
            if self._refused is not None and (topic, index) in self._refused:
                # The contents of the batch are invalid. First run the checks that do not need the
                # contents, so that an unauthorized client learns nothing else.
                if _attributes(data.records) & TRANSACTIONAL:
                    _check_id(context, transactional_id)
                _check(context, acks, topic)
                raise self._refused[topic, index]
            replica = admit(context, acks, place, data.records, transactional_id)
            assert isinstance(data.records, memoryview)
            result = append(context, replica, data.records)
        except (TopicAuthorizationFailed, TransactionalIdAuthorizationFailed) as error:
            if self._denied is None:
                self._denied = {}
            is_of_topic = isinstance(error, TopicAuthorizationFailed)
            self._denied[topic if is_of_topic else None] = error.with_traceback(None)
            return failure(index, error)
        except KafkaError as error:
            return failure(index, error)
        answer = PartitionProduceResponse(
            index=index,
            base_offset=result.base_offset,
            log_append_time_ms=result.log_append_time_ms,
            log_start_offset=result.log_start_offset,
        )
        self._appended.append((replica, result.last_offset + 1, answer))
        return answer

    def _denial(self, topic: str, records: Records | None) -> KafkaError | None:
        """Return the error if another batch of this request was denied for the same reason. This
        way, each denial is checked and logged only once.
        """
        denied = self._denied
        if denied is None:
            return None
        if None in denied and _attributes(records) & TRANSACTIONAL:
            return denied[None]
        return denied.get(topic)

    def answer(self) -> ProduceResponse | Later | None:
        """Build the response, or return None if acks is 0."""
        request = self._request
        response = ProduceResponse(responses=self._responses)
        outcome = settle(response, self._appended, request.acks, request.timeout_ms)
        if request.acks == ACKS_NONE:
            _raise_failure(self._responses)
            return None
        return outcome


def in_doubt(context: Context, topic: str, batch: memoryview, now_ms: int) -> bool:
    """Return whether the batch header can be trusted only after iterating over the records.

    This is the case if the header is implausible, and for the first compressed batch of a topic on
    each connection, because a faulty producer's headers are wrong from the first batch on.
    """
    return (
        not is_plausible(batch, now_ms)
        or (topic not in context.client.verified_topics and codec_of(batch) != NONE)
        or context.node.converter.walks_all
    )


def admit(
    context: Context,
    acks: int,
    place: tuple[str, int],
    records: Records | None,
    transactional_id: str | None = None,
) -> Replica:
    """Return the replica for a batch, after all checks that can be made without the batch itself.

    `place` consists of the topic and the partition number. Raises the KafkaError for the client.
    """
    if _attributes(records) & TRANSACTIONAL:
        _check_id(context, transactional_id)
    _check(context, acks, place[0])
    return admit_granted(context, acks, place, records, transactional_id)


def admit_granted(
    context: Context,
    acks: int,
    place: tuple[str, int],
    records: Records | None,
    transactional_id: str | None = None,
) -> Replica:
    """Perform the checks of `admit` for a topic and a transactional id that have already been
    authorized.
    """
    attributes = _attributes(records)
    # The batch is transactional, but the request has no transactional id to authorize.
    if attributes & TRANSACTIONAL and transactional_id is None:
        raise TransactionalIdAuthorizationFailed
    node = context.node
    replica = node.replicas.leader_of(place)
    if acks == ACKS_ALL:
        # Check before the append, so that a rejected batch leaves nothing in the log (PR-4).
        replica.partition.check_acks_all()
    if not isinstance(records, memoryview) or not len(records):
        raise InvalidRecord(f"no records for {place[0]}-{place[1]}")
    if attributes & CODEC_MASK == ZSTD and context.version < _ZSTD:
        raise UnsupportedCompressionType(f"zstd needs Produce version {_ZSTD} or later")
    if attributes & TRANSACTIONAL:
        _check_transactional(context, replica, transactional_id, records)
    return replica


def _attributes(records: Records | None) -> int:
    """Return the low byte of a batch's attributes, or 0 if there is no batch."""
    if isinstance(records, memoryview) and len(records) > ATTRIBUTES_LOW_AT:
        return records[ATTRIBUTES_LOW_AT]
    return 0


def _check_id(context: Context, transactional_id: str | None) -> None:
    """Check the transactional id. As in Kafka, it is checked before the topic."""
    if transactional_id is None or not context.allowed_to(
        Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id
    ):
        raise TransactionalIdAuthorizationFailed


def _check_transactional(
    context: Context, replica: Replica, transactional_id: str | None, records: memoryview
) -> None:
    """Raise the error for the producer if this transactional batch may not be appended."""
    assert transactional_id is not None, "checked before"
    try:
        header = read_header(records)
    except CorruptData:
        return  # the append rejects it
    batch = TransactionalBatch(transactional_id, header.producer_id, header.producer_epoch)
    knows_abortable = context.version >= _KNOWS_ABORTABLE
    context.node.verification.check_open(replica, batch, knows_abortable=knows_abortable)


def append(
    context: Context, replica: Replica, records: memoryview, *, is_unseen: bool = False
) -> AppendResult:
    """Run stage one for one partition, and return the offsets of its batch.

    Raises the KafkaError for the client, or Doubt if `is_unseen` is set and the records must be
    iterated over first.
    """
    node = context.node
    try:
        return replica.append(records, node.clock.wall_ms(), is_unseen)
    except OSError as error:
        replica.fail(error)
        raise KafkaStorageError(str(error)) from error


def _check(context: Context, acks: int, topic: str) -> None:
    if acks not in _ACKS:
        raise InvalidRequiredAcks(f"acks={acks}: use 0, 1 or -1 (all)")
    if not context.is_allowed(topic):
        raise TopicAuthorizationFailed(f"not allowed to write to {topic}")
    if topic in INTERNAL_TOPICS:
        raise InvalidTopic(f"{topic} is an internal topic, to which clients may not write")


def settle(
    response: ProduceResponse, appended: Appended, acks: int, timeout_ms: int
) -> ProduceResponse | Later:
    """Return the response, or a coroutine that waits for it.

    The logs have been written when this is called.
    """
    waiting: Appended = []
    for each in appended:
        replica, end_offset, answer = each
        if replica.log.health.is_failed:
            _fail(answer, KafkaStorageError(f"{replica.topic_partition} cannot be written"))
        elif (acks == ACKS_ALL and replica.high_watermark < end_offset) or (
            # If the topic requires flushes, an acknowledgement guarantees that the record is on
            # disk, even with acks=1 (ST-10).
            replica.waits_for_disk and acks != ACKS_NONE
        ):
            waiting.append(each)
    return _wait(response, waiting, acks, timeout_ms) if waiting else response


def failure(index: int, error: KafkaError) -> PartitionProduceResponse:
    """Return the response for a partition if nothing could be appended to it."""
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


def _raise_failure(responses: list[TopicProduceResponse]) -> None:
    """Raise an error that closes the connection, as Kafka does, because with acks=0 there is no
    response.
    """
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
    """Run stage two, which waits for the flush if the topic requires one and, with acks=all, for
    the whole ISR.
    """
    deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
    for replica, end_offset, answer in waiting:
        try:
            async with asyncio.timeout_at(deadline):
                if acks == ACKS_ALL:
                    # Stop waiting if the ISR falls below the minimum, because the high watermark
                    # would no longer advance.
                    await replica.wait_for(end_offset, is_strict=True)
                else:
                    await replica.wait_for_flush(end_offset)
                    if replica.log.health.is_failed:
                        raise KafkaStorageError(f"{replica.topic_partition} cannot be written")
            if acks == ACKS_ALL:
                # The ISR may have shrunk before the high watermark advanced. The records remain in
                # the log and may be visible, so the error is NOT_ENOUGH_REPLICAS_AFTER_APPEND
                # (PR-4).
                replica.partition.check_written_to_all()
        except TimeoutError:
            answer.error_code = RequestTimedOut.code
            answer.error_message = f"not replicated within {timeout_ms} ms"
        except KafkaError as error:
            answer.error_code = error.code
            answer.error_message = str(error)
    return response
