"""Implements the leader's side of fetch sessions, which store a reader's partitions (KIP-227).

    reader                                     broker
    id 0, epoch 0: these partitions     ->     all of them, and a session id if there is room
    id n, epoch 1: some have changed    ->     partitions with bytes, an error or new bounds
    id n, epoch 2: nothing changed      ->     ...
    id n, epoch -1                      ->     the session ends (epoch 0 ends it, too)

Invariant: if a partition is not in `changed`, there is nothing new for the reader: no bytes at or
after its fetch offset, no error and no new bounds. To build a response, only the partitions in
`changed` have to be checked. Each partition of a session subscribes to its log (`Place`), which
keeps `changed` up to date.

Partitions are read in the order of `changed`. A partition that has returned data moves to the end,
so that the other partitions do not have to wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from barnabas.errors import (
    FetchSessionIdNotFound,
    FetchSessionTopicIdError,
    InvalidFetchSessionEpoch,
)

if TYPE_CHECKING:
    from barnabas.protocol.messages.fetch import (
        FetchPartition,
        FetchRequest,
        FetchTopic,
        ForgottenTopic,
    )

NO_SESSION = 0
_FIRST_EPOCH, _LAST_EPOCH = 0, 0x7FFFFFFF
_UNKNOWN_OFFSET = -1
_NO_REPLICA = -1
# a session used within this time is not stale, and a session younger than this is not evicted for a
# larger one
_SAFE_MS = 120_000
# the limit on the average; a reader that would exceed it gets no session
_PARTITIONS_PER_SLOT = 250

Key = tuple[str | bytes, int]
"""A topic and a partition. The topic is identified by its name or its id, as in the request."""


class Waiter(Protocol):
    """A fetch request that is waiting until there is more data."""

    def notify(self, appended_bytes: int) -> None: ...

    def wake(self) -> None: ...


class Place(Protocol):
    """Notifies the partitions of sessions about changes in a log."""

    def park(self, watcher: SessionPartition, /) -> None: ...

    def unpark(self, watcher: SessionPartition, /) -> None: ...


class SessionPartition:
    """A partition in a session: its fetch offset, its limits and the bounds that were last sent."""

    __slots__ = (
        "_place",
        "_session",
        "high_watermark",
        "log_start_offset",
        "topic",
        "topic_id",
        "wanted",
    )

    def __init__(self, session: FetchSession, topic: FetchTopic, wanted: FetchPartition) -> None:
        self._session = session
        self._place: Place | None = None
        self.topic = topic.topic
        self.topic_id = topic.topic_id
        """The id of the topic. Requests contain either the id or the name."""
        self.wanted = wanted
        self.high_watermark = _UNKNOWN_OFFSET
        self.log_start_offset = _UNKNOWN_OFFSET

    def watch(self, place: Place) -> None:
        """Subscribe to changes of this place.

        If the session has ended, which may happen during one of its own requests, do nothing.
        """
        if place is not self._place and not self._session.is_closed:
            self.unwatch()
            self._place = place
            place.park(self)

    def unwatch(self) -> None:
        if self._place is not None:
            self._place.unpark(self)
            self._place = None

    def requested_at_ms(self, replica_id: int) -> int | None:
        """Return the time of the session's last request if the session belongs to this replica."""
        session = self._session
        return session.used_ms if session.replica_id == replica_id else None

    def notify(self, appended_bytes: int) -> None:
        """Record that more bytes have become visible."""
        session = self._session
        session.changed[self] = None
        if session.waiter is not None:
            session.waiter.notify(appended_bytes)

    def wake(self) -> None:
        """Record a change that has to be sent to the reader immediately."""
        session = self._session
        session.changed[self] = None
        if session.waiter is not None:
            session.waiter.wake()


