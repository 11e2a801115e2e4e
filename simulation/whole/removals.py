"""Watches where the logs begin, and which replicas stay in sync too long, as `Witness` does.

True time decides what retention may remove, but no simulated broker knows it for certain: its
calendar may have been set to any time.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.broker.partitions.replica import Replica
from barnabas.types import TopicPartition
from simulation.whole.brokers import SimBroker
from simulation.whole.environment import RETENTION_MS, SHIFTING
from simulation.whole.history import OK, History, Writing
from simulation.whole.rules import Allowed, Tally

_LATE_MS = 1_000
"""How much later than Kafka's half of `replica.lag.time.max.ms` an ISR may be checked."""

_Member = tuple[Replica, int, int]
"""A leader's replica, its epoch, and a member of its ISR."""


class Removals:
    """Watches the brokers. `look` may be called any number of times; it only reads."""

    def __init__(self, history: History, lag_time_max_ms: int) -> None:
        self._history = history
        self._lag_time_max_ms = lag_time_max_ms
        self._starts: dict[tuple[int, TopicPartition], tuple[Replica, int]] = {}
        self._behind: dict[_Member, tuple[int, int]] = {}
        self._seen = {"young": 0, "start": 0, "lagging": 0}
        self._wrong: dict[tuple[str, str], str] = {}

    def look(self, brokers: Mapping[int, SimBroker], now_ms: int) -> None:
        """Look at the brokers that currently serve; `now_ms` is true time."""
        before, self._behind = self._behind, {}
        for broker_id, broker in brokers.items():
            life, server = broker.life, broker.server
            if not broker.is_serving or server is None or life is None:
                continue
            for replica in server.node.replicas:
                self._look_at_start(broker_id, replica, now_ms)
                if replica.partition.is_leader:
                    self._look_at_isr(broker_id, replica, before, now_ms, is_awake=life.is_running)

    def _look_at_start(self, broker_id: int, replica: Replica, now_ms: int) -> None:
        name, partition = replica.topic_partition, replica.partition
        start = replica.log.log_start_offset
        same, before = self._starts.get((broker_id, name), (replica, 0))
        self._starts[broker_id, name] = replica, start
        if same is not replica:
            return
        self._seen["start"] += 1
        if start > partition.high_watermark:
            words = f"begins at {start}, its high watermark is {partition.high_watermark}"
            self._tell("start", broker_id, name, words)
        if partition.is_leader and start < before:
            self._tell("start", broker_id, name, f"begins at {start} after {before}")
        if start > before and name.topic == SHIFTING:
            self._judge_age(broker_id, name, start, now_ms)

    def _judge_age(self, broker_id: int, name: TopicPartition, start: int, now_ms: int) -> None:
        allowed = self._history.deleted_to.get(name, 0)
        for writing in self._writings(name):
            if writing.outcome == OK and allowed <= writing.offset < start:
                self._seen["young"] += 1
                age_ms = now_ms - writing.at_ms
                if age_ms < RETENTION_MS:
                    words = f"has deleted {writing} at {writing.offset}, which is {age_ms} ms old"
                    self._tell("young", broker_id, name, words)

    def _writings(self, name: TopicPartition) -> list[Writing]:
        return [each for each in self._history.writings.values() if each.name == name]

    def _look_at_isr(
        self,
        broker_id: int,
        replica: Replica,
        before: Mapping[_Member, tuple[int, int]],
        now_ms: int,
        *,
        is_awake: bool,
    ) -> None:
        """Look at members that have not moved while there was something to fetch, under a leader
        that has led in this epoch and been awake all the time (RE-8). `before`: what the last
        look recorded."""
        partition = replica.partition
        limit_ms = self._lag_time_max_ms * 3 // 2 + _LATE_MS
        for member in partition.isr:
            follower = partition._followers.get(member)
            if follower is None:
                continue
            key, end = (replica, partition.leader_epoch, member), follower.log_end_offset
            is_behind = end < partition.log_end_offset and not partition.is_changing_isr
            last_end, since_ms = before.get(key, (end, now_ms))
            if not is_awake or not is_behind or last_end != end:
                self._behind[key] = end, now_ms
                continue
            self._behind[key] = end, since_ms
            self._seen["lagging"] += 1
            if now_ms - since_ms > limit_ms:
                words = f"has not moved from {end} for more than {limit_ms} ms, and is in the ISR"
                self._tell(
                    "lagging", broker_id, replica.topic_partition, f"broker {member} {words}"
                )

    def _tell(self, rule: str, broker_id: int, name: TopicPartition, words: str) -> None:
        self._wrong.setdefault((rule, f"{name} on broker {broker_id}"), words)

    def judge(self, tally: Tally, allowed: Allowed) -> None:
        """Report what was seen."""
        for rule, times in self._seen.items():
            tally.judged[rule] += times
        for (rule, where), words in self._wrong.items():
            tally.judge(rule, False, "{}: {}", where, words)
