"""Places a topic's replicas on brokers (TP-7).

The brokers form a ring. Partition i has its first replica on broker (start + i) of the ring, which
spreads the leaders. Its other replicas follow in ring order, starting at a distance that grows with
each round of partitions. This spreads the load of a failed broker over all other brokers instead of
moving it to the next one. `start` and `shift` are random in production, so that small topics do not
all start on the same broker. A growing topic takes its start from its first partition.

With racks (used only if every broker has one), the ring alternates between them, and each further
replica is placed in a rack that has no replica of this partition yet, as long as there is one.
Without racks, each broker counts as its own rack, and the same rule applies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from typing import NamedTuple

from barnabas.errors import InvalidPartitions, InvalidReplicationFactor

Assignment = dict[int, list[int]]
"""Replicas by partition, the preferred leader first."""


class _Ring(NamedTuple):
    """The brokers in placement order, and each broker's rack."""

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
    """Place replicas for partitions 0, 1, ...; `racks` maps the live brokers to their racks.

    Raises InvalidPartitions, or InvalidReplicationFactor (TP-5: more replicas than live brokers).
    """
    if partitions <= 0:
        raise InvalidPartitions(f"{partitions} partitions: at least one is required")
    _check_replication_factor(replication_factor, len(racks))
    return _go_round(_ring(racks), range(partitions), replication_factor, start, shift)


def place_more(
    racks: Mapping[int, str | None], existing: Mapping[int, Sequence[int]], partitions: int
) -> Assignment:
    """Place a topic's new partitions up to `partitions`, each with as many replicas as partition 0.

    As in Kafka, the new partitions continue around the ring from partition 0's first replica, at
    which a topic placed by this rule started, so each gets the leader that it would have had
    originally. The distance to the other replicas starts over. Raises InvalidReplicationFactor.
    """
    _check_replication_factor(len(existing[0]), len(racks))
    at_or_after = [i for i, broker in enumerate(sorted(racks)) if broker >= existing[0][0]]
    start = at_or_after[0] if at_or_after else 0
    numbers = range(len(existing), partitions)
    return _go_round(_ring(racks), numbers, len(existing[0]), start, start)


def _check_replication_factor(replication_factor: int, live: int) -> None:
    if replication_factor <= 0:
        raise InvalidReplicationFactor(
            f"replication factor {replication_factor}: at least one replica is required"
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
        # TP-7: partition 5 of the example is on brokers 0, 2 and 3 and not on 0, 1 and 2.
        if partition and partition % len(ring.brokers) == 0:
            shift += 1
        first = (start + partition) % len(ring.brokers)
        others = _others(ring.brokers, first, shift * ring.racks)
        assignment[partition] = _spread(ring, first, others, replication_factor)
    return assignment


def _ring(racks: Mapping[int, str | None]) -> _Ring:
    brokers = sorted(racks)
    # As in Kafka, racks count only if every broker has one.
    if any(racks[broker] is None for broker in brokers):
        return _Ring(brokers, {broker: broker for broker in brokers}, len(brokers))
    by_rack: dict[str, list[int]] = {}
    for broker in brokers:
        by_rack.setdefault(str(racks[broker]), []).append(broker)
    # Take a broker from each rack in turn, skipping exhausted racks.
    turns = [(turn, rack) for rack, members in by_rack.items() for turn in range(len(members))]
    return _Ring([by_rack[rack][turn] for turn, rack in sorted(turns)], racks, len(by_rack))


def _others(brokers: Sequence[int], first: int, distance: int) -> Iterator[int]:
    """Yield the brokers after the first endlessly, starting after `distance` of them."""
    others = [*brokers[first + 1 :], *brokers[:first]]
    skipped = distance % len(others) if others else 0
    return cycle(others[skipped:] + others[:skipped])


def _spread(ring: _Ring, first: int, others: Iterator[int], replication_factor: int) -> list[int]:
    """Return the first broker and the next of the others that add a new rack."""
    rack_of = ring.rack_of
    replicas = [ring.brokers[first]]
    used = {rack_of[replicas[0]]}
    while len(replicas) < replication_factor:
        broker = next(others)
        # A rack is used twice only after every rack has been used once (KIP-36).
        if broker not in replicas and (rack_of[broker] not in used or len(used) == ring.racks):
            replicas.append(broker)
            used.add(rack_of[broker])
    return replicas
