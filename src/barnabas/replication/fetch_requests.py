"""Implements the follower's side of fetch sessions (KIP-227), which builds Fetch requests.

    full           id of the last session or 0, epoch 0     every partition
    incremental    id n, epoch 1, 2, ...                    the partitions moved, added or removed

Invariant: if a partition is neither in `changed` nor in `gone`, the leader's session contains the
state that this follower wants. A request therefore lists only the partitions that have changed
since the previous request, no matter how many others there are. After any session error, the next
request is a full one. The leader's side is in `fetch_session`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from barnabas.errors import NONE, FetchSessionIdNotFound, error_for_code
from barnabas.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from barnabas.replication.fetch_session import NO_SESSION, next_epoch
from barnabas.types import NO_TOPIC_ID, TopicPartition

if TYPE_CHECKING:
    from barnabas.replication.follower import FetchFrom

_FULL = 0  # the epoch in a request that starts a session
_TOPIC_IDS = 13  # the first version with topic ids instead of names (KIP-516)
_REPLICA_STATE = 15  # the first version with the broker epoch of the follower (KIP-903)


class Limits(NamedTuple):
    """The limits in a fetch request: the maximum wait, the minimum bytes and the maximum bytes."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    partition_max_bytes: int


class Requester(NamedTuple):
    """The broker that fetches: its id, its epoch and the highest Fetch version that it supports."""

    broker_id: int
    broker_epoch: int
    version: int


class Answered(NamedTuple):
    """A partition in a response, together with the fetch that was sent for it."""

    topic_partition: TopicPartition
    sent: FetchFrom
    data: PartitionData


class _Entry:
    """A partition that is fetched."""

    __slots__ = ("name", "sent", "start", "topic_id", "wanted")

    def __init__(self, name: TopicPartition, topic_id: bytes, max_bytes: int) -> None:
        self.name = name
        self.topic_id = topic_id
        self.start: FetchFrom | None = None
        self.sent: FetchFrom | None = None  # the last fetch sent to the leader, if any
        # This object can be reused, because each request is encoded before the object changes.
        self.wanted = FetchPartition(partition=name.partition, partition_max_bytes=max_bytes)

    def move(self, start: FetchFrom) -> None:
        self.start = start
        wanted = self.wanted
        wanted.fetch_offset = start.offset
        wanted.last_fetched_epoch = start.last_fetched_epoch
        wanted.current_leader_epoch = start.leader_epoch
        wanted.log_start_offset = start.log_start_offset


