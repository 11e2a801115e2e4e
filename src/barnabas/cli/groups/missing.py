"""Why a consumer never became a member of its group, as far as the cluster can tell."""

from __future__ import annotations

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.configs import BROKER, ConfigResource
from barnabas.counted import counted
from barnabas.errors import BarnabasError, CoordinatorNotAvailable

_PATIENCE_MS = 3_000
_FACTOR = "offsets.topic.replication.factor"


async def why_no_group(servers: str, group: str) -> str:
    """A reason and what to do about it; works with any broker of the Kafka family."""
    try:
        async with Admin(servers, default_api_timeout_ms=_PATIENCE_MS) as admin:
            try:
                await admin.describe_groups([group])
            except CoordinatorNotAvailable as error:
                # A broker of Kafka's does not give the reason.
                return str(error) if _FACTOR in str(error) else await suspicion(admin, error)
    except BarnabasError as error:
        return str(error)
    return "joining the group took longer than that; give it more time (--timeout-ms)"


async def suspicion(admin: Admin, error: BarnabasError) -> str:
    """The error, and its likely cause where there are fewer live brokers than replicas."""
    brokers = (await admin.describe_cluster()).brokers
    for broker in brokers:
        resource = ConfigResource(BROKER, str(broker.broker_id))
        for entry in await admin.describe_configs(resource, [_FACTOR]):
            if entry.value is not None and int(entry.value) > len(brokers):
                return (
                    f"{error}; {_FACTOR} is {entry.value} on broker {broker.broker_id}, but only "
                    f"{counted(len(brokers), 'live broker')}: start more, or lower it"
                )
    return str(error)
