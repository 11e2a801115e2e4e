"""Implements the transaction coordinator for one partition of `__transaction_state`.

For each transactional id, the machine tracks the producer, the partitions of the transaction, and
the outcome. Each request is a method call that returns a `Decision`; the state changes only in
`apply`. Transactions work as in Kafka 3.9 in version 1 (without the `transaction.version` feature;
KIP-98, KIP-360, and part 1 of KIP-890).

Invariants: an outcome never changes once it is in the log. Markers are written for a decided
transaction until its Complete record is in the log. The epoch of a producer id never decreases.

The machine does not know which partitions exist or which broker leads them. It only decides which
markers to write; the shell writes them and then calls `markers_written`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from barnabas.coordinator import transaction_answers as answers
from barnabas.coordinator.decision import (
    ALL_REPLICATED,
    NO_PRODUCER_ID,
    NOTHING,
    Decision,
    Markers,
    Now,
    Reply,
    StateRecord,
)
from barnabas.coordinator.records import TransactionKey, TransactionValue
from barnabas.coordinator.settings import TransactionConfig
from barnabas.coordinator.timers import TransactionTimeouts
from barnabas.coordinator.transaction import Owner, Transaction, new_transaction, transaction_of
from barnabas.counted import counted
from barnabas.errors import (
    NONE,
    ConcurrentTransactions,
    InvalidProducerIdMapping,
    InvalidRequest,
    InvalidTransactionTimeout,
    InvalidTxnState,
    KafkaError,
    ProducerFenced,
    TransactionAbortable,
    TransactionalIdNotFound,
)
from barnabas.events import Event
from barnabas.protocol.message import Message
from barnabas.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from barnabas.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnTransaction
from barnabas.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from barnabas.protocol.messages.list_transactions import (
    ListedTransactionState,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from barnabas.types import TopicPartition

_NO_OWNER = Owner(NO_PRODUCER_ID, -1)

_RETRY_MS = 1_000

# The maximum number of tombstones in a decision. It is limited because of the batch size and the
# time spent on the event loop.
_FORGOTTEN_AT_ONCE, _FORGOTTEN_CHARACTERS = 1_000, 200_000

_SLOW_TRANSACTION = "commit more often, or raise transaction.timeout.ms of the producer"


class _Continued(NamedTuple):
    """A producer that requested its next epoch (KIP-360) and that may repeat the request."""

    before: Owner
    after: Owner


class Transactions:
    """Coordinates the transactions of one partition. This class is a pure state machine."""

    __slots__ = (
        "_abort_from_ms",
        "_began_ms",
        "_complete_again_ms",
        "_continued",
        "_forget_from_ms",
        "_timeouts",
        "_transactions",
        "_uncompleted",
        "_unmarked",
        "config",
        "epoch",
        "partition",
    )

    def __init__(self, partition: int, epoch: int, config: TransactionConfig) -> None:
        """Create the machine.

        `epoch` is the epoch of the coordinator, which is the leader epoch of its partition.
        """
        self.partition = partition
        self.epoch = epoch
        self.config = config
        self._transactions: dict[str, Transaction] = {}
        """The hard state, ordered by the time of the last update."""
        self._unmarked: dict[str, set[TopicPartition]] = {}
        """The partitions of decided transactions that may not have their marker yet."""
        self._uncompleted: dict[str, None] = {}
        """Transactions that have all markers, but whose Complete record is not in the log yet."""
        self._continued: dict[str, _Continued] = {}
        self._began_ms: dict[str, int] = {}
        """When each ongoing transaction began, on the monotonic clock.

        Records contain the wall-clock time, but the wall clock may be adjusted before the
        transaction ends.
        """
        self._timeouts = TransactionTimeouts()
        self._abort_from_ms = self._forget_from_ms = self._complete_again_ms = 0

    def __iter__(self) -> Iterator[Transaction]:
        """Iterate over all transactions, starting with the least recently updated one."""
        return iter(self._transactions.values())

    def get(self, transactional_id: str) -> Transaction | None:
        return self._transactions.get(transactional_id)

    # --- InitProducerId --------------------------------------------------------------------------

    def needs_producer_id(self, transactional_id: str) -> bool:
        """Return whether the next call of `init_producer_id` needs a new producer id."""
        transaction = self._transactions.get(transactional_id)
        if transaction is None:
            return True
        is_open = transaction.is_ongoing or transaction.is_decided
        return transaction.has_last_epoch and not is_open

    def init_producer_id(
        self,
        ticket: int,
        request: InitProducerIdRequest,
        version: int,
        spare_id: int | None,
        now: Now,
    ) -> Decision:
        """Assign the transactional id to a producer, with a new epoch that fences the previous one.

        `spare_id` is a producer id that has not been used; it is required if `needs_producer_id`
        returned True. If a transaction is ongoing, it is aborted first, and the producer has to
        retry (CONCURRENT_TRANSACTIONS).
        """
        try:
            return self._init_producer_id(ticket, request, spare_id, now)
        except KafkaError as error:
            return _only_reply(ticket, answers.init_failed(error, version))

    def _init_producer_id(
        self, ticket: int, request: InitProducerIdRequest, spare_id: int | None, now: Now
    ) -> Decision:
        name = request.transactional_id
        assert name, "the handler refuses requests without a transactional id"
        claimed = _claimed_owner(request)
        timeout_ms = request.transaction_timeout_ms
        # The timeout is limited by transaction.max.timeout.ms, because an open transaction blocks
        # every reader of committed records.
        if not 0 < timeout_ms <= self.config.max_timeout_ms:
            raise InvalidTransactionTimeout
        transaction = self._transactions.get(name)
        if transaction is not None and transaction.is_decided:
            if claimed is not None and claimed.producer_id != transaction.producer_id:
                raise ProducerFenced
            raise ConcurrentTransactions
        ongoing = transaction if transaction is not None and transaction.is_ongoing else None
        current = transaction.owner if transaction else None
        # If the producer sent no id and epoch, it is starting. Otherwise, it is continuing after an
        # error (KIP-360).
        if current is None or claimed is None or claimed == current:
            if ongoing is not None:
                return self._fence(ticket, ongoing, now)
            owner = self._next_owner(transaction, spare_id)
        elif self._continued.get(name) == (claimed, current):
            owner = current  # the producer did not get the first response
        else:
            # Kafka aborts an ongoing transaction first, and only then checks whether the producer
            # is fenced.
            raise ProducerFenced
        if claimed is not None and current is not None:
            # The entry is valid only as long as `owner` is the current owner.
            self._continued[name] = _Continued(claimed, owner)
        elif (last := self._continued.get(name)) and last.after == owner:
            # the append was rejected, and another producer got this epoch
            del self._continued[name]
        record = new_transaction(name, owner, timeout_ms, now.wall_ms).record()
        answer = InitProducerIdResponse(
            producer_id=owner.producer_id, producer_epoch=owner.producer_epoch
        )
        return Decision((record,), (Reply(ticket, answer),))

    def _next_owner(self, transaction: Transaction | None, spare_id: int | None) -> Owner:
        # KIP-98: the next epoch fences all earlier producers.
        if transaction is not None and not transaction.has_last_epoch:
            return Owner(transaction.producer_id, transaction.producer_epoch + 1)
        assert spare_id is not None, "called without the producer id that it needs"
        return Owner(spare_id, 0)

    def _fence(self, ticket: int, transaction: Transaction, now: Now) -> Decision:
        """Abort the transaction. The producer receives an epoch only after it has ended."""
        answer = answers.init_failed(ConcurrentTransactions(), version=0)
        decision = self._decide(transaction.with_fenced_producer(now.wall_ms))
        lasted_ms = self._lasted_ms(transaction, now)
        event = _aborted(transaction, lasted_ms, "a new producer took its place")
        return decision._replace(replies=(Reply(ticket, answer),), events=(event,))

    # --- partitions ------------------------------------------------------------------------------

    def add_partitions(
        self, ticket: int, request: AddPartitionsToTxnTransaction, version: int, now: Now
    ) -> Decision:
        """Add partitions to the transaction, and reply with an AddPartitionsToTxnResult."""
        partitions = answers.partitions_of(request.topics)
        try:
            transaction = self._find_owned(request)
            records = self._records_adding(transaction, partitions, now)
        except KafkaError as error:
            return _only_reply(ticket, answers.add_failed(request, error, version))
        return Decision(records, (Reply(ticket, answers.add_succeeded(request)),))

    def add_offsets(
        self,
        ticket: int,
        request: AddOffsetsToTxnRequest,
        partition: TopicPartition,
        version: int,
        now: Now,
    ) -> Decision:
        """Add the partition in which a group's offsets are stored to the transaction."""
        try:
            transaction = self._find_owned(request)
            records = self._records_adding(transaction, frozenset({partition}), now)
        except KafkaError as error:
            return _only_reply(ticket, answers.add_offsets_failed(error, version))
        return Decision(records, (Reply(ticket, AddOffsetsToTxnResponse()),))

    def _find_owned(
        self, request: AddPartitionsToTxnTransaction | AddOffsetsToTxnRequest
    ) -> Transaction:
        transaction = self._known(request.transactional_id)
        transaction.check(request.producer_id, request.producer_epoch)
        return transaction

    def _known(self, transactional_id: str) -> Transaction:
        transaction = self._transactions.get(transactional_id)
        if transaction is None:
            raise InvalidProducerIdMapping
        return transaction

    def _records_adding(
        self, transaction: Transaction, partitions: frozenset[TopicPartition], now: Now
    ) -> tuple[StateRecord, ...]:
        if not transaction.is_ongoing:
            self._begin(transaction, now.monotonic_ms)
        # No record is needed, because all of these partitions are already in the transaction. The
        # request may be a retry.
        elif partitions <= transaction.partitions:
            return ()
        return (transaction.with_partitions(partitions, now.wall_ms).record(),)

    def _begin(self, transaction: Transaction, began_ms: int) -> None:
        """Start the transaction's timeout. If the record is not appended, this has no effect."""
        self._began_ms[transaction.transactional_id] = began_ms
        self._timeouts.set(transaction.transactional_id, began_ms + transaction.timeout_ms)

    def _lasted_ms(self, transaction: Transaction, now: Now) -> int:
        return now.monotonic_ms - self._began_ms[transaction.transactional_id]

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Iterable[TopicPartition],
    ) -> dict[TopicPartition, int]:
        """Return an error code for each partition.

        The code is NONE if the partition is in the open transaction of the producer (KIP-890).
        """
        try:
            transaction = self._known(transactional_id)
            transaction.check(producer_id, producer_epoch)
        except KafkaError as error:
            return dict.fromkeys(partitions, error.code)
        known = transaction.partitions
        return {one: NONE if one in known else TransactionAbortable.code for one in partitions}

    # --- the end ---------------------------------------------------------------------------------

    def end(self, ticket: int, request: EndTxnRequest, version: int, wall_ms: int) -> Decision:
        """Commit or abort the transaction.

        The reply is sent when the decision is in the log, without waiting for the markers.
        """
        try:
            transaction = self._known(request.transactional_id)
            transaction.check_owner(request.producer_id, request.producer_epoch)
            reply = Reply(ticket, EndTxnResponse())
            if transaction.is_ongoing:
                decision = self._decide(transaction.with_outcome(request.committed, wall_ms))
                return decision._replace(replies=(reply,))
            if transaction.is_completed and transaction.is_commit == request.committed:
                return Decision(replies=(reply,))  # a retry, because the response was lost
            if transaction.is_decided and transaction.is_commit == request.committed:
                raise ConcurrentTransactions  # markers are still being written
            raise InvalidTxnState
        except KafkaError as error:
            return _only_reply(ticket, answers.end_failed(error, version))

    def _decide(self, decided: Transaction) -> Decision:
        return Decision((decided.record(),), markers=(self._markers(decided),))

    def _markers(self, decided: Transaction) -> Markers:
        return Markers(
            decided.transactional_id,
            decided.producer_id,
            decided.producer_epoch,
            decided.is_commit,
            self.epoch,
            tuple(sorted(decided.partitions)),
        )

    def markers_written(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        now: Now,
    ) -> Decision:
        """Record that these partitions have received their marker or were deleted.

        When no partition is left, the transaction is completed.

        This must be called exactly once for each partition, because the next transaction may have
        the same epoch.
        """
        transaction = self._transactions.get(transactional_id)
        if (
            transaction is None
            or not transaction.is_decided
            # This is a late report about an earlier transaction, because the current transaction
            # has another epoch or is undecided.
            or transaction.owner != (producer_id, producer_epoch)
        ):
            return NOTHING
        unmarked = self._unmarked[transactional_id]
        unmarked.difference_update(partitions)
        if unmarked:
            return NOTHING
        # The append can fail if there are not enough in-sync replicas. `expire` will then retry.
        self._uncompleted[transactional_id] = None
        self._complete_again_ms = now.monotonic_ms + _RETRY_MS
        return Decision((transaction.with_all_markers(now.wall_ms).record(),))

    # --- for admin clients -----------------------------------------------------------------------

    def describe(self, ticket: int, transactional_id: str) -> Decision:
        """Reply with a TransactionState."""
        transaction = self._transactions.get(transactional_id)
        if transaction is None:
            error = TransactionalIdNotFound()
            return _only_reply(ticket, answers.describe_failed(transactional_id, error))
        return Decision(replies=(Reply(ticket, answers.description(transaction)),))

    def list_transactions(
        self, ticket: int, request: ListTransactionsRequest, wall_ms: int
    ) -> Decision:
        """Reply with a ListTransactionsResponse that lists the transactions of this partition."""
        wanted = set(request.state_filters)
        producer_ids = set(request.producer_id_filters)
        duration_ms = request.duration_filter
        states = [
            ListedTransactionState(
                transactional_id=transaction.transactional_id,
                producer_id=transaction.producer_id,
                transaction_state=transaction.status.name,
            )
            for transaction in self
            if (not wanted or transaction.status.name in wanted)
            and (not producer_ids or transaction.producer_id in producer_ids)
            and (duration_ms < 0 or wall_ms - transaction.begun_ms > duration_ms)
        ]
        answer = ListTransactionsResponse(transaction_states=states)
        return Decision(replies=(Reply(ticket, answer),))

    # --- hard state ------------------------------------------------------------------------------

    def apply(
        self,
        record: StateRecord,
        offset: int,
        producer_id: int = NO_PRODUCER_ID,
        high_watermark: int = ALL_REPLICATED,
    ) -> None:
        """Apply a record from the log. Hard state changes only here. Raises CorruptData."""
        key, value = record
        assert isinstance(key, TransactionKey)
        name = key.transactional_id
        self._unmarked.pop(name, None)
        self._uncompleted.pop(name, None)
        # This is a tombstone, so the id has expired (KIP-98).
        if value is None:
            self._transactions.pop(name, None)
            self._continued.pop(name, None)
            self._began_ms.pop(name, None)
            return
        assert isinstance(value, TransactionValue)
        transaction = transaction_of(key, value)
        self._transactions.pop(name, None)  # keep the most recently updated id at the end
        self._transactions[name] = transaction
        if transaction.is_ongoing:
            self._continued.pop(name, None)  # the producer has received its epoch
            return
        self._began_ms.pop(name, None)
        # The log has been replayed, so all markers of the transaction have to be written again.
        if transaction.is_decided:
            self._unmarked[name] = set(transaction.partitions)

    def end_transaction(self, producer_id: int, is_commit: bool) -> None:
        """Do nothing, because no transaction writes to this topic."""

    def on_loaded(self, now: Now) -> Decision:
        """Finish the replay.

        It is unknown which markers have been written, so the markers of all decided transactions
        are written again. The timeout of an ongoing transaction is counted from the start time in
        its record.
        """
        now_ms = now.monotonic_ms
        self._abort_from_ms = now_ms + self.config.abort_interval_ms
        self._forget_from_ms = now_ms + self.config.expiration_interval_ms
        for transaction in self:
            if transaction.is_ongoing:
                self._begin(transaction, now_ms - max(0, now.wall_ms - transaction.begun_ms))
        decided = [self._transactions[name] for name in self._unmarked]
        return Decision(markers=tuple(self._markers(transaction) for transaction in decided))

    # --- deadlines -------------------------------------------------------------------------------

    def deadline_ms(self) -> int | None:
        """Return when `expire` must be called, or None if there is nothing to wait for."""
        if not self._transactions:
            return None
        deadline_ms = self._forget_from_ms
        timeout_ms = self._timeouts.next_ms
        if timeout_ms is not None:
            deadline_ms = min(deadline_ms, max(timeout_ms, self._abort_from_ms))
        if self._uncompleted:
            deadline_ms = min(deadline_ms, self._complete_again_ms)
        return deadline_ms

    def expire(self, now: Now, *, may_forget: bool = True) -> list[Decision]:
        """Abort transactions that have timed out, remove unused ids, and retry failed completions.

        If `may_forget` is false, no id is removed, because it is unknown how long the ids have been
        unused.
        """
        now_ms = now.monotonic_ms
        decisions = []
        if self._uncompleted and now_ms >= self._complete_again_ms:
            self._complete_again_ms = now_ms + _RETRY_MS
            marked = [self._transactions[name] for name in self._uncompleted]
            decisions += [
                Decision((each.with_all_markers(now.wall_ms).record(),)) for each in marked
            ]
        # As in Kafka, this is done at most once per
        # transaction.abort.timed.out.transaction.cleanup.interval.ms.
        if now_ms >= self._abort_from_ms and (late := self._late(now_ms)):
            self._abort_from_ms = now_ms + self.config.abort_interval_ms
            decisions += [self._time_out(transaction, now) for transaction in late]
        if now_ms >= self._forget_from_ms:
            self._forget_from_ms = now_ms + self.config.expiration_interval_ms
            decisions += self._forget(now) if may_forget else []
        return decisions

    def _late(self, now_ms: int) -> list[Transaction]:
        late = []
        for name in self._timeouts.take(now_ms):
            transaction = self._transactions.get(name)
            # The entry is for a transaction that has already ended in time.
            if transaction is None or not transaction.is_ongoing:
                continue
            due_ms = self._began_ms[name] + transaction.timeout_ms
            if due_ms < now_ms:
                late.append(transaction)
                # This only has an effect if the append is rejected.
                self._timeouts.set(name, now_ms + self.config.abort_interval_ms)
            else:
                self._timeouts.set(name, due_ms)
        return late

    def _time_out(self, transaction: Transaction, now: Now) -> Decision:
        lasted_ms = self._lasted_ms(transaction, now)
        why = f"its timeout is {transaction.timeout_ms} ms"
        event = _aborted(transaction, lasted_ms, why, _SLOW_TRANSACTION)
        return self._decide(transaction.with_fenced_producer(now.wall_ms))._replace(events=(event,))

    def _forget(self, now: Now) -> list[Decision]:
        """Return tombstones for the ids that have been unused for the longest time (KIP-98)."""
        until_ms = now.wall_ms - self.config.expiration_ms
        tombstones: list[StateRecord] = []
        characters = 0
        for name, transaction in self._transactions.items():
            # Transactions are ordered by their last update, so all remaining ones were updated
            # later.
            if transaction.updated_ms > until_ms:
                break
            # An id does not expire while its transaction is in progress.
            if transaction.is_ongoing or transaction.is_decided:
                continue
            if len(tombstones) >= _FORGOTTEN_AT_ONCE or characters >= _FORGOTTEN_CHARACTERS:
                self._forget_from_ms = now.monotonic_ms + _RETRY_MS
                break
            characters += len(name)
            tombstones.append(StateRecord(TransactionKey(transactional_id=name), None))
        return [Decision(tuple(tombstones))] if tombstones else []


def _only_reply(ticket: int, answer: Message) -> Decision:
    return Decision(replies=(Reply(ticket, answer),))


def _claimed_owner(request: InitProducerIdRequest) -> Owner | None:
    """Return the id and epoch that the producer sent as its current ones, if any (KIP-360)."""
    claimed = Owner(request.producer_id, request.producer_epoch)
    if claimed == _NO_OWNER:
        return None
    # KIP-360: a producer sends either both values or neither.
    if claimed.producer_id == NO_PRODUCER_ID or claimed.producer_epoch == _NO_OWNER.producer_epoch:
        raise InvalidRequest
    return claimed


def _aborted(transaction: Transaction, lasted_ms: int, reason: str, advice: str = "") -> Event:
    line = (
        f"transaction of {transaction.transactional_id!r} (producer {transaction.producer_id}, "
        f"epoch {transaction.producer_epoch}) aborted after {lasted_ms} ms "
        f"with {counted(len(transaction.partitions), 'partition')}: {reason}"
    )
    return Event("transaction-aborted", line, reason, is_harmless=False, advice=advice)
