"""Queues the requests that a broker has not answered yet. The queue is ordered and bounded.

Normally, every request is sent exactly as it was decided. If the broker does not respond, the
queued requests are merged into requests with the same combined effect. What remains is a single
metadata update, the partitions to stop, and the partitions to host. The size of a backlog therefore
never exceeds a few times the size of the cluster's state.

The first request is never merged, because it may already be in flight.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from barnabas.broker.inter_broker.control_plane_wire import in_pieces
from barnabas.cluster.controller_requests import (
    NO_EPOCH,
    WHILE_DELETING,
    ControlRequest,
    LeaderAndIsr,
    PartitionState,
    StopReplica,
    UpdateMetadata,
)
from barnabas.cluster.image import ClusterImage, TopicImage
from barnabas.types import TopicPartition

MERGED_AT = 64
"""The number of queued requests at which the requests are merged.

After a merge, the limit is raised to at least twice the number of requests that remain.
"""


class PendingRequest(NamedTuple):
    """A queued request, with the state of the cluster when it was decided."""

    request: ControlRequest
    image: ClusterImage


class _Stop(NamedTuple):
    delete: bool
    leader_epoch: int
    topic_id: bytes | None

    def after(self, before: _Stop | None) -> _Stop:
        """Combine an earlier stop of a partition with this one."""
        if before is None:
            return self
        # A later stop that does not delete the partition does not undo an earlier deletion.
        delete = self.delete or before.delete
        epochs = (self.leader_epoch, before.leader_epoch)
        # A broker that would have applied either of the two requests must also apply the result, so
        # drop any check that only one of the requests has.
        unchecked = [each for each in (WHILE_DELETING, NO_EPOCH) if each in epochs]
        return _Stop(delete, unchecked[0] if unchecked else max(epochs), self.topic_id)


class RequestBacklog:
    """The queued requests for a single registration of a broker."""

    __slots__ = ("_limit", "_queue")

    def __init__(self) -> None:
        self._queue: deque[PendingRequest] = deque()
        self._limit = MERGED_AT

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def first(self) -> PendingRequest:
        return self._queue[0]

    def add(self, request: ControlRequest, image: ClusterImage) -> None:
        """Append a request. `image` is the state of the cluster once the request has been
        applied.
        """
        self._queue.extend(PendingRequest(piece, image) for piece in in_pieces(request))
        # The limit grows with the number of requests that remain after a merge, so that merges are
        # rare even with many partitions.
        if len(self._queue) > self._limit:
            first, *rest = self._queue
            self._queue = deque([first, *merge_requests(rest)])
            self._limit = max(MERGED_AT, 2 * len(self._queue))

    def remove_first(self) -> None:
        """Remove the first request, which has been answered."""
        self._queue.popleft()
        if not self._queue:
            self._limit = MERGED_AT

    def clear(self) -> None:
        self._queue.clear()
        self._limit = MERGED_AT


def merge_requests(requests: Sequence[PendingRequest]) -> list[PendingRequest]:
    """Merge the requests of one controller into fewer requests that have the same effect.

    UpdateMetadata comes first, because followers need the addresses of their leaders. StopReplica
    comes before LeaderAndIsr, because the old log of a partition that is hosted again must be
    deleted first.
    """
    if not requests:
        return []
    last, image = requests[-1]
    update, removed = _update(requests)
    hosted, stopped = _roles(requests)
    whole: list[ControlRequest] = [] if update is None else [update]
    for delete in (True, False):
        stops = {name: each for name, each in stopped.items() if each.delete is delete}
        if stops:
            epochs = {name: each.leader_epoch for name, each in stops.items()}
            topic_ids = {
                name: each.topic_id for name, each in stops.items() if each.topic_id is not None
            }
            names = tuple(stops)
            whole.append(
                StopReplica(
                    last.controller_id, last.controller_epoch, names, delete, epochs, topic_ids
                )
            )
    if hosted:
        states = tuple(hosted.values())
        whole.append(LeaderAndIsr(last.controller_id, last.controller_epoch, states))
    # The removal of a topic is sent as the removal of each of its partitions.
    known = image._replace(topics={**image.topics, **removed})
    return [
        PendingRequest(piece, known if isinstance(piece, UpdateMetadata) else image)
        for request in whole
        for piece in in_pieces(request)
    ]


def _update(
    requests: Sequence[PendingRequest],
) -> tuple[UpdateMetadata | None, dict[str, TopicImage]]:
    """Return a single update for all requests, and the topics that it removes in their earlier
    state.
    """
    update: UpdateMetadata | None = None
    topics: dict[str, TopicImage] = {}
    removed: dict[str, TopicImage | None] = {}
    for request, image in requests:
        if isinstance(request, UpdateMetadata):
            update = request
            for name in request.removed_topics:
                known = topics.pop(name, None) or image.topics.get(name)
                removed[name] = known or removed.get(name)
            topics.update((topic.name, topic) for topic in request.topics)
    if update is None:
        return None, {}
    whole = update._replace(topics=tuple(topics.values()), removed_topics=tuple(removed))
    return whole, {name: topic for name, topic in removed.items() if topic is not None}


def _cause(state: PartitionState, before: PartitionState | None) -> str:
    """Return why the current leader epoch began. The reason may be recorded only in an earlier
    state.
    """
    if before is None or before.partition.leader_epoch != state.partition.leader_epoch:
        return state.cause
    return before.cause


def _roles(
    requests: Sequence[PendingRequest],
) -> tuple[dict[TopicPartition, PartitionState], dict[TopicPartition, _Stop]]:
    """Return the partitions that the broker must host after all requests, and the partitions that
    it must stop first.
    """
    hosted: dict[TopicPartition, PartitionState] = {}
    stopped: dict[TopicPartition, _Stop] = {}
    for request, _ in requests:
        if isinstance(request, LeaderAndIsr):
            for state in request.partitions:
                before = hosted.get(state.topic_partition)
                # If the broker never received the first request, it has no records of this
                # partition.
                is_new = state.is_new or (before is not None and before.is_new)
                hosted[state.topic_partition] = state._replace(
                    is_new=is_new, cause=_cause(state, before)
                )
        elif isinstance(request, StopReplica):
            for name in request.partitions:
                # The partition was stopped after it had been hosted, so only the stop remains.
                hosted.pop(name, None)
                topic_id = request.topic_ids.get(name)
                stop = _Stop(request.delete, request.leader_epoch(name), topic_id)
                stopped[name] = stop.after(stopped.get(name))
    return hosted, stopped
