"""What a watcher makes of partitions: how far replicas are, since when, what has changed. Pure.

Brokers say where a replica ends, not since when it lacks something. The watcher remembers where the
leader's log ended at each look: a replica is as far behind as the last look is ago at which the
leader had no more than the replica has now. Whoever has not been seen complete is behind since the
first look, at least.

Looks are a moment apart, and replicas are asked one beside the other: what is between two answers
may show as a lag of some records while producers write.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from barnabas.client.admin import TopicDescription
from barnabas.client.replica_admin import ReplicaEnd
from barnabas.client.view import PartitionView
from barnabas.types import TopicPartition

Ends = Mapping[TopicPartition, Mapping[int, ReplicaEnd]]

_LONGEST_MEMORY = 10_000  # looks at a leader whose log grew in between


class ReplicaRow(NamedTuple):
    broker_id: int
    is_leader: bool
    is_in_sync: bool
    is_live: bool  # its broker is registered
    end: ReplicaEnd | None  # None: its broker does not say
    lag_records: int | None  # behind the leader's end; None: nobody knows
    lag_ms: int | None


class PartitionRow(NamedTuple):
    name: TopicPartition
    leader: int  # -1: none
    leader_epoch: int
    isr: tuple[int, ...]
    high_watermark: int | None
    replicas: tuple[ReplicaRow, ...]  # as assigned, the preferred leader first

    @property
    def is_well(self) -> bool:
        return self.leader >= 0 and len(self.isr) == len(self.replicas)


class Change(NamedTuple):
    at_ms: int
    name: TopicPartition
    text: str


class Look(NamedTuple):
    rows: list[PartitionRow]  # by topic and number
    changes: list[Change]  # since the look before


class _Memory:
    """What is remembered of one partition."""

    __slots__ = ("_caught_up_at_ms", "_first_at_ms", "_leader_ends", "row")

    def __init__(self, now_ms: int) -> None:
        self._first_at_ms = now_ms
        self._leader_ends: deque[tuple[int, int]] = deque(maxlen=_LONGEST_MEMORY)  # (when, where)
        self._caught_up_at_ms: dict[int, int] = {}  # by broker
        self.row: PartitionRow | None = None  # at the last look

    def look(
        self,
        name: TopicPartition,
        partition: PartitionView,
        live: Collection[int],
        ends: Mapping[int, ReplicaEnd],
        now_ms: int,
    ) -> PartitionRow:
        """The partition as it is now, given what its replicas say."""
        leader_end = ends.get(partition.leader)
        if leader_end is not None:
            _remember(self._leader_ends, now_ms, leader_end.end_offset)
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
        """When the replica had all that its leader had, as far as that was seen."""
        known_ms = self._caught_up_at_ms.get(broker_id, self._first_at_ms)
        if end is not None:
            known_ms = max(known_ms, _caught_up_at_ms(self._leader_ends, end.end_offset))
            self._caught_up_at_ms[broker_id] = known_ms
        return known_ms


class Watch:
    """Fed with what the cluster answers, look by look."""

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
        """What there is now, and what is new since the last time; the first time nothing is."""
        rows, changes = [], []
        for topic in topics:
            for partition in topic.partitions:
                name = TopicPartition(topic.name, partition.partition)
                memory = self._memories.setdefault(name, _Memory(now_ms))
                before = memory.row
                row = memory.look(name, partition, live, ends.get(name, {}), now_ms)
                rows.append(row)
                if before is not None:
                    changes += [Change(now_ms, name, text) for text in _news(before, row)]
                elif self._has_looked:
                    changes.append(Change(now_ms, name, f"is new, led by {_leader(row.leader)}"))
        for name in sorted(self._memories.keys() - {row.name for row in rows}):
            del self._memories[name]
            changes.append(Change(now_ms, name, "is deleted"))
        self._has_looked = True
        return Look(sorted(rows), changes)


def _remember(leader_ends: deque[tuple[int, int]], now_ms: int, end_offset: int) -> None:
    """Of looks at the same end the last one counts; a log that was cut forgets what it lost."""
    while leader_ends and leader_ends[-1][1] >= end_offset:
        leader_ends.pop()
    leader_ends.append((now_ms, end_offset))


def _caught_up_at_ms(leader_ends: deque[tuple[int, int]], end_offset: int) -> int:
    """The last look at which the leader had no more than that; 0: none that is remembered."""
    for at_ms, leader_end in reversed(leader_ends):
        if leader_end <= end_offset:
            return at_ms
    return 0


def _news(before: PartitionRow, now: PartitionRow) -> Iterator[str]:
    """What is different, each with its reason as far as an onlooker can tell."""
    was = {replica.broker_id: replica for replica in before.replicas}
    live = {replica.broker_id for replica in now.replicas if replica.is_live}
    before_ids, now_ids = tuple(was), tuple(replica.broker_id for replica in now.replicas)
    if before_ids != now_ids:
        yield f"replicas {_ids(before_ids)} -> {_ids(now_ids)}: it is being moved, or was"
    if before.leader != now.leader:
        yield (
            f"leader {_leader(before.leader)} -> {_leader(now.leader)}, "
            f"epoch {now.leader_epoch}: {_why_led(before, now, live)}"
        )
    elif before.leader_epoch != now.leader_epoch:
        yield f"epoch {before.leader_epoch} -> {now.leader_epoch}: {_why_epoch(before, now, live)}"
    for broker_id in before.isr:
        if broker_id not in now.isr:
            yield f"broker {broker_id} left the ISR: {_why_out(was.get(broker_id), now, live)}"
    for broker_id in now.isr:
        if broker_id not in before.isr:
            why = "it was elected" if broker_id == now.leader else "it has caught up"
            yield f"broker {broker_id} joined the ISR: {why}"


def _why_led(before: PartitionRow, now: PartitionRow, live: Collection[int]) -> str:
    old, new = before.leader, now.leader
    if new < 0:
        return "no replica that lives was in sync"
    if new not in before.isr:
        return f"broker {new} was not in sync, records may be lost"
    if old < 0:
        return f"broker {new} is back, and was in sync"
    if old not in live and old in {replica.broker_id for replica in now.replicas}:
        return f"broker {old} has gone"
    if now.replicas[0].broker_id == new:
        return "it is the preferred leader"
    return f"broker {old} gave it away, as one does that is to stop"


def _why_epoch(before: PartitionRow, now: PartitionRow, live: Collection[int]) -> str:
    lost = [broker_id for broker_id in before.isr if broker_id not in now.isr]
    if lost and lost[0] not in live:
        return f"broker {lost[0]} has gone"
    if lost:
        return f"broker {lost[0]} is to stop"
    return "a new election with the same outcome"


def _why_out(was: ReplicaRow | None, now: PartitionRow, live: Collection[int]) -> str:
    if was is None or was.broker_id not in {replica.broker_id for replica in now.replicas}:
        return "it is no replica any more"
    if was.broker_id not in live:
        return "it has gone"
    row = next(replica for replica in now.replicas if replica.broker_id == was.broker_id)
    if row.lag_records is None:
        return "it does not answer"
    if row.lag_records or was.lag_records:
        records = max(row.lag_records, was.lag_records or 0)
        return f"it is {records} records behind"
    return "it is to stop, or was away for a moment"


def _leader(broker_id: int) -> str:
    return "nobody" if broker_id < 0 else f"broker {broker_id}"


def _ids(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))
