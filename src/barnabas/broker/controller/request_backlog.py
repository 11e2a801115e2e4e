"""What a broker has yet to hear from the controller: in its order, but not without bound.

While a broker answers, each request is told as it was decided. What has gathered for one that does
not answer becomes what it would know after all of it: one update of its metadata, what it shall no
longer host, and what it shall. So there is never more than a few times of what the cluster has.

What may be under way, the first one, stays as it is.
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
"""So many requests, or twice as many as there were after the last time."""


class Wanted(NamedTuple):
    """A request, and the cluster as it was when that was decided."""

    request: ControlRequest
    image: ClusterImage


class _Stop(NamedTuple):
    delete: bool
    leader_epoch: int
    topic_id: bytes | None

    def after(self, before: _Stop | None) -> _Stop:
        """Both in one."""
        if before is None:
            return self
        delete = self.delete or before.delete
        epochs = (self.leader_epoch, before.leader_epoch)
        # Who would have obeyed one of them obeys both: a check that one lacks is none of theirs.
        unchecked = [each for each in (WHILE_DELETING, NO_EPOCH) if each in epochs]
        return _Stop(delete, unchecked[0] if unchecked else max(epochs), self.topic_id)


class Backlog:
    """For one registration of one broker."""

    __slots__ = ("_limit", "_queue")

    def __init__(self) -> None:
        self._queue: deque[Wanted] = deque()
        self._limit = MERGED_AT

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def first(self) -> Wanted:
        return self._queue[0]

    def add(self, request: ControlRequest, image: ClusterImage) -> None:
        """After all others; `image`: the cluster as it is with it."""
        self._queue.extend(Wanted(piece, image) for piece in in_pieces(request))
        if len(self._queue) > self._limit:
            first, *rest = self._queue
            self._queue = deque([first, *merged(rest)])
            self._limit = max(MERGED_AT, 2 * len(self._queue))

    def told(self) -> None:
        """The first one has been answered."""
        self._queue.popleft()
        if not self._queue:
            self._limit = MERGED_AT

    def clear(self) -> None:
        self._queue.clear()
        self._limit = MERGED_AT


def merged(wanted: Sequence[Wanted]) -> list[Wanted]:
    """What has the same effect as all of these, of one controller: the last word on everything.

    Metadata first: it says where the brokers are whom one shall follow. What is to be stopped comes
    before what is to be hosted: what was stopped last has nothing to host any more, and what is
    hosted again must lose first what it had before.
    """
    if not wanted:
        return []
    last, image = wanted[-1]
    update, removed = _update(wanted)
    hosted, stopped = _roles(wanted)
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
    # A topic that is gone is told partition by partition.
    known = image._replace(topics={**image.topics, **removed})
    return [
        Wanted(piece, known if isinstance(piece, UpdateMetadata) else image)
        for request in whole
        for piece in in_pieces(request)
    ]


def _update(wanted: Sequence[Wanted]) -> tuple[UpdateMetadata | None, dict[str, TopicImage]]:
    """One for all, and the topics that it removes as they were known before."""
    update: UpdateMetadata | None = None
    topics: dict[str, TopicImage] = {}
    removed: dict[str, TopicImage | None] = {}
    for request, image in wanted:
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
    wanted: Sequence[Wanted],
) -> tuple[dict[TopicPartition, PartitionState], dict[TopicPartition, _Stop]]:
    """What is hosted after all of it, and what has to be stopped before that."""
    hosted: dict[TopicPartition, PartitionState] = {}
    stopped: dict[TopicPartition, _Stop] = {}
    for request, _ in wanted:
        if isinstance(request, LeaderAndIsr):
            for state in request.partitions:
                before = hosted.get(state.topic_partition)
                # It has not heard of it before, so it has no records of it still.
                is_new = state.is_new or (before is not None and before.is_new)
                hosted[state.topic_partition] = state._replace(is_new=is_new)
        elif isinstance(request, StopReplica):
            for name in request.partitions:
                hosted.pop(name, None)
                topic_id = request.topic_ids.get(name)
                stop = _Stop(request.delete, request.leader_epoch(name), topic_id)
                stopped[name] = stop.after(stopped.get(name))
    return hosted, stopped
