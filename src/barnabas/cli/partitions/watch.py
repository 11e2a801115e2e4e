"""Derives what a watcher shows about partitions: the lag of their replicas, and what has changed.
Pure.

Brokers report where a replica's log ends, but not how long it has been behind. The watcher
therefore remembers the leader's log end at each poll. A replica has been behind since the last poll
at which the leader's log was no longer than the replica's is now. If a replica has never been seen
with all records, it has been behind at least since the first poll.

The reason for a change is not visible from outside. Barnabas brokers report the reasons as events
(`reasons`), which are shown next to the changes; other brokers report none.

Replicas do not respond at the same instant. While producers write, the time between two responses
may therefore appear as a lag of a few records.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from barnabas.client.admin.admin import TopicDescription
from barnabas.client.admin.replica_admin import ReplicaEnd
from barnabas.client.view import PartitionView
from barnabas.counted import counted
from barnabas.events import Event
from barnabas.types import TopicPartition

Ends = Mapping[TopicPartition, Mapping[int, ReplicaEnd]]

_REASONS = frozenset({"election", "isr-shrink", "isr-expand", "reassignment"})
"""The kinds of events that explain changes."""
_LONGEST_MEMORY = 10_000  # the number of polls to remember


class ReplicaRow(NamedTuple):
    broker_id: int
    is_leader: bool
    is_in_sync: bool
    is_live: bool  # whether its broker is registered
    end: ReplicaEnd | None  # None if its broker did not report it
    lag_records: int | None  # in records behind the leader; None if unknown
    lag_ms: int | None


class PartitionRow(NamedTuple):
    name: TopicPartition
    leader: int  # -1 means that there is none
    leader_epoch: int
    isr: tuple[int, ...]
    high_watermark: int | None
    replicas: tuple[ReplicaRow, ...]  # in the assigned order, with the preferred leader first

    @property
    def is_well(self) -> bool:
        return self.leader >= 0 and len(self.isr) == len(self.replicas)


class Change(NamedTuple):
    at_ms: int
    name: TopicPartition
    text: str


class Look(NamedTuple):
    rows: list[PartitionRow]  # by topic and number
    changes: list[Change]  # changes since the previous poll


class _Memory:
    """Remembers the history of one partition."""

    __slots__ = ("_caught_up_at_ms", "_first_at_ms", "_leader_ends", "row")

    def __init__(self, now_ms: int) -> None:
        self._first_at_ms = now_ms
        self._leader_ends: deque[tuple[int, int]] = deque(maxlen=_LONGEST_MEMORY)  # (when, where)
        self._caught_up_at_ms: dict[int, int] = {}  # by broker
        self.row: PartitionRow | None = None  # as of the last poll

    def look(
        self,
        name: TopicPartition,
        partition: PartitionView,
        live: Collection[int],
        ends: Mapping[int, ReplicaEnd],
        now_ms: int,
    ) -> PartitionRow:
        """Return the partition's current state, based on the log ends of its replicas."""
        leader_end = ends.get(partition.leader)
        if leader_end is not None:
            _remember(self._leader_ends, now_ms, leader_end.end_offset)
        # If a leader does not respond, its log ends at or after the last end seen.
        newest = self._leader_ends[-1][1] if self._leader_ends else None
        replicas = []
        for broker_id in partition.replicas:
            end = ends.get(broker_id)
            lag_records = None if end is None or newest is None else max(newest - end.end_offset, 0)
            since_ms = self._complete_at_ms(broker_id, end)
            replicas.append(
                ReplicaRow(
                    broker_id,
                    broker_id == partition.leader,
                    broker_id in partition.isr,
                    broker_id in live,
                    end,
                    lag_records,
                    0 if lag_records == 0 else None if newest is None else now_ms - since_ms,
                )
            )
        self.row = PartitionRow(
            name,
            partition.leader,
            partition.leader_epoch,
            partition.isr,
            None if leader_end is None else leader_end.high_watermark,
            tuple(replicas),
        )
        return self.row

    def _complete_at_ms(self, broker_id: int, end: ReplicaEnd | None) -> int:
        """Return the last known time at which the replica had caught up with its leader."""
        known_ms = self._caught_up_at_ms.get(broker_id, self._first_at_ms)
        if end is not None:
            known_ms = max(known_ms, _caught_up_at_ms(self._leader_ends, end.end_offset))
            self._caught_up_at_ms[broker_id] = known_ms
        return known_ms


