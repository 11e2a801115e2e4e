"""Checks transactions: their producers' attempts and outcomes, and the view of committed readers.

A transaction's outcome is the one that its producer received. If the producer received no answer
after asking for a commit, either outcome is right, but it must apply to the whole transaction. If
the coordinators' log, or a partition, legally lost records (no disk has them any longer), nothing
that depends on them is judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import TYPE_CHECKING

from barnabas.cluster.layout import TRANSACTION_TOPIC
from barnabas.coordinator.records import (
    TransactionKey,
    TransactionStatus,
    TransactionValue,
    decode_transaction_record,
)
from barnabas.coordinator.transaction import Transaction, transaction_of
from barnabas.storage.transaction_index import AbortedTransaction
from barnabas.types import TopicPartition
from simulation.disk import ABORTS, COMMITS, IN_TRANSACTION, STATE, Entry

if TYPE_CHECKING:
    from simulation.cluster import Cluster

_Status = TransactionStatus
_NEXT: dict[_Status, tuple[_Status, ...]] = {
    _Status.Empty: (_Status.Empty, _Status.Ongoing),
    _Status.Ongoing: (_Status.Ongoing, _Status.PrepareCommit, _Status.PrepareAbort),
    _Status.PrepareCommit: (_Status.CompleteCommit,),
    _Status.PrepareAbort: (_Status.CompleteAbort,),
    _Status.CompleteCommit: (_Status.Ongoing, _Status.Empty),
    _Status.CompleteAbort: (_Status.Ongoing, _Status.Empty),
}
"""The states that may follow each state in the log of the coordinators."""


class Outcome(Enum):
    """The outcome of a transaction, as far as its producer knows."""

    OPEN = "open"
    ASKED = "asked to be committed"
    COMMITTED = "committed"
    ABORTED = "aborted"


class Tried:
    """One transaction of one producer."""

    __slots__ = ("number", "outcome", "places", "transactional_id")

    def __init__(self, number: int, transactional_id: str) -> None:
        self.number = number
        self.transactional_id = transactional_id
        self.outcome = Outcome.OPEN
        self.places: dict[int, tuple[TopicPartition, bytes, int]] = {}
        """For each of its values, the partition and topic id to which it was written, and its
        offset (-1 if unknown)."""

    def __str__(self) -> str:
        return f"transaction {self.number} of {self.transactional_id} ({self.outcome.value})"


class TransactionChecks:
    """All transactions of one run."""

    __slots__ = ("_by_value", "_cluster", "_states", "transactions")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._states: dict[str, Transaction] = {}
        self._by_value: dict[int, Tried] = {}
        self.transactions: list[Tried] = []

    def begin(self, transactional_id: str) -> Tried:
        tried = Tried(len(self.transactions) + 1, transactional_id)
        self.transactions.append(tried)
        return tried

    def sends(self, tried: Tried, value: int, name: TopicPartition, topic_id: bytes) -> None:
        tried.places[value] = (name, topic_id, -1)
        self._by_value[value] = tried

    @property
    def is_suspended(self) -> bool:
        """Whether coordinators may legally have forgotten what they decided."""
        cluster = self._cluster
        if not cluster.options.transactional:
            return False
        histories = [
            cluster.checks.history(TopicPartition(TRANSACTION_TOPIC, number))
            for number in range(cluster.options.transaction_partitions)
        ]
        return any(history.resets or history.is_forked for history in histories)

    # --- the log of the coordinators -------------------------------------------------------------

    def committed(self, entries: Iterable[Entry]) -> None:
        """Record that these records of coordinators are below the high watermark."""
        for entry in entries:
            for key, value in entry.payload:
                record = decode_transaction_record(key, value)
                assert isinstance(record.key, TransactionKey)
                if record.value is None:
                    self._states.pop(record.key.transactional_id, None)
                    continue
                assert isinstance(record.value, TransactionValue)
                self._follows(transaction_of(record.key, record.value))

    def _follows(self, after: Transaction) -> None:
        before = self._states.get(after.transactional_id)
        self._states[after.transactional_id] = after
        if before is None or self.is_suspended:
            return
        self._cluster.checks.judge(
            "outcome", _may_follow(before, after), "{} after {}", after, before
        )

    # --- readers ---------------------------------------------------------------------------------

    def read(self, name: TopicPartition, entries: Sequence[Entry]) -> None:
        """Judge what a reader of committed records was given."""
        history = self._cluster.checks.history(name)
        # If a partition has lost acknowledged records, a marker may have been among them: the rest
        # of its transaction is ended by its producer's next one.
        suspended = self.is_suspended or history.resets or history.is_forked
        for entry in entries:
            tried = self._by_value.get(entry.value)
            if tried is not None and not suspended:
                self._cluster.checks.judge(
                    "transaction",
                    tried.outcome in (Outcome.ASKED, Outcome.COMMITTED),
                    "{}: {} was read as committed, and belongs to {}",
                    name,
                    entry,
                    tried,
                )

    # --- at the end ------------------------------------------------------------------------------

    def settle(self) -> None:
        """Judge the end, when nothing is open: each transaction is visible as a whole, or not at
        all."""
        if self.is_suspended:
            return
        seen = self._seen()
        for tried in self.transactions:
            found = {
                value: value in seen
                for value, place in tried.places.items()
                if self._is_judged(*place)
            }
            if not found:
                continue
            if tried.outcome is Outcome.COMMITTED:
                is_right = all(found.values())
            elif tried.outcome is Outcome.ASKED:
                is_right = len(set(found.values())) == 1
            else:
                is_right = not any(found.values())
            self._cluster.checks.judge("transaction", is_right, "{}: it has {}", tried, found)

    def _is_judged(self, name: TopicPartition, topic_id: bytes, offset: int) -> bool:
        """Return whether a record must exist if it was committed, because it has not been deleted
        since."""
        history = self._cluster.checks.history(name)
        if history.topic_id != topic_id or history.resets or history.is_forked:
            return False
        return not history.deleted_below or offset >= history.deleted_below

    def _seen(self) -> set[int]:
        seen: set[int] = set()
        for name in self._cluster.partitions:
            stored = self._cluster.checks.history(name).stored
            assert stored is not None
            log = self._cluster.brokers[stored.leader].hosted[name].log
            end = log.producers.stable_below(log.log_end_offset)
            entries = log.entries_in(log.base, end, len(log.entries))
            seen.update(
                entry.value for entry in committed_of(entries, log.aborted_in(log.base, end))
            )
        return seen

    def open_in(self, name: TopicPartition) -> str | None:
        """Return what keeps readers of committed records from reaching the end of a partition, or
        None.
        """
        history = self._cluster.checks.history(name)
        if self.is_suspended or history.resets or history.is_forked or history.stored is None:
            return None
        log = self._cluster.brokers[history.stored.leader].hosted[name].log
        end = log.log_end_offset
        stable = log.producers.stable_below(end)
        return None if stable == end else f"stable up to {stable} of {end}: a transaction hangs"


def committed_of(entries: Sequence[Entry], aborted: Sequence[AbortedTransaction]) -> list[Entry]:
    """Return the records that a reader of committed records shows (KIP-98)."""
    ahead = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
    aborting: dict[int, None] = {}
    found = []
    for entry in entries:
        while ahead and ahead[-1].first_offset <= entry.offset:
            aborting[ahead.pop().producer_id] = None
        if entry.kind == ABORTS:
            aborting.pop(entry.producer, None)
        if entry.kind in (COMMITS, ABORTS, STATE):
            continue
        if entry.kind != IN_TRANSACTION or entry.producer not in aborting:
            found.append(entry)
    return found


def _may_follow(before: Transaction, after: Transaction) -> bool:
    if after.status not in _NEXT[before.status]:
        return False
    if after.producer_id != before.producer_id:
        return after.status is _Status.Empty and before.has_last_epoch
    if after.status is _Status.Empty:
        # A repetition: a producer that got no answer for its next epoch asks again.
        is_again = before.status is _Status.Empty
        return after.producer_epoch - before.producer_epoch in ((0, 1) if is_again else (1,))
    if after.status is _Status.PrepareAbort:
        return after.producer_epoch - before.producer_epoch in (0, 1)
    return after.producer_epoch == before.producer_epoch
