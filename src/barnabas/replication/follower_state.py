"""Tracks the state of a follower on its leader, based only on its fetches in this leader epoch.

Whether a follower is in sync depends on time, not on a number of records. If records are appended
continually, no fetch ever starts exactly at the log end; the follower is keeping up if it reaches
the offset that was the log end at the time of its previous fetch (RE-8).
"""

from __future__ import annotations

from typing import NamedTuple

NO_EPOCH = -1
UNKNOWN_OFFSET = -1
UNKNOWN_EPOCH = -1
NEVER_MS = -(1 << 62)


class FollowerFetch(NamedTuple):
    """A fetch by a replica. `broker_epoch` identifies the registration of its broker (KIP-903)."""

    replica: int
    offset: int
    leader_epoch: int = NO_EPOCH
    log_start_offset: int = UNKNOWN_OFFSET
    broker_epoch: int = UNKNOWN_EPOCH


class Lag(NamedTuple):
    """How far a replica lagged behind when its leader decided whether it should be in the ISR."""

    replica: int
    records: int
    """The distance to the leader's log end, or -1 if the replica has not fetched in this epoch."""
    behind_ms: int
    """The time since the replica last had all of the leader's records, or -1 if it never had."""
    allowed_ms: int
    """The leader's `replica.lag.time.max.ms`."""


class FollowerState:
    """The state of one follower, as far as its leader knows it."""

    __slots__ = (
        "broker_epoch",
        "caught_up_at_ms",
        "fetched_at_ms",
        "last_fetch",
        "leader_end_at_fetch",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, caught_up_at_ms: int = NEVER_MS) -> None:
        """Create the state.

        If the follower was in sync when the epoch started, it is given the usual time to catch up.
        """
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.broker_epoch = UNKNOWN_EPOCH
        self.caught_up_at_ms = caught_up_at_ms
        """When the follower last had all of the leader's records."""
        self.fetched_at_ms = NEVER_MS
        self.leader_end_at_fetch = UNKNOWN_OFFSET
        self.last_fetch: FollowerFetch | None = None
        """The follower's last fetch, or None if it has not fetched in this leader epoch."""

    def on_fetch(self, fetch: FollowerFetch, leader_end: int, now_ms: int) -> None:
        """Handle a fetch. It shows that the follower has all records below the fetch offset."""
        offset = fetch.offset
        self.last_fetch = fetch
        self.log_start_offset = fetch.log_start_offset
        self.broker_epoch = fetch.broker_epoch
        # The follower has all records that the leader has now.
        if offset >= leader_end:
            self.caught_up_at_ms = max(self.caught_up_at_ms, now_ms)
        # The follower has all records that the leader had at the previous fetch, so it was caught
        # up at that time (RE-8). If records are appended continually, it never reaches the current
        # log end.
        elif offset >= self.leader_end_at_fetch:
            self.caught_up_at_ms = max(self.caught_up_at_ms, self.fetched_at_ms)
        self.log_end_offset = offset
        self.leader_end_at_fetch = leader_end
        self.fetched_at_ms = now_ms

    def lag(self, replica: int, leader_end: int, now_ms: int, allowed_ms: int) -> Lag:
        """Return how far behind the follower is."""
        end, since_ms = self.log_end_offset, self.caught_up_at_ms
        return Lag(
            replica,
            UNKNOWN_OFFSET if end == UNKNOWN_OFFSET else max(0, leader_end - end),
            -1 if since_ms == NEVER_MS else max(0, now_ms - since_ms),
            allowed_ms,
        )

    def is_caught_up(self, leader_end: int, now_ms: int, lag_time_max_ms: int) -> bool:
        """Return whether the follower has all records, or had all of them recently enough."""
        return self.log_end_offset >= leader_end or now_ms - self.caught_up_at_ms <= lag_time_max_ms
