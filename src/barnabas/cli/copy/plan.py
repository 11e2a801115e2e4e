"""Decides which topics are created, with which configs, and what cannot be copied. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from barnabas.cli.copy.progress import PROGRESS_TOPIC
from barnabas.config.topic_keys import TOPIC_KEYS
from barnabas.counted import counted
from barnabas.types import TopicPartition

TIMESTAMP_TYPE, CREATE_TIME, LOG_APPEND_TIME = (
    "message.timestamp.type",
    "CreateTime",
    "LogAppendTime",
)
_TIERED = ("remote.", "local.")
_OF_THE_OLD_CLUSTER = (
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
)

Configs = Mapping[str, str]


class TopicFacts(NamedTuple):
    """A topic of one of the clusters. `configs` are those that were set for it."""

    name: str
    topic_id: str
    partitions: int
    replicas: int
    configs: Configs = {}
    is_internal: bool = False
    is_empty: bool = False


class TopicPlan(NamedTuple):
    """Describes what to do about one topic. If it exists already, only its records are copied."""

    source: TopicFacts
    exists: bool
    replicas: int
    configs: Configs
    notes: tuple[str, ...] = ()
    problem: str = ""

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def partitions(self) -> list[TopicPartition]:
        return [TopicPartition(self.name, each) for each in range(self.source.partitions)]

    @property
    def has_append_time(self) -> bool:
        return self.configs.get(TIMESTAMP_TYPE) == LOG_APPEND_TIME

    @property
    def first_configs(self) -> Configs:
        """The configs while records are copied, which keep their times."""
        if self.has_append_time:
            return {**self.configs, TIMESTAMP_TYPE: CREATE_TIME}
        return self.configs


def is_wanted(name: str, patterns: Sequence[str]) -> bool:
    """Return whether a name matches one of the patterns. Without patterns, every name does."""
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def plan_topics(
    source: Iterable[TopicFacts],
    target: Iterable[TopicFacts],
    copied: Mapping[str, str],
    brokers: int,
    replicas: int | None = None,
) -> list[TopicPlan]:
    """Return the plan for each topic of the source that is not internal.

    `copied` maps the topics that were copied before to the ids of their copies; `brokers` is the
    number of brokers of the target.
    """
    present = {each.name: each for each in target}
    plans = []
    for topic in sorted(source):
        if topic.is_internal or topic.name == PROGRESS_TOPIC:
            continue
        configs = {name: value for name, value in topic.configs.items() if _is_kept(name)}
        number = min(topic.replicas, brokers) if replicas is None else replicas
        known = present.get(topic.name)
        plan = TopicPlan(topic, known is not None, number, configs)
        plans.append(
            plan._replace(
                notes=tuple(_notes(plan, topic)),
                problem="" if known is None else _problem(topic, known, copied),
            )
        )
    return plans


def _is_kept(name: str) -> bool:
    return (
        name in TOPIC_KEYS
        and not name.startswith(_TIERED)
        and name != "message.format.version"
        and name not in _OF_THE_OLD_CLUSTER
    )


def _notes(plan: TopicPlan, topic: TopicFacts) -> Iterator[str]:
    for name, value in sorted(topic.configs.items()):
        if name not in plan.configs and name not in _OF_THE_OLD_CLUSTER:
            yield f"config {name}={value} is left out, because Barnabas does not have it"
    if plan.has_append_time and not plan.exists:
        yield (
            "its records keep their times, so message.timestamp.type is set to LogAppendTime only "
            "at the end of the run"
        )
    if not plan.exists and plan.replicas < topic.replicas:
        yield f"{counted(plan.replicas, 'replica')} instead of {topic.replicas}"


def _problem(topic: TopicFacts, known: TopicFacts, copied: Mapping[str, str]) -> str:
    if known.partitions != topic.partitions:
        has = counted(known.partitions, "partition")
        advice = f"; `barnabas topics alter {topic.name} --partitions {topic.partitions}` adds more"
        is_smaller = known.partitions < topic.partitions
        return f"the target's topic has {has}, not {topic.partitions}" + advice * is_smaller
    if not known.is_empty and copied.get(topic.name) != known.topic_id:
        return "the target has a topic of this name that contains records and is no copy"
    return ""