class FetchSession:
    """A session: the partitions that a reader fetches, and which of them have changed."""

    __slots__ = (
        "_grants",
        "_isolation_level",
        "changed",
        "created_ms",
        "epoch",
        "is_closed",
        "is_privileged",
        "partitions",
        "replica_id",
        "session_id",
        "used_ms",
        "uses_topic_ids",
        "waiter",
    )

    def __init__(
        self, session_id: int, uses_topic_ids: bool, is_privileged: bool, now_ms: int
    ) -> None:
        self.session_id = session_id
        self.uses_topic_ids = uses_topic_ids
        self.is_privileged = is_privileged
        self.replica_id = _NO_REPLICA
        """The id of the follower that uses the session, or -1 if a consumer uses it."""
        self.created_ms = self.used_ms = now_ms
        self.epoch = _FIRST_EPOCH + 1
        """The epoch that is expected in the next request."""
        self.partitions: dict[Key, SessionPartition] = {}
        self.changed: dict[SessionPartition, None] = {}
        self.waiter: Waiter | None = None
        self.is_closed = False
        self._isolation_level: int | None = None
        self._grants: object | None = None

    def update(self, topics: Sequence[FetchTopic], forgotten: Sequence[ForgottenTopic]) -> None:
        """Add or update the partitions in a request, and then remove the forgotten partitions."""
        for topic in topics:
            name = topic.topic_id if self.uses_topic_ids else topic.topic
            for wanted in topic.partitions:
                key = (name, wanted.partition)
                partition = self.partitions.get(key)
                if partition is None:
                    partition = SessionPartition(self, topic, wanted)
                    self.partitions[key] = partition
                else:
                    partition.wanted = wanted
                self.changed[partition] = None
        for gone in forgotten:
            name = gone.topic_id if self.uses_topic_ids else gone.topic
            for index in gone.partitions:
                dropped = self.partitions.pop((name, index), None)
                if dropped is not None:
                    self.changed.pop(dropped, None)
                    dropped.unwatch()

    def read_at(self, isolation_level: int, grants: object | None) -> None:
        """Set the isolation level and the grants of the reader.

        The grants are None if they cannot be cached.

        If the isolation level or the grants have changed, or if the grants cannot be cached, all
        partitions are marked as changed.
        """
        if isolation_level != self._isolation_level or grants is not self._grants or grants is None:
            self._isolation_level = isolation_level
            self._grants = grants
            for partition in self.partitions.values():
                self.changed[partition] = None

    def on_answered(
        self, partition: SessionPartition, high_watermark: int, log_start_offset: int
    ) -> None:
        """Store the bounds that were sent to the reader.

        After an error, they are -1, so that the end of the error is a change.
        """
        partition.high_watermark = high_watermark
        partition.log_start_offset = log_start_offset

    def on_served(self, partition: SessionPartition) -> None:
        """Record that the partition has returned bytes, so that the next request reads it last."""
        del self.changed[partition]
        self.changed[partition] = None

    def close(self) -> None:
        self.is_closed = True
        for partition in self.partitions.values():
            partition.unwatch()
        if self.waiter is not None:
            self.waiter.wake()


