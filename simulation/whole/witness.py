"""Watches which brokers lead during the run, and how far: the logs do not show this afterwards.

`look` only reads, and may be called any number of times. A leader that comes back within its
session leads on in the same epoch, from the high watermark of its checkpoint: only within one
process must the high watermark not fall. What clients see of that has a separate rule.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.broker.server import Server
from barnabas.replication.partition import Partition
from barnabas.types import TopicPartition
from simulation.whole.rules import Allowed, Tally

Key = tuple[TopicPartition, bytes, int]
"""A partition, its topic's id (which changes when the topic is recreated) and a leader epoch."""


class Witness:
    def __init__(self) -> None:
        self._leaders: dict[Key, int] = {}  # by partition and epoch
        self._watermarks: dict[Key, tuple[Partition, int]] = {}
        self._seen: dict[str, int] = {"one leader": 0, "watermark": 0}
        self._wrong: list[tuple[TopicPartition, str, str]] = []  # with the rule and the words

    def look(self, servers: Mapping[int, Server]) -> None:
        """Look at the brokers that are running now."""
        for broker_id, server in servers.items():
            for replica in server.node.replicas:
                partition = replica.partition
                if partition.is_leader:
                    key = (replica.topic_partition, partition.topic_id, partition.leader_epoch)
                    self._leads(key, broker_id)
                    self._reaches(key, partition)

    def _leads(self, key: Key, broker_id: int) -> None:
        self._seen["one leader"] += 1
        leader = self._leaders.setdefault(key, broker_id)
        if leader != broker_id:
            words = f"{key[0]}: brokers {leader} and {broker_id} lead in epoch {key[2]}"
            self._wrong.append((key[0], "one leader", words))

    def _reaches(self, key: Key, partition: Partition) -> None:
        self._seen["watermark"] += 1
        high_watermark = partition.high_watermark
        same, before = self._watermarks.get(key, (partition, high_watermark))
        if same is partition and high_watermark < before:
            words = f"{key[0]}: {high_watermark} after {before} in epoch {key[2]}"
            self._wrong.append((key[0], "watermark", words))
        self._watermarks[key] = (partition, high_watermark)

    @property
    def elections(self) -> int:
        """The number of elected leaders, not counting the first one of each partition."""
        return len(self._leaders) - len({(name, topic_id) for name, topic_id, _ in self._leaders})

    def judge(self, tally: Tally, allowed: Allowed) -> None:
        """Report what was seen; an epoch has one leader even where nothing else is promised."""
        for rule, times in self._seen.items():
            tally.judged[rule] += times
        for name, rule, words in self._wrong:
            if rule == "one leader" or name not in allowed.lossy:
                tally.judge(rule, False, "{}", words)
