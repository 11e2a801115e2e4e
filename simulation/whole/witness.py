"""Who is seen to lead on the way, and how far: what the logs do not show afterwards.

`look` only reads, and may be called as often as one likes. A leader that comes back within its
session leads on in the same epoch, from the high watermark of its checkpoint: what may not fall is
the one of a process. What clients see of that has a rule of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.broker.server import Server
from barnabas.replication.partition import Partition
from barnabas.types import TopicPartition
from simulation.whole.rules import Allowed, Tally

Key = tuple[TopicPartition, bytes, int]
"""A partition, the id of its topic (one that is made again has another) and a leader epoch."""


class Witness:
    def __init__(self) -> None:
        self._leaders: dict[Key, int] = {}  # by partition and epoch
        self._watermarks: dict[Key, tuple[Partition, int]] = {}
        self._seen: dict[str, int] = {"one leader": 0, "watermark": 0}
        self._wrong: list[tuple[TopicPartition, str, str]] = []  # with the rule and the words

    def look(self, servers: Mapping[int, Server]) -> None:
        """At the brokers that run now."""
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
        """Of a leader for a partition, the first one of each not counted."""
        return len(self._leaders) - len({(name, topic_id) for name, topic_id, _ in self._leaders})

    def judge(self, tally: Tally, allowed: Allowed) -> None:
        """Tell what was seen; epochs have one leader even where nothing else is promised."""
        for rule, times in self._seen.items():
            tally.judged[rule] += times
        for name, rule, words in self._wrong:
            if rule == "one leader" or name not in allowed.lossy:
                tally.judge(rule, False, "{}", words)
