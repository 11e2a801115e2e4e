"""Which brokers hold a new topic's replicas (TP-7).

Brokers stand in a ring. Partition i has its first replica on broker (start + i) of the ring, so
leaders spread. Its other replicas follow in the ring's order from a distance that grows each time
the partitions have gone round, so that the load of a broker that fails falls on all the others and
not on its neighbour alone. `start` and `shift` are random numbers in production, lest all small
topics begin on the same broker.

With racks (all brokers have one, or they do not count) the ring alternates between them, and each
further replica goes to a rack that has none of this partition yet, while there is one. Without
racks each broker is a rack of its own, and the same rule holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle

from barnabas.errors import InvalidPartitions, InvalidReplicationFactor

Assignment = dict[int, list[int]]
"""Replicas by partition, the preferred leader first."""


def place(
    racks: Mapping[int, str | None],
    partitions: int,
    replication_factor: int,
    start: int,
    shift: int,
) -> Assignment:
    """Replicas for partitions 0, 1, ...; `racks` names the live brokers and where they stand.

    Raises InvalidPartitions, or InvalidReplicationFactor (TP-5: more replicas than live brokers).
    """
    if partitions <= 0:
        raise InvalidPartitions(f"{partitions} partitions: at least one is needed")
    if replication_factor <= 0:
        raise InvalidReplicationFactor(
            f"replication factor {replication_factor}: at least one replica is needed"
        )
    if replication_factor > len(racks):
        raise InvalidReplicationFactor(
            f"replication factor {replication_factor}: only {len(racks)} brokers are live"
        )
    ring, rack_of = _ring(racks)
    assignment = {}
    for partition in range(partitions):
        if partition and partition % len(ring) == 0:
            shift += 1
        first = (start + partition) % len(ring)
        distance = shift * len(set(rack_of.values()))
        others = _others(ring, first, distance)
        assignment[partition] = _spread(ring[first], others, replication_factor, rack_of)
    return assignment


def _ring(racks: Mapping[int, str | None]) -> tuple[list[int], Mapping[int, object]]:
    """The brokers in the order in which replicas go round, and the rack of each."""
    brokers = sorted(racks)
    if any(racks[broker] is None for broker in brokers):
        return brokers, {broker: broker for broker in brokers}
    by_rack: dict[str, list[int]] = {}
    for broker in brokers:
        by_rack.setdefault(str(racks[broker]), []).append(broker)
    # One of each rack in turn; a rack that has run out is passed over.
    turns = [(turn, rack) for rack, members in by_rack.items() for turn in range(len(members))]
    return [by_rack[rack][turn] for turn, rack in sorted(turns)], racks


def _others(ring: Sequence[int], first: int, distance: int) -> Iterator[int]:
    """The brokers after the first one, round and round, `distance` of them passed over."""
    others = [*ring[first + 1 :], *ring[:first]]
    skipped = distance % len(others) if others else 0
    return cycle(others[skipped:] + others[:skipped])


def _spread(
    leader: int, others: Iterator[int], replication_factor: int, rack_of: Mapping[int, object]
) -> list[int]:
    """The leader, and those of the others that come first and bring in a new rack."""
    replicas = [leader]
    used = {rack_of[leader]}
    racks = len(set(rack_of.values()))
    while len(replicas) < replication_factor:
        broker = next(others)
        if broker not in replicas and (rack_of[broker] not in used or len(used) == racks):
            replicas.append(broker)
            used.add(rack_of[broker])
    return replicas
