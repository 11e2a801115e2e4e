"""The requests that a broker has yet to answer to the controller: in order, and bounded.

While a broker answers, each request is sent as it was decided. Requests that accumulate for a
broker that does not answer are merged into their combined effect: one metadata update, the
partitions to stop hosting, and the partitions to host. So a backlog never holds more than a few
times the size of the cluster's state.

The first request stays as it is, because it may already be on its way.
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
"""The requests at which to merge, or twice as many as the last merge left, if that is more."""


class PendingRequest(NamedTuple):
    """A request, with the cluster at the time of the decision."""

    request: ControlRequest
    image: ClusterImage


class _Stop(NamedTuple):
    delete: bool
    leader_epoch: int
    topic_id: bytes | None

    def after(self, before: _Stop | None) -> _Stop:
        """Return both stops as one."""
        if before is None:
            return self
        # A later stop that keeps the log does not undo a deletion.
        delete = self.delete or before.delete
        epochs = (self.leader_epoch, before.leader_epoch)
        # A broker that would have applied one of them must apply both: a check missing from one is
        # dropped.
        unchecked = [each for each in (WHILE_DELETING, NO_EPOCH) if each in epochs]
        return _Stop(delete, unchecked[0] if unchecked else max(epochs), self.topic_id)


class RequestBacklog:
    """The backlog of one registration of one broker."""

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
        """Add a request after all others; `image` is the cluster after it is carried out."""
        self._queue.extend(PendingRequest(piece, image) for piece in in_pieces(request))
        # The limit grows with what a merge leaves, so merges are rare, however many partitions
        # exist.
        if len(self._queue) > self._limit:
            first, *rest = self._queue
            self._queue = deque([first, *merge_requests(rest)])
            self._limit = max(MERGED_AT, 2 * len(self._queue))

    def remove_first(self) -> None:
        """Remove the first request after its answer."""
        self._queue.popleft()
        if not self._queue:
            self._limit = MERGED_AT

    def clear(self) -> None:
        self._queue.clear()
        self._limit = MERGED_AT


def merge_requests(requests: Sequence[PendingRequest]) -> list[PendingRequest]:
    """Return fewer requests with the same effect; all were decided by one controller.

    Metadata comes first: it has the addresses of the leaders to follow. StopReplica comes before
    LeaderAndIsr: a partition that was stopped last is no longer hosted, and one that is hosted
    again must lose its earlier log first.
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
    # The removal of a topic is sent partition by partition.
    known = image._replace(topics={**image.topics, **removed})
    return [
        PendingRequest(piece, known if isinstance(piece, UpdateMetadata) else image)
        for request in whole
        for piece in in_pieces(request)
    ]


def _update(
    requests: Sequence[PendingRequest],
) -> tuple[UpdateMetadata | None, dict[str, TopicImage]]:
    """Return one update for all, and the topics that it removes as they were before."""
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


def _roles(
    requests: Sequence[PendingRequest],
) -> tuple[dict[TopicPartition, PartitionState], dict[TopicPartition, _Stop]]:
    """Return the partitions hosted after all of them, and those to stop before that."""
    hosted: dict[TopicPartition, PartitionState] = {}
    stopped: dict[TopicPartition, _Stop] = {}
    for request, _ in requests:
        if isinstance(request, LeaderAndIsr):
            for state in request.partitions:
                before = hosted.get(state.topic_partition)
                # A broker that never got the first request still has no records of the partition.
                is_new = state.is_new or (before is not None and before.is_new)
                hosted[state.topic_partition] = state._replace(is_new=is_new)
        elif isinstance(request, StopReplica):
            for name in request.partitions:
                # Stopped after it was hosted: only the stop remains.
                hosted.pop(name, None)
                topic_id = request.topic_ids.get(name)
                stop = _Stop(request.delete, request.leader_epoch(name), topic_id)
                stopped[name] = stop.after(stopped.get(name))
    return hosted, stopped