class Watch:
    """Converts the cluster's responses to each poll to rows and changes."""

    def __init__(self) -> None:
        self._memories: dict[TopicPartition, _Memory] = {}
        self._has_looked = False

    def look(
        self,
        now_ms: int,
        topics: Iterable[TopicDescription],
        live: Collection[int],
        ends: Ends,
    ) -> Look:
        """Return the current rows, and the changes since the last poll. The first call returns no
        changes.
        """
        rows, changes = [], []
        for topic in topics:
            for partition in topic.partitions:
                name = TopicPartition(topic.name, partition.partition)
                memory = self._memories.setdefault(name, _Memory(now_ms))
                before = memory.row
                row = memory.look(name, partition, live, ends.get(name, {}), now_ms)
                rows.append(row)
                # A change is the difference between two polls, but a new partition has no earlier
                # poll.
                if before is not None:
                    changes += [Change(now_ms, name, text) for text in _news(before, row)]
                elif self._has_looked:
                    changes.append(Change(now_ms, name, f"is new, leader {_leader(row.leader)}"))
        for name in sorted(self._memories.keys() - {row.name for row in rows}):
            del self._memories[name]
            changes.append(Change(now_ms, name, "is deleted"))
        self._has_looked = True
        return Look(sorted(rows), changes)


def reasons(events: Iterable[Event], watched: Collection[TopicPartition]) -> list[Change]:
    """Return brokers' events about the leaders, ISRs and replicas of these partitions."""
    return [
        Change(event.at_ms, name, f"{event.kind} because {event.cause}")
        for event in events
        if event.cause
        and event.kind in _REASONS
        and (name := TopicPartition(event.topic, event.partition)) in watched
    ]


def _remember(leader_ends: deque[tuple[int, int]], now_ms: int, end_offset: int) -> None:
    """Add a poll. Of several polls with the same log end, only the last one is kept. After a
    truncation, polls with a higher log end are removed.
    """
    while leader_ends and leader_ends[-1][1] >= end_offset:
        leader_ends.pop()
    leader_ends.append((now_ms, end_offset))


def _caught_up_at_ms(leader_ends: deque[tuple[int, int]], end_offset: int) -> int:
    """Return the time of the last poll at which the leader's log end was at most this
    offset, or 0.
    """
    for at_ms, leader_end in reversed(leader_ends):
        # This is the latest poll at which the leader's log was no longer than the replica's is now.
        if leader_end <= end_offset:
            return at_ms
    return 0


def _news(before: PartitionRow, now: PartitionRow) -> Iterator[str]:
    """Yield the differences between two polls."""
    before_ids, now_ids = _replicas(before), _replicas(now)
    if before_ids != now_ids:
        yield f"replicas {_ids(before_ids)} -> {_ids(now_ids)}"
    if before.leader != now.leader:
        change = f"leader {_leader(before.leader)} -> {_leader(now.leader)}"
        yield f"{change}, epoch {now.leader_epoch}{_standing_of([before.leader], now)}"
    elif before.leader_epoch != now.leader_epoch:
        yield f"epoch {before.leader_epoch} -> {now.leader_epoch}"
    if set(before.isr) != set(now.isr):
        left = [broker_id for broker_id in before.isr if broker_id not in now.isr]
        yield f"ISR {_ids(before.isr) or 'empty'} -> {_ids(now.isr) or 'empty'}" + _standing_of(
            left, now
        )


def _standing_of(broker_ids: Iterable[int], now: PartitionRow) -> str:
    """Return details from this poll about replicas that lost their status."""
    found = {replica.broker_id: replica for replica in now.replicas}
    facts = []
    for broker_id in broker_ids:
        replica = found.get(broker_id)
        if replica is None:
            continue
        if not replica.is_live:
            facts.append(f"broker {broker_id} is not registered")
        elif replica.lag_records is None:
            facts.append(f"broker {broker_id} does not report where its log ends")
        elif replica.lag_records:
            facts.append(f"broker {broker_id} is {counted(replica.lag_records, 'record')} behind")
    return f" ({', '.join(facts)})" if facts else ""


def _replicas(row: PartitionRow) -> tuple[int, ...]:
    return tuple(replica.broker_id for replica in row.replicas)


def _leader(broker_id: int) -> str:
    return "none" if broker_id < 0 else f"broker {broker_id}"


def _ids(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))
