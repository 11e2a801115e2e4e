"""Clears the throttles that limit the copying of reassigned partitions."""

from __future__ import annotations

from barnabas.cli.partitions.reassign_throttle import BROKER_SETTINGS, TOPIC_SETTINGS, clear
from barnabas.client.admin.configs import (
    BROKER,
    DYNAMIC_BROKER_CONFIG,
    DYNAMIC_TOPIC_CONFIG,
    TOPIC,
    ConfigResource,
)
from barnabas.console.problem import WebProblem, reason_of
from barnabas.console.writing.form import Form
from barnabas.console.writing.plan import Access, Action, Change, Plan
from barnabas.console.writing.reassign_actions import check_idle
from barnabas.console.writing.topic_actions import describe_topic, topic_field

_OWN = (DYNAMIC_BROKER_CONFIG, DYNAMIC_TOPIC_CONFIG)


class ClearThrottles(Action):
    """Clears the throttles of all brokers and of one topic."""

    name = "clear-throttles"

    def __init__(self, topic: str) -> None:
        self._topic = topic

    @classmethod
    def parse(cls, form: Form) -> ClearThrottles:
        """Return the action that a form describes."""
        return cls(topic_field(form))

    @property
    def permission(self) -> str:
        """Name the permissions that the action requires."""
        return (
            "Describe, DescribeConfigs and AlterConfigs on the cluster, and DescribeConfigs and "
            f"AlterConfigs on the topic {self._topic!r}"
        )

    async def plan(self, access: Access) -> Plan:
        """Return the configs that would be deleted."""
        topic = await describe_topic(access, self._topic)
        moving = await access.admin.list_partition_reassignments()
        check_idle(moving, moving)  # a broker has one rate for all reassignments
        changes = [
            change
            for broker_id in await _broker_ids(access)
            for change in await _set_configs(
                access, ConfigResource(BROKER, str(broker_id)), BROKER_SETTINGS
            )
        ]
        changes += await _set_configs(access, ConfigResource(TOPIC, topic.name), TOPIC_SETTINGS)
        return Plan(
            f"clear the throttles of all brokers and of topic {topic.name}",
            tuple(changes),
            () if changes else ("Neither a broker nor this topic has a throttle.",),
            (),
            {"topic_id": topic.topic_id.hex()},
        )

    async def apply(self, access: Access, plan: Plan) -> list[str]:
        """Delete the configs."""
        del plan
        failed = await clear(access.admin, await _broker_ids(access), [self._topic])
        if failed:
            reasons = [f"{each.name}: {reason_of(error)}" for each, error in failed.items()]
            raise WebProblem(422, f"not all throttles were cleared: {'; '.join(reasons[:3])}")
        return ["The throttles were cleared."]


async def _broker_ids(access: Access) -> list[int]:
    return [each.broker_id for each in (await access.admin.describe_cluster()).brokers]


async def _set_configs(
    access: Access, resource: ConfigResource, names: tuple[str, ...]
) -> list[Change]:
    """Return the deletion of the configs that are set on a resource itself."""
    where = f"broker {resource.name}" if resource.type == BROKER else f"topic {resource.name}"
    return [
        Change(f"{each.name} of {where}", each.value, None)
        for each in await access.admin.describe_configs(resource, names)
        if each.source in _OWN
    ]
