"""Topics' own configs in a simulated cluster: how the store keeps them and how brokers follow them.

A change is announced by a node, as Kafka's tools do it. Each broker watches for these nodes, and
the broker that is the controller passes them on to its term.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from barnabas.cluster import config_changes, layout
from barnabas.cluster.store import Create, Operation, Set
from barnabas.errors import NotController

if TYPE_CHECKING:
    from simulation.metadata import Ensemble
    from simulation.sim_broker import SimBroker

MIN_ISR = "min.insync.replicas"


class TopicConfigs(dict[str, Mapping[str, str]]):
    """The configs by topic, as the store currently has them."""

    def __init__(self, ensemble: Ensemble) -> None:
        super().__init__()
        self._ensemble = ensemble

    def __missing__(self, topic: str) -> Mapping[str, str]:
        path = layout.topic_config_path(topic)
        node = self._ensemble.tree.read(path)
        return {} if node is None else layout.decode_config(path, node.data)

    def alter(self, topic: str, config: Mapping[str, str]) -> None:
        """Write a config and announce it, as an administrator does. Raises NoNode."""
        entity = config_changes.entity(config_changes.TOPICS, topic)
        operations: list[Operation] = [
            Set(config_changes.config_path(entity), layout.encode_config(config)),
            Create(
                config_changes.CHANGE_PREFIX, config_changes.encode_change(entity), sequential=True
            ),
        ]
        self._ensemble.do(operations, 0)


class ConfigWatch:
    """Watches the configs for one broker."""

    __slots__ = ("_broker", "_configs", "_has_changed", "_is_started")

    def __init__(self, broker: SimBroker) -> None:
        self._broker = broker
        self._configs = TopicConfigs(broker.cluster.ensemble)
        self._has_changed = False
        self._is_started = False

    def skip_past_changes(self) -> None:
        """Watch for changes while the controller may be reading the topics."""
        self._broker.session.watch(config_changes.CHANGES, self._changed)

    def start(self) -> None:
        """Apply what has changed since the topics were loaded."""
        self._is_started = True
        self._apply()
        if self._has_changed:
            self._tell_all()

    def _changed(self) -> None:
        """Read all configs after a change, because notifications are deleted after a while."""
        self._broker.session.watch(config_changes.CHANGES, self._changed)
        if not self._is_started:
            self._has_changed = True
            return
        self._apply()
        self._tell_all()

    def _tell_all(self) -> None:
        """Report every topic, whether or not this broker knows it yet: its controller may."""
        node = self._broker.cluster.ensemble.tree.read(layout.TOPIC_CONFIGS)
        for topic in () if node is None else sorted(node.children):
            self._broker.loop.start(self._tell_controller(topic))

    def _apply(self) -> None:
        """Apply the topics' configs to their logs, and to those that arrive here later."""
        view, replicas = self._broker.view, self._broker.replicas
        topics = {
            name: topic._replace(config=self._configs[name])
            for name, topic in view.image.topics.items()
        }
        view.update(view.image._replace(topics=MappingProxyType(topics)))
        for name in dict.fromkeys(replica.topic_partition.topic for replica in replicas):
            replicas.update_topic_config(name, self._configs[name])

    def reread(self, topics: Iterable[str]) -> None:
        """Apply the configs of topics that are hosted here since a request from the controller.

        A change that came while the topic was unknown may be newer than the config in the request.
        """
        for topic in topics:
            self._broker.replicas.update_topic_config(topic, self._configs[topic])

    async def _tell_controller(self, topic: str) -> None:
        try:
            await self._broker.controller.topic_config_changed(topic)
        except NotController:
            return  # the next term begins by reading everything
