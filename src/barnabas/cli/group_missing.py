"""Why a consumer never became a member of its group, as far as the cluster can tell."""

from __future__ import annotations

from barnabas.client.admin import Admin
from barnabas.client.configs import BROKER, ConfigResource
from barnabas.cluster.layout import GROUP_TOPIC
from barnabas.errors import BarnabasError

_PATIENCE_MS = 3_000
_FACTOR = "offsets.topic.replication.factor"


async def why_no_group(servers: str) -> str:
    """A reason and what to do; any broker of the Kafka family may be asked."""
    try:
        async with Admin(servers, default_api_timeout_ms=_PATIENCE_MS) as admin:
            if GROUP_TOPIC not in await admin.list_topics():
                reason = await _too_many_replicas(admin)
                return reason or f"{GROUP_TOPIC} is not there yet; see the log of the brokers"
    except BarnabasError as error:
        return str(error)
    return "the group took longer than that; give it more time (--timeout-ms)"


async def _too_many_replicas(admin: Admin) -> str:
    brokers = (await admin.describe_cluster()).brokers
    for broker in brokers:
        resource = ConfigResource(BROKER, str(broker.broker_id))
        for entry in await admin.describe_configs(resource, [_FACTOR]):
            if entry.value is not None and int(entry.value) > len(brokers):
                return (
                    f"{GROUP_TOPIC} cannot be created: {_FACTOR} is {entry.value} on broker "
                    f"{broker.broker_id}, and the brokers that live are {len(brokers)}; start more "
                    "of them, or set it to as many as there will be, and start that one again"
                )
    return ""