class FetchSessions:
    """The sessions of a broker. Of all sessions, it keeps the `slots` most useful ones.

    A new session can use a free slot, the slot of a session that has not been used for two minutes,
    or the slot of a less valuable session that is older than two minutes. A follower's session is
    more valuable than a consumer's, and a large session is more valuable than a small one. A
    follower can use the slot of a consumer's session of any age.
    """

    __slots__ = ("_new_id", "_partition_count", "_sessions", "slots")

    def __init__(self, slots: int, new_id: Callable[[], int]) -> None:
        """Create an empty set of sessions. `new_id` must return random positive numbers."""
        self.slots = slots
        self._new_id = new_id
        self._sessions: dict[int, FetchSession] = {}  # in order of last use, the oldest first
        self._partition_count = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[FetchSession]:
        return iter(self._sessions.values())

    @property
    def partition_count(self) -> int:
        """The total number of partitions in all sessions."""
        return self._partition_count

    def open(
        self, topics: Sequence[FetchTopic], uses_topic_ids: bool, is_privileged: bool, now_ms: int
    ) -> FetchSession | None:
        """Open a session for a full request, or return None if there is no room for it."""
        count = sum(len(topic.partitions) for topic in topics)
        # Kafka's cache does not limit the number of partitions, because slots limit only the number
        # of sessions.
        if self._partition_count + count > self.slots * _PARTITIONS_PER_SLOT:
            return None
        if len(self._sessions) >= self.slots and not self._evict(is_privileged, count, now_ms):
            return None
        session_id = self._new_id()
        # As in Kafka, ids are random, so an id from before a restart is very unlikely to exist
        # again.
        while session_id in self._sessions or session_id == NO_SESSION:
            session_id = self._new_id()
        session = FetchSession(session_id, uses_topic_ids, is_privileged, now_ms)
        session.update(topics, ())
        self._sessions[session_id] = session
        self._partition_count += len(session.partitions)
        return session

    def resume(
        self, request: FetchRequest, uses_topic_ids: bool, now_ms: int
    ) -> FetchSession | None:
        """Update an incremental request's session and return it, or None if no partitions are left.

        Raises FetchSessionIdNotFound, InvalidFetchSessionEpoch or FetchSessionTopicIdError, after
        which the reader opens a new session.
        """
        session = self._sessions.get(request.session_id)
        if session is None:
            raise FetchSessionIdNotFound(f"fetch session {request.session_id} not found")
        # A request was repeated or lost, so it is unknown which responses the reader has received.
        if session.epoch != request.session_epoch:
            raise InvalidFetchSessionEpoch(
                f"fetch session {session.session_id} is at epoch {session.epoch}, "
                f"not {request.session_epoch}"
            )
        if session.uses_topic_ids != uses_topic_ids:
            raise FetchSessionTopicIdError("the session and the request differ in using topic ids")
        before = len(session.partitions)
        session.update(request.topics, request.forgotten_topics_data)
        self._partition_count += len(session.partitions) - before
        if self._partition_count > self.slots * _PARTITIONS_PER_SLOT:
            self.close(session.session_id)
            raise FetchSessionIdNotFound("the session has become too large to keep")
        # As in Kafka, this response ends the session, because there is nothing left to fetch.
        if not session.partitions:
            self.close(session.session_id)
            return None
        if session.waiter is not None:
            # the reader has sent another request, so the waiting one only receives an error
            session.waiter.wake()
        session.epoch = next_epoch(session.epoch)
        session.used_ms = now_ms
        # Move the session to the end, because `_evict` expects the most recently used session
        # there.
        del self._sessions[session.session_id]
        self._sessions[session.session_id] = session
        return session

    def close(self, session_id: int) -> None:
        """Close the session that has this id, if there is one."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._partition_count -= len(session.partitions)
            session.close()

    def _evict(self, is_privileged: bool, count: int, now_ms: int) -> bool:
        """Make room for a new session, if necessary by closing a less valuable one.

        Return whether there is room.
        """
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None:
            return False
        # KIP-227: a session that has not been used for two minutes
        # (min.incremental.fetch.session.eviction.ms) is evicted first, regardless of its size.
        if now_ms - oldest.used_ms > _SAFE_MS:
            self.close(oldest.session_id)
            return True
        candidates = [
            session
            for session in self._sessions.values()
            if now_ms - session.created_ms > _SAFE_MS
            or (is_privileged and not session.is_privileged)
        ]
        if not candidates:
            return False
        # KIP-227: followers are preferred to consumers, and larger sessions to smaller ones.
        least = min(candidates, key=_worth)
        if _worth(least) >= (is_privileged, count):
            return False
        self.close(least.session_id)
        return True


def next_epoch(epoch: int) -> int:
    """Return the epoch that a session expects after this one."""
    return epoch + 1 if epoch < _LAST_EPOCH else _FIRST_EPOCH + 1


def _worth(session: FetchSession) -> tuple[bool, int]:
    return session.is_privileged, len(session.partitions)
