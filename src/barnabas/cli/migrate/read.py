"""Asks the brokers of a cluster for what `barnabas migrate` has to know."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import PurePath
from typing import NamedTuple

from barnabas._version import __version__
from barnabas.cli.connection import client_options
from barnabas.cli.migrate.facts import BARNABAS, KAFKA, UNKNOWN, BrokerFacts, ClusterFacts
from barnabas.client.admin.admin import Admin, BrokerDescription
from barnabas.client.admin.configs import (
    BROKER,
    DEFAULT_CONFIG,
    DYNAMIC_TOPIC_CONFIG,
    TOPIC,
    ConfigResource,
)
from barnabas.client.channel import BrokerAddress, system_seams
from barnabas.client.cluster import Cluster
from barnabas.client.config import ClientConfig, configure
from barnabas.errors import BarnabasError, KafkaError
from barnabas.protocol.api import API_VERSIONS, DESCRIBE_CLUSTER, DESCRIBE_LOG_DIRS
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.describe_cluster import (
    NO_EVENTS,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from barnabas.protocol.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)

_IBP = "inter.broker.protocol.version"
_MIN_ISR, _POLICY, _COMPACT = "min.insync.replicas", "cleanup.policy", "compact"
_NO_EVENT = 2**62
_REQUEST_TIMEOUT_MS = 5_000
_CHANGE_TIMEOUT_MS = 30_000


class Connection(NamedTuple):
    """A connection to a cluster, and one to each of its brokers.

    Requests that change something use `changing`, because they may take longer.
    """

    admin: Admin
    cluster: Cluster
    changing: Admin

    async def look(self, *, in_full: bool = False) -> ClusterFacts:
        """Return the brokers, partitions and moves, without the configs of the topics.

        With `in_full`, each broker also reports its versions and configs.
        """
        described, topics, moving = await asyncio.gather(
            self.admin.describe_cluster(),
            self.admin.describe_topics(),
            self.admin.list_partition_reassignments(),
        )
        brokers = await asyncio.gather(
            *(self._broker(broker, in_full) for broker in described.brokers)
        )
        return ClusterFacts(
            described.cluster_id,
            described.controller_id,
            {each.broker_id: each for each in brokers},
            tuple(topics),
            moving=tuple(moving),
        )

    async def facts(self, *, in_full: bool = False) -> ClusterFacts:
        """Return the same with the configs of the topics; with `in_full`, all of them."""
        facts = await self.look(in_full=in_full)
        resources = [ConfigResource(TOPIC, each.name) for each in facts.topics]
        wanted = None if in_full else [_MIN_ISR, _POLICY]
        described = await self.admin.describe_configs(resources, wanted)
        settings = {
            topic.name: {each.name: each.value for each in entries}
            for topic, entries in described.items()
        }
        facts = facts._replace(
            min_isr={name: int(each.get(_MIN_ISR) or 1) for name, each in settings.items()},
            compacted=frozenset(
                name for name, each in settings.items() if _COMPACT in (each.get(_POLICY) or "")
            ),
        )
        if not in_full:
            return facts
        configs = {
            topic.name: {
                each.name: each.value for each in entries if each.source == DYNAMIC_TOPIC_CONFIG
            }
            for topic, entries in described.items()
        }
        return facts._replace(
            topic_configs={name: own for name, own in configs.items() if own},
            tokens=await self._tokens(),
        )

    async def log_directories(self, node: BrokerAddress) -> tuple[str, ...]:
        """Return the log directories of a broker, or none if it does not describe them."""
        try:
            answer = await self.cluster.call(
                node, DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(), DescribeLogDirsResponse
            )
        except BarnabasError:  # this is only for a warning
            return ()
        return tuple(sorted(str(PurePath(each.log_dir)) for each in answer.results))

    async def _tokens(self) -> int:
        try:
            return len(await self.admin.describe_delegation_tokens())
        except KafkaError:  # tokens are disabled, or this user must not see them
            return 0

    async def _broker(self, broker: BrokerDescription, in_full: bool) -> BrokerFacts:
        """Return what a broker reports, or that its kind is UNKNOWN if it does not respond."""
        node = BrokerAddress(broker.broker_id, broker.host, broker.port)
        try:
            # Only a Barnabas broker reports events; Kafka ignores the request for them.
            request = DescribeClusterRequest(events_after=_NO_EVENT)
            answer = await self.cluster.call(
                node, DESCRIBE_CLUSTER, request, DescribeClusterResponse
            )
            kind = KAFKA if answer.events_error == NO_EVENTS else BARNABAS
            facts = BrokerFacts(broker.broker_id, node, kind)
            return await self._in_full(node, facts) if in_full else facts
        except BarnabasError:
            return BrokerFacts(broker.broker_id, node, UNKNOWN)

    async def _in_full(self, node: BrokerAddress, facts: BrokerFacts) -> BrokerFacts:
        request = ApiVersionsRequest(
            client_software_name="barnabas", client_software_version=__version__
        )
        answer = await self.cluster.call(node, API_VERSIONS, request, ApiVersionsResponse)
        resource = ConfigResource(BROKER, str(node.node_id))
        entries = await self.admin.describe_configs(resource)
        protocol = next((each.value for each in entries if each.name == _IBP), None)
        return facts._replace(
            versions={
                each.api_key: (each.min_version, each.max_version) for each in answer.api_keys
            },
            features=tuple(each.name for each in answer.finalized_features),
            configs={each.name: each.value for each in entries if each.source != DEFAULT_CONFIG},
            protocol=protocol or "",
        )


@asynccontextmanager
async def connection_to(servers: str) -> AsyncIterator[Connection]:
    """Connect to a cluster, for the length of a `with` block."""
    # A broker that has just been stopped must not delay everything by its default timeout.
    options = {"request_timeout_ms": _REQUEST_TIMEOUT_MS, **client_options()}
    config, _ = configure(ClientConfig, options)
    cluster = Cluster(servers, config, system_seams())
    patient = {"request_timeout_ms": _CHANGE_TIMEOUT_MS, **client_options()}
    async with Admin(servers, **options) as admin, Admin(servers, **patient) as changing:
        await cluster.start()
        try:
            yield Connection(admin, cluster, changing)
        finally:
            await cluster.close()
