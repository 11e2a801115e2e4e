"""Creates topics, adds partitions to them, and deletes them."""

from __future__ import annotations

from barnabas.client.admin.admin import NewTopic, TopicDescription
from barnabas.client.lag.readings import offsets_at
from barnabas.client.offsets import EARLIEST, LATEST
from barnabas.console.problem import FAILURES, WebProblem
from barnabas.console.writing.form import Form
from barnabas.console.writing.plan import Access, Action, Change, Plan
from barnabas.counted import counted
from barnabas.errors import TopicAlreadyExists
from barnabas.types import TopicPartition

_MOST_PARTITIONS = 10_000
_MOST_REPLICAS = 32_767
_BY_BROKER = "the brokers' default"


class CreateTopic(Action):
    """Creates a topic."""

    name = "create-topic"

    def __init__(self, topic: NewTopic) -> None:
        self._topic = topic

    @classmethod
    def parse(cls, form: Form) -> CreateTopic:
        """Return the action that a form describes."""
        partitions = form.optional_whole("partitions", least=1, most=_MOST_PARTITIONS)
        replicas = form.optional_whole("replication_factor", least=1, most=_MOST_REPLICAS)
        return cls(
            NewTopic(
                topic_field(form),
                -1 if partitions is None else partitions,
                -1 if replicas is None else replicas,
                form.pairs("configs"),
            )
        )

    @property
    def permission(self) -> str:
        """Name the permissions that the action requires."""
        return f"Create on the topic {self._topic.name!r} or on the cluster"

    async def plan(self, access: Access) -> Plan:
        """Let the brokers validate the topic, and return the topic as it will be created."""
        topic = self._topic
        try:
            await access.admin.create_topics([topic], validate_only=True)
        except TopicAlreadyExists:
            raise WebProblem(409, f"the topic {topic.name!r} already exists") from None
        changes = [
            Change("partitions", None, _count(topic.num_partitions)),
            Change("replication factor", None, _count(topic.replication_factor)),
        ]
        changes += [
            Change(f"config {name}", None, str(value))
            for name, value in sorted(topic.configs.items())
        ]
        return Plan(
            f"create topic {topic.name}",
            tuple(changes),
            ("The brokers have checked that they can create it.",),
        )

    async def apply(self, access: Access, plan: Plan) -> list[str]:
        """Create the topic."""
        del plan
        await access.admin.create_topics([self._topic])
        return [f"The topic {self._topic.name} was created."]


class AddPartitions(Action):
    """Increases the number of partitions of a topic."""

    name = "add-partitions"

    def __init__(self, topic: str, total: int) -> None:
        self._topic = topic
        self._total = total

    @classmethod
    def parse(cls, form: Form) -> AddPartitions:
        """Return the action that a form describes."""
        total = form.whole("partitions", least=1, most=_MOST_PARTITIONS)
        return cls(topic_field(form), total)

    @property
    def permission(self) -> str:
        """Name the permissions that the action requires."""
        return f"Alter on the topic {self._topic!r}"

    async def plan(self, access: Access) -> Plan:
        """Let the brokers validate the new number of partitions, and return the change."""
        topic = await describe_topic(access, self._topic)
        there = len(topic.partitions)
        if self._total <= there:
            raise WebProblem(
                400,
                f"partitions: the topic {topic.name!r} has {there}, and their number can only grow",
            )
        await access.admin.create_partitions(topic.name, self._total, validate_only=True)
        return Plan(
            f"add {counted(self._total - there, 'partition')} to topic {topic.name}",
            (Change("partitions", str(there), str(self._total)),),
            ("Records that are already there are not moved.",),
            (
                "From now on, a key may map to another partition than its earlier records. The "
                "number of partitions cannot be reduced again.",
            ),
            {"topic_id": topic.topic_id.hex()},
        )

    async def apply(self, access: Access, plan: Plan) -> list[str]:
        """Add the partitions."""
        del plan
        await access.admin.create_partitions(self._topic, self._total)
        return [f"The topic {self._topic} has {counted(self._total, 'partition')}."]


class DeleteTopic(Action):
    """Deletes a topic with all its records."""

    name = "delete-topic"

    def __init__(self, topic: str) -> None:
        self._topic = topic

    @classmethod
    def parse(cls, form: Form) -> DeleteTopic:
        """Return the action that a form describes. The form must contain the name twice."""
        topic = topic_field(form)
        if form.text("confirm") != topic:
            raise WebProblem(400, f"confirm: type the name of the topic, {topic!r}, to delete it")
        return cls(topic)

    @property
    def permission(self) -> str:
        """Name the permissions that the action requires."""
        return f"Delete on the topic {self._topic!r}"

    async def plan(self, access: Access) -> Plan:
        """Return what will be lost by the deletion."""
        topic = await describe_topic(access, self._topic)
        count = counted(len(topic.partitions), "partition")
        replicas = max((len(each.replicas) for each in topic.partitions), default=0)
        warnings = ["Deleted records cannot be brought back."]
        if topic.is_internal:
            warnings.append("This is an internal topic: groups or transactions need it.")
        return Plan(
            f"delete topic {topic.name}",
            (
                Change(
                    f"topic {topic.name}",
                    f"{count}, {counted(replicas, 'replica')} of each",
                    None,
                ),
            ),
            (await _records_sentence(access, topic),),
            tuple(warnings),
            {"topic_id": topic.topic_id.hex()},
        )

    async def apply(self, access: Access, plan: Plan) -> list[str]:
        """Delete the topic."""
        del plan
        await access.admin.delete_topics([self._topic])
        return [f"The topic {self._topic} was deleted."]


async def describe_topic(access: Access, name: str) -> TopicDescription:
    """Return a topic. Raises UnknownTopicOrPartition."""
    (topic,) = await access.admin.describe_topics([name])
    return topic


def topic_field(form: Form) -> str:
    """Return the name of a topic. The brokers decide whether a name is valid."""
    topic = form.text("topic")
    if not topic.strip():
        raise WebProblem(400, "topic: give its name")
    return topic


def _count(number: int) -> str:
    return _BY_BROKER if number < 0 else str(number)


async def _records_sentence(access: Access, topic: TopicDescription) -> str:
    names = [
        TopicPartition(topic.name, each.partition) for each in topic.partitions if each.leader >= 0
    ]
    if len(names) < len(topic.partitions):
        return "It is not known how many records it has: a partition has no leader."
    try:
        starts = await offsets_at(access.admin, names, EARLIEST)
        ends = await offsets_at(access.admin, names, LATEST)
    except FAILURES:
        return "It is not known how many records it has: their offsets could not be read."
    total = sum(ends[name] - starts[name] for name in names)
    return f"It has at most {counted(total, 'record')}, which are lost."
