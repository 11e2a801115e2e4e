"""Tracks a follower's state on its leader, using only its fetches in this leader epoch.

Whether a follower is in sync depends on time, never on records. With steady appends, no fetch is
ever exactly at the log end; a follower keeps up if it reaches the log end at the time of its
previous fetch (RE-8).
"""

from __future__ import annotations

from typing import NamedTuple

NO_EPOCH = -1
UNKNOWN_OFFSET = -1
UNKNOWN_EPOCH = -1
NEVER_MS = -(1 << 62)


class FollowerFetch(NamedTuple):
    """A replica's fetch. `broker_epoch` distinguishes its broker's registrations (KIP-903)."""

    replica: int
    offset: int
    leader_epoch: int = NO_EPOCH
    log_start_offset: int = UNKNOWN_OFFSET
    broker_epoch: int = UNKNOWN_EPOCH


class Lag(NamedTuple):
    """How far behind a replica was when its leader decided whether it belongs in the ISR."""

    replica: int
    records: int
    """The distance to the leader's log end; -1 if it has not fetched in this leader epoch."""
    behind_ms: int
    """The time since it last had all of the leader's records; -1 if it never did in this epoch."""
    allowed_ms: int
    """The leader's `replica.lag.time.max.ms`."""


class FollowerState:
    """The leader's state of one follower."""

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

        A follower in sync at the start of the epoch may lag for the usual time.
        """
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.broker_epoch = UNKNOWN_EPOCH
        self.caught_up_at_ms = caught_up_at_ms
        """The last time at which the follower had all of the leader's records."""
        self.fetched_at_ms = NEVER_MS
        self.leader_end_at_fetch = UNKNOWN_OFFSET
        self.last_fetch: FollowerFetch | None = None
        """The last fetch, or None before the first one in this leader epoch."""

    def on_fetch(self, fetch: FollowerFetch, leader_end: int, now_ms: int) -> None:
        """Process a fetch, which shows that the follower has everything below the fetch offset."""
        offset = fetch.offset
        self.last_fetch = fetch
        self.log_start_offset = fetch.log_start_offset
        self.broker_epoch = fetch.broker_epoch
        # It has every record that exists.
        if offset >= leader_end:
            self.caught_up_at_ms = max(self.caught_up_at_ms, now_ms)
        # The follower has every record that existed at its previous fetch: it was caught up at that
        # time (RE-8). With steady appends, it never reaches the log end.
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
        """Return whether the follower has every record, or had every record recently enough."""
        return self.log_end_offset >= leader_end or now_ms - self.caught_up_at_ms <= lag_time_max_ms
