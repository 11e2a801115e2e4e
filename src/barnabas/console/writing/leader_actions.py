"""Elects the preferred leaders of partitions."""

from __future__ import annotations

from barnabas.client.admin.partition_admin import PREFERRED
from barnabas.client.view import PartitionView
from barnabas.console.problem import WebProblem, reason_of
from barnabas.console.writing.form import Form
from barnabas.console.writing.plan import Access, Action, Change, Plan
from barnabas.console.writing.topic_actions import topic_field
from barnabas.counted import counted
from barnabas.errors import ElectionNotNeeded
from barnabas.types import TopicPartition


class ElectLeaders(Action):
    """Elects each partition's first replica as its leader, if this replica is in sync."""

    name = "elect-leaders"

    def __init__(self, topic: str | None, names: frozenset[TopicPartition] | None = None) -> None:
        """If `topic` is None, the action applies to all topics. If `names` is None, it applies to
        all partitions.
        """
        self._topic = topic
        self._names = names

    @classmethod
    def parse(cls, form: Form) -> ElectLeaders:
        """Return the action that a form describes."""
        scope = form.choice("of", ("topic", "all topics"))
        return cls(topic_field(form) if scope == "topic" else None)

    @property
    def permission(self) -> str:
        """Name the permissions that the action requires."""
        return "Alter on the cluster"

    async def plan(self, access: Access) -> Plan:
        """Return the partitions whose leader is not the preferred one."""
        topics = await access.admin.describe_topics(None if self._topic is None else [self._topic])
        changes = []
        waiting = 0
        for topic in topics:
            for each in topic.partitions:
                name = TopicPartition(topic.name, each.partition)
                if not _is_elsewhere(each) or (self._names is not None and name not in self._names):
                    continue
                if each.replicas[0] not in each.isr or each.replicas[0] in each.offline:
                    waiting += 1
                    continue
                leader = "no leader" if each.leader < 0 else f"broker {each.leader}"
                changes.append(Change(str(name), leader, f"broker {each.replicas[0]}"))
        sentences = []
        if not changes:
            sentences.append("Each partition is led by its preferred leader, or cannot be.")
        if waiting:
            sentences.append(
                f"{counted(waiting, 'partition')} must wait, because the preferred replica is not "
                "in sync."
            )
        where = "of all topics" if self._topic is None else f"of topic {self._topic}"
        return Plan(f"elect preferred leaders {where}", tuple(changes), tuple(sentences))

    def as_planned(self, plan: Plan) -> ElectLeaders:
        """Return the election for the partitions in the plan."""
        return ElectLeaders(self._topic, frozenset(_names(plan)))

    async def apply(self, access: Access, plan: Plan) -> list[str]:
        """Hold the elections."""
        names = _names(plan)
        outcomes = await access.admin.elect_leaders(PREFERRED, names)
        failed = [
            f"{name}: {reason_of(error)}"
            for name, error in sorted(outcomes.items())
            if error is not None and not isinstance(error, ElectionNotNeeded)
        ]
        count = counted(len(names) - len(failed), "partition")
        if failed and len(failed) == len(names):
            raise WebProblem(422, f"no leader was elected: {'; '.join(failed[:3])}")
        return [f"{count} now led by the preferred leader.", *failed]


def _is_elsewhere(partition: PartitionView) -> bool:
    return bool(partition.replicas) and partition.leader != partition.replicas[0]


def _names(plan: Plan) -> list[TopicPartition]:
    """Return the partitions named in a plan. A topic's name may contain dashes."""
    found = []
    for change in plan.changes:
        topic, _, number = change.what.rpartition("-")
        found.append(TopicPartition(topic, int(number)))
    return found