class FetchRequests:
    """Builds the requests with which one fetcher fetches from one leader.

    Only one request is in flight at a time.
    """

    __slots__ = (
        "_by_topic",
        "_changed",
        "_entries",
        "_epoch",
        "_gone",
        "_limits",
        "_sent_epoch",
        "_session_id",
        "_uses_topic_ids",
    )

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._entries: dict[TopicPartition, _Entry] = {}
        self._by_topic: dict[str | bytes, dict[int, _Entry]] = {}  # the key is the name or id
        self._changed: dict[_Entry, None] = {}
        # partitions to be removed from the session, with their topic ids
        self._gone: dict[TopicPartition, bytes] = {}
        self._session_id = NO_SESSION
        self._epoch = _FULL  # the epoch of the next request
        self._sent_epoch = _FULL  # the epoch of the last request that was sent
        self._uses_topic_ids = True

    def __len__(self) -> int:
        return len(self._entries)

    def limit(self, limits: Limits) -> None:
        """Use these limits from the next request on."""
        if limits.partition_max_bytes != self._limits.partition_max_bytes:
            for entry in self._entries.values():
                entry.wanted.partition_max_bytes = limits.partition_max_bytes
            self.reset_session()
        self._limits = limits

    # --- what is wanted --------------------------------------------------------------------------

    def want(self, name: TopicPartition, topic_id: bytes, start: FetchFrom) -> None:
        """Fetch the partition, starting at `start`. This takes effect with the next request."""
        entry = self._entries.get(name)
        # The topic was deleted, and a new topic was created with the same name (KIP-516).
        if entry is not None and entry.topic_id != topic_id:
            self.forget(name)
            entry = None
        if entry is None:
            if name in self._gone:
                # The leader's session still contains the partition, so the leader would not send
                # its bounds again, although this follower may have forgotten them.
                self.reset_session()
            entry = _Entry(name, topic_id, self._limits.partition_max_bytes)
            self._entries[name] = entry
            self._file(entry)
        # Either the leader's session already has this state, or the next request will contain it.
        elif entry.start == start:
            return
        entry.move(start)
        self._changed[entry] = None

    def forget(self, name: TopicPartition) -> None:
        """Stop fetching the partition. Later responses for it are ignored."""
        entry = self._entries.pop(name, None)
        if entry is None:
            return
        self._changed.pop(entry, None)
        key = self._key(entry)
        partitions = self._by_topic[key]
        del partitions[name.partition]
        if not partitions:
            del self._by_topic[key]
        # The request has to list a forgotten partition only if the partition was sent to the
        # leader.
        if entry.sent is not None:
            self._gone[name] = entry.topic_id

    def reset_session(self) -> None:
        """Abandon the session, so that the next request is a full one."""
        self._epoch = _FULL

    def _key(self, entry: _Entry) -> str | bytes:
        return entry.topic_id if self._uses_topic_ids else entry.name.topic

    def _file(self, entry: _Entry) -> None:
        self._by_topic.setdefault(self._key(entry), {})[entry.name.partition] = entry

    # --- requests --------------------------------------------------------------------------------

    def next(self, requester: Requester) -> tuple[FetchRequest, int]:
        """Build the next request. Return it together with its version.

        The request must be encoded before anything changes, because it shares its partitions with
        this object.
        """
        version = self._version(requester.version)
        limits = self._limits
        request = FetchRequest(
            max_wait_ms=limits.max_wait_ms,
            min_bytes=limits.min_bytes,
            max_bytes=limits.max_bytes,
            session_id=self._session_id,
            session_epoch=self._epoch,
        )
        # KIP-903 moved the replica id into a tagged field that also contains the broker epoch.
        if version >= _REPLICA_STATE:
            request.replica_state = ReplicaState(
                replica_id=requester.broker_id, replica_epoch=requester.broker_epoch
            )
        else:
            request.replica_id = requester.broker_id
        if self._epoch == _FULL:
            request.topics = _topics(self._entries.values())
        else:
            if self._changed:
                request.topics = _topics(self._changed)
            if self._gone:
                request.forgotten_topics_data = self._forgotten()
        # This request contains both the changed and the removed partitions. If it fails, the
        # session is reset, and the next request is a full one.
        self._changed.clear()
        self._gone.clear()
        self._sent_epoch = self._epoch
        self._epoch = next_epoch(self._epoch)
        return request, version

    def _version(self, highest: int) -> int:
        """Return the highest version that can be used.

        If a partition has no topic id, the version must not need one.
        """
        uses_topic_ids = highest >= _TOPIC_IDS
        if uses_topic_ids and NO_TOPIC_ID in self._by_topic:
            uses_topic_ids = False
        elif uses_topic_ids and not self._uses_topic_ids:
            uses_topic_ids = all(each.topic_id != NO_TOPIC_ID for each in self._entries.values())
        # A session uses either ids or names for all of its requests. The leader rejects a change
        # (FETCH_SESSION_TOPIC_ID_ERROR), so begin a new session.
        if uses_topic_ids != self._uses_topic_ids:
            self._uses_topic_ids = uses_topic_ids
            self._by_topic = {}
            for entry in self._entries.values():
                self._file(entry)
            self.reset_session()
        return highest if uses_topic_ids else min(highest, _TOPIC_IDS - 1)

    def _forgotten(self) -> list[ForgottenTopic]:
        topics: dict[tuple[str, bytes], ForgottenTopic] = {}
        for name, topic_id in self._gone.items():
            topic = topics.get((name.topic, topic_id))
            if topic is None:
                topic = ForgottenTopic(topic=name.topic, topic_id=topic_id, partitions=[])
                topics[name.topic, topic_id] = topic
            topic.partitions.append(name.partition)
        return list(topics.values())

    # --- the response
    # ------------------------------------------------------------------------------

    def on_answer(self, response: FetchResponse) -> Iterator[Answered]:
        """Yield the partitions in the response, except those that are no longer fetched.

        If the response has a top-level error, raises the KafkaError. The next request is then a
        full one.
        """
        if response.error_code != NONE:
            error = error_for_code(response.error_code)
            session_id = self._session_id
            # The leader has already evicted the session, so there is nothing to close.
            if error is FetchSessionIdNotFound:
                self._session_id = NO_SESSION
            self.reset_session()
            raise error(f"fetch session {session_id} was rejected: {error.meaning}")
        # Only a full request starts a session. Incremental responses repeat the id of the session.
        if self._sent_epoch == _FULL:
            self._session_id = response.session_id
        if response.session_id == NO_SESSION:  # the leader has no free slot
            self._session_id = NO_SESSION
            self.reset_session()
        return self._rows(response)

    def _rows(self, response: FetchResponse) -> Iterator[Answered]:
        for topic in response.responses:
            partitions = self._by_topic.get(
                topic.topic_id if self._uses_topic_ids else topic.topic, {}
            )
            for data in topic.partitions:
                entry = partitions.get(data.partition_index)
                # Skip partitions that were removed, or removed and added again, while the request
                # was in flight.
                if entry is not None and entry.sent is not None:
                    yield Answered(entry.name, entry.sent, data)


def _topics(wanted: Iterable[_Entry]) -> list[FetchTopic]:
    """Group the partitions by topic, and note what is sent for each of them."""
    topics: dict[tuple[str, bytes], FetchTopic] = {}
    for entry in wanted:
        entry.sent = entry.start
        key = (entry.name.topic, entry.topic_id)
        topic = topics.get(key)
        if topic is None:
            topic = topics[key] = FetchTopic(topic=key[0], topic_id=key[1], partitions=[])
        topic.partitions.append(entry.wanted)
    return list(topics.values())
