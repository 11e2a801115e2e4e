"""Checks deleted topics and later topics with the same names: no record of one may be in the
other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.cluster import layout
from barnabas.cluster.layout import Replicas
from barnabas.cluster.nodes import DELETE, Effect, Tree
from barnabas.types import TopicPartition
from simulation.disk import Entry
from simulation.history import History

if TYPE_CHECKING:
    from simulation.cluster import Cluster

_WISH = f"{layout.DELETE_TOPICS}/"
_TOPIC = f"{layout.TOPICS}/"
_DEPTH = _TOPIC.count("/")


class TopicChecks:
    """All topics of one run."""

    __slots__ = ("_assigned", "_cluster", "_meant_for")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._assigned: dict[str, Replicas] = {}  # by the topics' nodes
        self._meant_for: dict[int, bytes] = {}  # the topic of each value

    def sends(self, value: int, topic_id: bytes) -> None:
        """Record that a producer is going to write this value to the topic with this id."""
        self._meant_for[value] = topic_id

    def replicas_of(self, name: TopicPartition) -> Sequence[int]:
        return self._assigned.get(name.topic, {}).get(name.partition, ())

    def is_in(self, history: History, entry: Entry) -> None:
        """Judge an entry in the log of a topic whose name another topic had before."""
        if entry.value in self._meant_for:
            self._cluster.checks.judge(
                "namesake",
                self._meant_for[entry.value] == history.topic_id,
                "{}: {} was meant for another topic of that name",
                history.name,
                entry,
            )

    def committed(self, effect: Effect, tree: Tree) -> None:
        path = effect.path
        if path.startswith(_WISH):
            topic = path.removeprefix(_WISH)
            if effect.kind == DELETE:
                self._deleted(topic, tree)
            else:
                self._is_to_go(topic)
        elif effect.kind != DELETE and path.startswith(_TOPIC) and path.count("/") == _DEPTH:
            topic = path.removeprefix(_TOPIC)
            self._assigned[topic] = layout.decode_topic(topic, effect.data).replicas

    def _is_to_go(self, topic: str) -> None:
        """Expect every broker with a replica to delete it when it learns of the deletion."""
        topic_id = self._cluster.topics.get(topic)
        for history in self._cluster.checks.histories.values():
            if history.topic_id == topic_id:
                history.is_forked = True

    def is_being_deleted(self, topic: str) -> bool:
        """Return whether its deletion has been requested and is not complete."""
        return self._cluster.ensemble.tree.read(layout.delete_topic_path(topic)) is not None

    def _deleted(self, topic: str, tree: Tree) -> None:
        """Judge a deletion whose request, the last of the topic's nodes, has been removed."""
        judge = self._cluster.checks.judge
        paths = (layout.topic_path(topic), layout.topic_config_path(topic))
        left = [path for path in paths if tree.read(path) is not None]
        judge("leftovers", not left, "{} is deleted, and there are {}", topic, left)
        topic_id = self._cluster.topics[topic]
        for number, replicas in self._assigned.pop(topic, {}).items():
            for broker_id in replicas:
                log = self._cluster.disks[broker_id].logs.get(TopicPartition(topic, number))
                judge(
                    "leftovers",
                    log is None or log.topic_id != topic_id,
                    "{} is deleted, and broker {} has records of it",
                    topic,
                    broker_id,
                )
