"""Runs a producer's transactions one after another, each as a whole or not at all (PR-7, KIP-98).

    init: UNINITIALIZED -> READY        fences older producers of the same transactional id
    begin: READY -> OPEN                sends nothing
    send: OPEN                          a partition is added at the coordinator, then written to
    commit: OPEN -> COMMITTING -> READY      abort: OPEN or FAILED -> ABORTING -> READY
    an error: OPEN -> FAILED (only abort is possible) or FENCED (nothing is)

Invariant: a transaction is committed only if all of its records are acknowledged. If a commit or
abort gets no response, the state remains COMMITTING or ABORTING. The same method may then be called
again, but not the other method, because the coordinator may already have decided. No request takes
effect in a later transaction, because after a request without a response, the producer first
obtains a new epoch.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from functools import partial
from typing import Final, NoReturn, TypeVar

from barnabas.client.cluster import Cluster, exchange
from barnabas.client.config import ProducerConfig
from barnabas.client.consumer.committed import (
    GroupMetadata,
    OffsetAndMetadata,
    as_offsets,
    checked_group,
    commit_entries,
    take_unknown,
    unknown_partitions,
)
from barnabas.client.coordinator import GROUP, TRANSACTION, CoordinatorFinder
from barnabas.client.errors import TransactionAborted, Unreachable
from barnabas.client.pool import backoff_ms
from barnabas.client.producer.accumulator import Accumulator
from barnabas.client.producer.batch import ProducerBatch
from barnabas.client.producer.delivery import wait_until_flushed
from barnabas.errors import (
    BarnabasError,
    ClusterAuthorizationFailed,
    ConcurrentTransactions,
    CorruptData,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTransactionTimeout,
    InvalidTxnState,
    KafkaError,
    OutOfOrderSequenceNumber,
    ProducerFenced,
    TransactionalIdAuthorizationFailed,
    UnknownProducerId,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from barnabas.protocol.api import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    END_TXN,
    INIT_PRODUCER_ID,
    TXN_OFFSET_COMMIT,
)
from barnabas.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from barnabas.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitPartition,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitTopic,
)
from barnabas.shielded import again
from barnabas.types import TopicPartition, by_topic

_log = logging.getLogger(__name__)

_HIGHEST_ADD_PARTITIONS = 3  # higher versions are used between brokers
# from this version, InitProducerId can raise a producer's existing epoch (KIP-360)
_BUMP_FROM = 3
# The previous transaction's markers are written within a few milliseconds. Retry quickly, so that
# many small transactions do not lose a hundred milliseconds each.
_CONCURRENT_FIRST_MS, _CONCURRENT_MOST_MS = 2, 50

# After this time, a partition unknown to the group's coordinator is reported. The Java client
# retries for max.block.ms, which is useless for a deleted topic.
_UNKNOWN_TOPIC_MS = 1_000

_FATAL: Final = (
    ProducerFenced,
    TransactionalIdAuthorizationFailed,
    ClusterAuthorizationFailed,
    InvalidTransactionTimeout,
    InvalidTxnState,
    UnsupportedVersion,
)

T = TypeVar("T")


class State(Enum):
    UNINITIALIZED = "not initialized: call init_transactions first"
    READY = "not in a transaction: call begin_transaction first"
    OPEN = "in a transaction"
    COMMITTING = "committing: call commit_transaction again"
    ABORTING = "aborting: call abort_transaction again"
    FAILED = "in a transaction that has failed: call abort_transaction"
    FENCED = "fenced: close the producer"


class Transactions:
    """Performs the transactions of a producer through the transaction and group coordinators."""

    def __init__(self, cluster: Cluster, config: ProducerConfig, accumulator: Accumulator) -> None:
        self._cluster = cluster
        self._clock = cluster.seams.clock
        self._config = config
        self._id = config.transactional_id
        self._accumulator = accumulator
        self._coordinators = CoordinatorFinder(cluster, TRANSACTION)
        self._groups = CoordinatorFinder(cluster, GROUP)
        # notifies the sender of work
        self.on_change: Callable[[], None] = lambda: None
        self._forget()
        # notifies the producer that records can no longer be added
        self.on_state: Callable[[], None] = lambda: None
        self._state = State.UNINITIALIZED
        self._adding: asyncio.Task[None] | None = None
        self._error: BarnabasError | None = None  # the reason for FAILED or FENCED

    def _forget(self) -> None:
        """Reset the state of the transaction, so that none is open."""
        # partitions that are part of the transaction
        self._partitions: dict[TopicPartition, None] = {}
        self._wanted: dict[TopicPartition, None] = {}  # partitions still to be added
        self._is_begun = False  # the coordinator has confirmed the transaction's start
        self._may_be_begun = False  # the coordinator may have begun it without confirming
        self._needs_bump = False
        self._error = None

    @property
    def state(self) -> State:
        return self._state

    @state.setter
    def state(self, state: State) -> None:
        self._state = state
        self.on_state()

    @property
    def is_open(self) -> bool:
        return self._state is State.OPEN

    # ---- the user's calls ----

    async def init(self) -> None:
        """Obtain an identity. This fences older producers and aborts their transaction."""
        self._check_call(State.UNINITIALIZED)
        try:
            await self._identify()
        except KafkaError as error:
            if isinstance(error, _FATAL):
                self._fence(error)
            raise
        self.state = State.READY

    def begin(self) -> None:
        self._expect(State.READY)
        self._forget()
        self.state = State.OPEN

    async def commit(self) -> None:
        """Wait for all records, then commit. Raises any error that makes an abort necessary."""
        self._check_call(State.OPEN, State.COMMITTING)
        await self._flush()
        # If a record has failed, only an abort is possible, and this raises the error.
        self._expect(State.OPEN, State.COMMITTING)
        self.state = State.COMMITTING
        await self._end(is_commit=True)

    async def abort(self) -> None:
        """Drop unsent records, and abort. Raises an error if the abort must be repeated."""
        self._check_call(State.OPEN, State.FAILED, State.ABORTING)
        self.state = State.ABORTING
        await self._stop_adding()
        self._accumulator.fail_waiting(TransactionAborted("the transaction was aborted"))
        # Batches in flight must be answered before the marker is written, because a batch that
        # arrives after it would hang and hold back the last stable offset (KIP-890).
        await self._flush()
        await self._end(is_commit=False)

    async def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int], group: GroupMetadata | str
    ) -> None:
        """Commit the offsets of a group as part of this transaction (KIP-447)."""
        self._check_call(State.OPEN)
        wanted = as_offsets(offsets)
        who = checked_group(group)
        if not wanted:
            return
        try:
            # Add the group's partition to the transaction first, so that the marker covers the
            # offsets; then write the offsets at the group's own coordinator (KIP-98).
            await self._persist(lambda: self._add_offsets(who.group_id))
            unknown_until_ms = self._clock.monotonic_ms() + _UNKNOWN_TOPIC_MS
            unknown = await self._persist(
                lambda: self._commit_offsets(who, wanted, unknown_until_ms)
            )
            if unknown:
                raise unknown_partitions(who.group_id, unknown, "abort the transaction")
        except BarnabasError as error:
            self._raise_judged(error)

    def check_open(self) -> None:
        """Raise an error unless records can be sent."""
        self._expect(State.OPEN)

    # ---- partitions, as records arrive ----

    def admits(self, topic_partition: TopicPartition) -> bool:
        """Return whether the partition has been added to the transaction."""
        return topic_partition in self._partitions

    def track(self, topic_partition: TopicPartition, batch: ProducerBatch) -> None:
        """Track a new batch for this partition, because the transaction depends on its outcome."""
        batch.when_done(lambda: self._on_batch_done(batch))
        if topic_partition in self._partitions or topic_partition in self._wanted:
            return
        self._wanted[topic_partition] = None
        if self._adding is None:
            self._adding = self._cluster.tasks.start("adding partitions", self._add())

    def on_sequences_lost(self) -> None:
        """Fail the transaction, because the brokers' state for this producer is unknown."""
        if self.state is State.UNINITIALIZED:
            return
        self._needs_bump = True
        if self.state in (State.OPEN, State.COMMITTING):
            self._fail(
                OutOfOrderSequenceNumber(
                    "the outcome of a batch is unknown, so abort the transaction"
                )
            )
        self._accumulator.fail_waiting(self._error or TransactionAborted("no transaction"))

    def _on_batch_done(self, batch: ProducerBatch) -> None:
        if batch.error is not None and self.state in (State.OPEN, State.COMMITTING):
            self.on_refused(batch.error)

    def on_refused(self, error: BarnabasError) -> None:
        """Fail the transaction, because one of its records was not stored."""
        if isinstance(error, ProducerFenced | TransactionalIdAuthorizationFailed):
            self._fence(error)
        elif self.state in (State.OPEN, State.COMMITTING):
            self._fail(error)

    def on_partition_gone(self, error: BarnabasError) -> None:
        """Fail the transaction and its waiting records, because one of its partitions does not
        exist any more.

        The coordinator adds all partitions or none, so the other records would wait as well.
        """
        self.on_refused(error)
        self._accumulator.fail_waiting(self._error or error)

    async def _add(self) -> None:
        """Add partitions to the transaction until there are none left to add."""
        try:
            while self._wanted:
                adding = dict(self._wanted)
                await self._persist(partial(self._add_partitions, adding))
                # The next request adds all partitions that arrive in the meantime.
                for each in adding:
                    del self._wanted[each]
                self._partitions |= adding
                self.on_change()
        except BarnabasError as error:
            self._judge(error)
            self._accumulator.fail_waiting(self._error or error)
        finally:
            self._adding = None

    async def _add_partitions(self, partitions: Mapping[TopicPartition, None]) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=self._accumulator.producer_id,
            v3_and_below_producer_epoch=self._accumulator.producer_epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=name, partitions=numbers)
                for name, numbers in by_topic(partitions).items()
            ],
        )
        channel = await self._coordinators.channel(self._id)
        # After an unanswered request, the coordinator may have begun the transaction, so it must be
        # ended in any case.
        in_doubt, self._may_be_begun = self._may_be_begun, True
        asking = exchange(
            channel,
            ADD_PARTITIONS_TO_TXN,
            request,
            AddPartitionsToTxnResponse,
            _HIGHEST_ADD_PARTITIONS,
        )
        answer = await self._never_late(asking)
        self._may_be_begun = in_doubt
        for topic_answer in answer.results_by_topic_v3_and_below:
            for each in topic_answer.results_by_partition:
                name = TopicPartition(topic_answer.name, each.partition_index)
                if each.partition_error_code == UnknownTopicOrPartition.code:
                    # The topic may have been created again with fewer partitions; the sender then
                    # fails the records.
                    self._cluster.metadata.request_refresh()
                subject = f"adding {name} to the transaction of {self._id!r}"
                self._coordinators.check(self._id, each.partition_error_code, subject)
        self._is_begun = True

    async def _stop_adding(self) -> None:
        if self._adding is not None:
            self._adding.cancel()
            await asyncio.gather(self._adding, return_exceptions=True)
        self._wanted.clear()

    # ---- single exchanges ----

    async def _identify(self) -> None:
        """Obtain an identity, or the next epoch of the current one."""

        async def attempt() -> InitProducerIdResponse:
            channel = await self._coordinators.channel(self._id)
            request = InitProducerIdRequest(
                transactional_id=self._id,
                transaction_timeout_ms=self._config.transaction_timeout_ms,
            )
            # A fenced producer that sends its current identity is rejected, instead of fencing its
            # successor in turn (KIP-360).
            if channel.version(INIT_PRODUCER_ID) >= _BUMP_FROM:
                request.producer_id = self._accumulator.producer_id
                request.producer_epoch = self._accumulator.producer_epoch
            answer = await self._coordinators.call(
                self._id, INIT_PRODUCER_ID, request, InitProducerIdResponse
            )
            self._check(answer.error_code)
            return answer

        answer = await self._persist(attempt)
        self._accumulator.identify(answer.producer_id, answer.producer_epoch)

    async def _add_offsets(self, group_id: str) -> None:
        request = AddOffsetsToTxnRequest(
            transactional_id=self._id,
            producer_id=self._accumulator.producer_id,
            producer_epoch=self._accumulator.producer_epoch,
            group_id=group_id,
        )
        in_doubt, self._may_be_begun = self._may_be_begun, True
        answer = await self._never_late(
            self._coordinators.call(self._id, ADD_OFFSETS_TO_TXN, request, AddOffsetsToTxnResponse)
        )
        self._may_be_begun = in_doubt
        self._check(answer.error_code)
        self._is_begun = True

    async def _commit_offsets(
        self,
        who: GroupMetadata,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        unknown_until_ms: int,
    ) -> list[TopicPartition]:
        """Try once, and return the partitions that are still unknown at `unknown_until_ms`.

        Before that time, an unknown partition raises an error, because the coordinator may not have
        heard of a new topic yet.
        """
        request = TxnOffsetCommitRequest(
            transactional_id=self._id,
            group_id=who.group_id,
            producer_id=self._accumulator.producer_id,
            producer_epoch=self._accumulator.producer_epoch,
            generation_id=who.generation,
            member_id=who.member_id,
            group_instance_id=who.instance_id,
            topics=[
                TxnOffsetCommitTopic(name=name, partitions=own)
                for name, own in commit_entries(offsets, TxnOffsetCommitPartition).items()
            ],
        )
        answer = await self._never_late(
            self._groups.call(who.group_id, TXN_OFFSET_COMMIT, request, TxnOffsetCommitResponse)
        )
        unknown = take_unknown(self._groups, who.group_id, answer.topics)
        if unknown and self._clock.monotonic_ms() < unknown_until_ms:
            raise unknown_partitions(who.group_id, unknown, "abort the transaction")
        return unknown

    async def _end(self, *, is_commit: bool) -> None:
        request = EndTxnRequest(
            transactional_id=self._id,
            producer_id=self._accumulator.producer_id,
            producer_epoch=self._accumulator.producer_epoch,
            committed=is_commit,
        )

        async def attempt() -> None:
            answer = await self._never_late(
                self._coordinators.call(self._id, END_TXN, request, EndTxnResponse)
            )
            if answer.error_code == InvalidTxnState.code and not self._is_begun:
                return  # no unanswered request has arrived either
            self._check(answer.error_code)

        try:
            # Without partitions or offsets, no transaction exists at the coordinator.
            if self._is_begun or self._may_be_begun:
                await self._persist(attempt)
                self._is_begun = self._may_be_begun = False
            if self._needs_bump or self._accumulator.needs_producer_id:
                await self._identify()
        except KafkaError as error:
            if error.retriable:  # the same call can be repeated
                raise
            self._fence(_as_fenced(error))
            if is_commit and not (self._is_begun or self._may_be_begun):
                return  # it is committed; the next call raises the error
            raise
        self._forget()
        self.state = State.READY

    async def _never_late(self, asking: Awaitable[T]) -> T:
        """Obtain a new epoch after a request without a response, because it may arrive late.

        A late EndTxn would end the next transaction too early, and offsets that arrive late would
        become part of it.
        """
        try:
            return await asking
        except (Unreachable, CorruptData, asyncio.CancelledError):
            self._needs_bump = True
            raise

    def _check(self, code: int) -> None:
        self._coordinators.check(self._id, code)

    # ---- errors ----

    def _judge(self, error: BarnabasError) -> None:
        """Handle a coordinator error: only an abort is possible, or the producer is fenced."""
        error = _as_fenced(error)
        if isinstance(error, UnknownProducerId | InvalidProducerIdMapping):
            self._needs_bump = True
        if isinstance(error, _FATAL):
            self._fence(error)
        elif self.state in (State.OPEN, State.COMMITTING):
            self._fail(error)

    def _raise_judged(self, error: BarnabasError) -> NoReturn:
        self._judge(error)
        raise again(self._error or error)

    def _fail(self, error: BarnabasError) -> None:
        _log.info("the transaction of %r has failed: %s", self._id, error)
        self.state, self._error = State.FAILED, error

    def _fence(self, error: BarnabasError) -> None:
        _log.warning("producer %r is fenced: %s", self._id, error)
        self.state, self._error = State.FENCED, error
        self._accumulator.fail_waiting(error)

    def _check_call(self, *states: State) -> None:
        """Raise an error unless the state is one of these and this is the producer's loop."""
        self._cluster.metadata.check_loop()
        self._expect(*states)

    def _expect(self, *states: State) -> None:
        if self.state in states:
            return
        if self._error is not None:
            raise again(self._error)
        raise InvalidTxnState(f"the producer is {self.state.value}")

    # ---- waiting ----

    async def _flush(self) -> None:
        """Wait until every record has an outcome."""
        await wait_until_flushed(self._accumulator, self.on_change)

    async def _persist(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Retry transient errors for up to `max.block.ms`."""
        deadline_ms = self._clock.monotonic_ms() + self._config.max_block_ms
        config = self._cluster.config
        failures = concurrent = 0
        while True:
            try:
                return await attempt()
            except ConcurrentTransactions:
                # This is not a failure, so it does not lengthen the backoff after failures.
                pause_ms = min(_CONCURRENT_FIRST_MS << concurrent, _CONCURRENT_MOST_MS)
                concurrent = min(concurrent + 1, 10)
                if self._clock.monotonic_ms() + pause_ms >= deadline_ms:
                    raise
            except (Unreachable, KafkaError) as error:
                if isinstance(error, KafkaError) and not error.retriable:
                    raise
                failures += 1
                pause_ms = backoff_ms(
                    failures,
                    config.retry_backoff_ms,
                    config.retry_backoff_max_ms,
                    self._cluster.seams.random,
                )
                if self._clock.monotonic_ms() + pause_ms >= deadline_ms:
                    raise
            await asyncio.sleep(pause_ms / 1000)

    async def close(self) -> None:
        """Try to abort an open transaction. Otherwise, the coordinator does so after a timeout."""
        # Leave a committing transaction alone, because the coordinator may have decided it.
        if self.state in (State.OPEN, State.FAILED, State.ABORTING):
            try:
                await self.abort()
            except (Unreachable, KafkaError) as error:
                _log.warning("aborting the transaction of %r at close: %s", self._id, error)
        await self._stop_adding()


def _as_fenced(error: BarnabasError) -> BarnabasError:
    """Turn the error of older coordinators (before version 2 or 4) into
    ProducerFenced (KIP-588).
    """
    if isinstance(error, InvalidProducerEpoch):
        return ProducerFenced(str(error))
    return error
