"""Selects the replica that a consumer with a rack reads from (KIP-392, RE-2).

The leader is used if it is in the consumer's rack, or if no in-sync replica in that rack has the
offset. Otherwise, it is the follower in that rack with the largest log end; a tie goes to the one
that caught up last, then to the larger id. This is Kafka's RackAwareReplicaSelector.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

RACK_AWARE = "RackAwareReplicaSelector"


class InSync(NamedTuple):
    """A follower in the ISR, as of its last fetch."""

    broker_id: int
    log_start_offset: int
    log_end_offset: int
    caught_up_at_ms: int
    """The last time at which the follower had all of the leader's records."""


def select_replica(
    offset: int, rack: str, racks: Mapping[int, str | None], followers: Iterable[InSync]
) -> int | None:
    """Return the follower to read from at `offset`; None means the leader.

    `racks` contains the racks of the live brokers. The caller has checked that the leader is not in
    this rack.
    """
    near = [
        each
        for each in followers
        if racks.get(each.broker_id) == rack
        and each.log_start_offset <= offset <= each.log_end_offset
    ]
    # Read from the leader: a follower without the offset would return OFFSET_OUT_OF_RANGE.
    if not near:
        return None
    best = max(near, key=lambda each: (each.log_end_offset, each.caught_up_at_ms, each.broker_id))
    return best.broker_id
