"""Decides where the members of a console consumer's group begin.

A console consumer's own group commits nothing, so its positions are remembered here.

Without that each rebalance, as when a topic has been given more partitions, would start again by
`auto.offset.reset`: records would be printed twice, or never.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.subscription import RebalanceListener
from barnabas.errors import BarnabasError
from barnabas.types import TopicPartition


class OwnGroup(RebalanceListener):
    """Seeks to where the only member of the group has been, or begins.

    `begins`: what "from now on" means, by partition that was there when the command started; None
    for its end when the group has formed. All records of other partitions came later, and are read.
    Without `begins` `auto.offset.reset` says where a partition begins.
    """

    def __init__(
        self, consumer: Consumer, begins: Mapping[TopicPartition, int | None] | None
    ) -> None:
        self._consumer = consumer
        self._positions = dict(begins or {})
        self._is_from_now = begins is not None
        self._topic_ids: dict[str, bytes] = {}

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        known = self._consumer.positions()
        self._positions |= {name: known[name].offset for name in partitions if name in known}

    async def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        await self._forget_topics_that_are_gone({name.topic for name in partitions})
        for name in partitions:
            offset = self._positions.get(name, 0 if self._is_from_now else None)
            if offset is not None:
                self._consumer.seek(name, offset)

    async def _forget_topics_that_are_gone(self, topics: Set[str]) -> None:
        """One that has been made again is another topic: positions in the old one mean nothing."""
        try:
            ids = await self._consumer.topic_ids(topics)
        except BarnabasError:
            ids = {}  # no broker answers now: what is assigned is most likely the same
        gone = {name for name, known in self._topic_ids.items() if ids.get(name, known) != known}
        self._positions = {
            name: offset
            for name, offset in self._positions.items()
            if name.topic in topics and name.topic not in gone
        }
        self._topic_ids |= ids


class LaterTopic(RebalanceListener):
    """Reads a topic that was made after the command had started from its first record on.

    All its records came from now on. The group goes on where it has committed: other members may
    have been quicker.
    """

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer

    async def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        for name, committed in (await self._consumer.committed(partitions)).items():
            if committed is None:
                self._consumer.seek(name, 0)
