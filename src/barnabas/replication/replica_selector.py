"""Selects the replica from which a consumer that has a rack should read (KIP-392, RE-2).

The consumer reads from the leader if the leader is in the same rack, or if no in-sync replica in
that rack has the offset. Otherwise, it reads from the follower in the rack with the largest log
end. If several have the same log end, the follower that caught up last is selected, and then the
one with the largest id. Kafka's RackAwareReplicaSelector does the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

RACK_AWARE = "RackAwareReplicaSelector"


class InSync(NamedTuple):
    """A follower in the ISR, in the state that its last fetch has shown."""

    broker_id: int
    log_start_offset: int
    log_end_offset: int
    caught_up_at_ms: int
    """When the follower last had all of the leader's records."""


def select_replica(
    offset: int, rack: str, racks: Mapping[int, str | None], followers: Iterable[InSync]
) -> int | None:
    """Return the follower from which to read at `offset`, or None to read from the leader.

    `racks` maps the live brokers to their racks. The caller must already have checked that the
    leader is not in this rack.
    """
    near = [
        each
        for each in followers
        if racks.get(each.broker_id) == rack
        and each.log_start_offset <= offset <= each.log_end_offset
    ]
    # Read from the leader, because a follower that does not have the offset would return
    # OFFSET_OUT_OF_RANGE.
    if not near:
        return None
    best = max(near, key=lambda each: (each.log_end_offset, each.caught_up_at_ms, each.broker_id))
    return best.broker_id
