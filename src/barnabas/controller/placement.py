"""Assigns the replicas of a topic to brokers (TP-7).

The brokers form a ring. The first replica of partition i is on broker (start + i) of the ring,
which distributes the leaders evenly. The other replicas are on the brokers that follow in the ring,
at a distance that grows with each round of partitions. If a broker fails, its load is therefore
spread over all other brokers instead of moving to the next one. In production, `start` and `shift`
are random, so that small topics do not all start on the same broker. If partitions are added to a
topic, the start is the broker of its first partition.

Racks are used only if every broker has one. In that case, the ring alternates between racks, and
each further replica is placed in a rack that does not have a replica of the partition yet, if there
is such a rack. Without racks, every broker counts as a rack of its own, and the same rule applies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from typing import NamedTuple

from barnabas.errors import InvalidPartitions, InvalidReplicationFactor

Assignment = dict[int, list[int]]
"""Maps each partition to its replicas. The preferred leader comes first."""


class _Ring(NamedTuple):
    """The brokers in the order of the ring, and the rack of each broker."""

    brokers: Sequence[int]
    rack_of: Mapping[int, object]
    racks: int


def place(
    racks: Mapping[int, str | None],
    partitions: int,
    replication_factor: int,
    start: int,
    shift: int,
) -> Assignment:
    """Assign replicas to partitions 0, 1, ... `racks` maps each live broker to its rack.

    Raises InvalidPartitions or, if there are fewer live brokers than replicas,
    InvalidReplicationFactor (TP-5).
    """
    if partitions <= 0:
        raise InvalidPartitions(f"a topic needs at least one partition, not {partitions}")
    _check_replication_factor(replication_factor, len(racks))
    return _go_round(_ring(racks), range(partitions), replication_factor, start, shift)


def place_more(
    racks: Mapping[int, str | None], existing: Mapping[int, Sequence[int]], partitions: int
) -> Assignment:
    """Assign replicas to new partitions, up to `partitions` in total.

    Each gets as many replicas as partition 0.

    As in Kafka, the start of the ring is the first replica of partition 0. If the topic was placed
    by the same rule, each new partition gets the leader that it would have had if the topic had
    been created with this many partitions. The distance to the other replicas starts over. Raises
    InvalidReplicationFactor.
    """
    _check_replication_factor(len(existing[0]), len(racks))
    at_or_after = [i for i, broker in enumerate(sorted(racks)) if broker >= existing[0][0]]
    start = at_or_after[0] if at_or_after else 0
    numbers = range(len(existing), partitions)
    return _go_round(_ring(racks), numbers, len(existing[0]), start, start)


def _check_replication_factor(replication_factor: int, live: int) -> None:
    if replication_factor <= 0:
        raise InvalidReplicationFactor(
            f"the replication factor must be at least 1, not {replication_factor}"
        )
    if replication_factor > live:
        raise InvalidReplicationFactor(
            f"replication factor {replication_factor}: larger than the number of live brokers, "
            f"{live}"
        )


def _go_round(
    ring: _Ring, numbers: Sequence[int], replication_factor: int, start: int, shift: int
) -> Assignment:
    assignment = {}
    for partition in numbers:
        # TP-7: in the example, partition 5 is on brokers 0, 2 and 3 instead of 0, 1 and 2.
        if partition and partition % len(ring.brokers) == 0:
            shift += 1
        first = (start + partition) % len(ring.brokers)
        others = _others(ring.brokers, first, shift * ring.racks)
        assignment[partition] = _spread(ring, first, others, replication_factor)
    return assignment


def _ring(racks: Mapping[int, str | None]) -> _Ring:
    brokers = sorted(racks)
    # As in Kafka, racks are ignored unless every broker has one.
    if any(racks[broker] is None for broker in brokers):
        return _Ring(brokers, {broker: broker for broker in brokers}, len(brokers))
    by_rack: dict[str, list[int]] = {}
    for broker in brokers:
        by_rack.setdefault(str(racks[broker]), []).append(broker)
    # Take one broker from each rack in turn, and skip racks that have no brokers left.
    turns = [(turn, rack) for rack, members in by_rack.items() for turn in range(len(members))]
    return _Ring([by_rack[rack][turn] for turn, rack in sorted(turns)], racks, len(by_rack))


def _others(brokers: Sequence[int], first: int, distance: int) -> Iterator[int]:
    """Yield the brokers after the first one in an endless loop, starting at this distance."""
    others = [*brokers[first + 1 :], *brokers[:first]]
    skipped = distance % len(others) if others else 0
    return cycle(others[skipped:] + others[:skipped])


def _spread(ring: _Ring, first: int, others: Iterator[int], replication_factor: int) -> list[int]:
    """Return the first broker and then some of the others, each in a new rack if possible."""
    rack_of = ring.rack_of
    replicas = [ring.brokers[first]]
    used = {rack_of[replicas[0]]}
    while len(replicas) < replication_factor:
        broker = next(others)
        # KIP-36: no rack is used twice until every rack has been used once.
        if broker not in replicas and (rack_of[broker] not in used or len(used) == ring.racks):
            replicas.append(broker)
            used.add(rack_of[broker])
    return replicas
