"""Queries the brokers for producers and quotas while somebody is viewing the clients.

The queries run in their own loop over their own connections, so that they do not delay other pages.
If there are many partitions, they are queried in turns, starting with those whose figures are the
oldest.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.quota_admin import QuotaEntity
from barnabas.client.admin.transaction_admin import ProducerState, producer_state
from barnabas.client.channel import BrokerAddress, system_seams
from barnabas.client.cluster import Cluster
from barnabas.client.config import ClientConfig, configure, split
from barnabas.client.errors import broker_error
from barnabas.console.log_ends import by_leader
from barnabas.console.problem import FAILURES, reason_of
from barnabas.console.snapshot import ClusterLook
from barnabas.errors import (
    ClusterAuthorizationFailed,
    TopicAuthorizationFailed,
    UnsupportedVersion,
)
from barnabas.protocol.api import DESCRIBE_PRODUCERS
from barnabas.protocol.messages.describe_producers import (
    DescribeProducersPartition,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopic,
)
from barnabas.types import TopicPartition, by_topic

MOST_AT_ONCE: Final = 500
"""The maximum number of partitions queried per turn."""
_MOST_PER_PARTITION: Final = 1_000
_MOST_PARTITIONS: Final = 20_000
MOST_STATES: Final = 20_000
_QUOTA_PATIENCE_S: Final = 5.0

Quotas = Mapping[QuotaEntity, Mapping[str, float]]


class ProducersOf(NamedTuple):
    """Represents the answer about one partition."""

    at_ms: int
    states: tuple[ProducerState, ...]
    left_out: int = 0
    """The number of producers dropped because there were too many."""
    is_denied: bool = False


class ClientSnapshot(NamedTuple):
    """Holds the producers of each queried partition, and the quotas."""

    producers: Mapping[TopicPartition, ProducersOf]
    producers_error: str
    quotas: Quotas
    quotas_error: str
    quotas_at_ms: int
    """0 if the producers have not been queried yet."""


NOTHING: Final = ClientSnapshot({}, "", {}, "", 0)


class ClientLook:
    """Keeps the latest answers. Call `look` repeatedly, and `close` at the end."""

    def __init__(self, servers: str, settings: Mapping[str, Any], admin: Admin) -> None:
        names, given = split(servers, settings)
        config, _ = configure(ClientConfig, given)
        self._cluster = Cluster(names, config, system_seams())
        self._is_started = False
        self._admin = admin
        self._asked_at: dict[TopicPartition, int] = {}
        self.known = NOTHING

    async def close(self) -> None:
        """Disconnect."""
        if self._is_started:
            await self._cluster.close()

    async def look(self, look: ClusterLook, now_ms: int) -> None:
        """Query the quotas, and the producers of some of the partitions."""
        await asyncio.gather(self._look_at_quotas(now_ms), self._look_at_producers(look, now_ms))

    def fail(self, reason: str) -> None:
        """Record why a poll failed. The figures remain unchanged."""
        self.known = self.known._replace(producers_error=reason)

    async def _look_at_quotas(self, now_ms: int) -> None:
        try:
            async with asyncio.timeout(_QUOTA_PATIENCE_S):
                quotas = await self._admin.describe_client_quotas()
        except FAILURES as error:
            self.known = self.known._replace(quotas_error=f"quotas: {_reason(error)}")
            return
        self.known = self.known._replace(quotas=quotas, quotas_error="", quotas_at_ms=now_ms)

    async def _look_at_producers(self, look: ClusterLook, now_ms: int) -> None:
        names = [name for name, _ in look.partitions()][:_MOST_PARTITIONS]
        before = self.known.producers
        turn = next_turn(names, self._asked_at)
        # Partitions whose leaders did not answer have had their turn, too.
        self._asked_at |= dict.fromkeys(turn, now_ms)
        errors: list[str] = []
        found: dict[TopicPartition, ProducersOf] = {}

        async def ask(node: BrokerAddress, own: Sequence[TopicPartition]) -> None:
            try:
                found.update(await self._ask(node, own, now_ms))
            except FAILURES as error:
                errors.append(f"broker {node.node_id}: {_reason(error)}")

        try:
            if not self._is_started:
                await self._cluster.start()
                self._is_started = True
            nodes = by_leader(look, turn).items()
            await asyncio.gather(*(ask(node, own) for node, own in nodes))
        except FAILURES as error:  # the connection failed
            errors.append(_reason(error))
        wanted = set(names)
        self._asked_at = {name: at for name, at in self._asked_at.items() if name in wanted}
        kept = {name: each for name, each in before.items() if name in wanted}
        self.known = self.known._replace(
            producers=within_bounds({**kept, **found}),
            producers_error="; ".join(sorted(set(errors))[:3]),
        )

    async def _ask(
        self, node: BrokerAddress, names: Iterable[TopicPartition], now_ms: int
    ) -> dict[TopicPartition, ProducersOf]:
        request = DescribeProducersRequest(
            topics=[
                DescribeProducersTopic(name=topic, partition_indexes=partitions)
                for topic, partitions in by_topic(names).items()
            ]
        )
        answer = await self._cluster.call(
            node, DESCRIBE_PRODUCERS, request, DescribeProducersResponse
        )
        return {
            TopicPartition(topic.name, each.partition_index): producers
            for topic in answer.topics
            for each in topic.partitions
            if (producers := _producers_of(each, now_ms)) is not None
        }


def next_turn(
    names: Iterable[TopicPartition], asked_at: Mapping[TopicPartition, int]
) -> list[TopicPartition]:
    """Return the partitions to query now, starting with those that were queried the longest time
    ago.
    """
    return heapq.nsmallest(MOST_AT_ONCE, names, key=lambda name: asked_at.get(name, 0))


def _producers_of(answer: DescribeProducersPartition, now_ms: int) -> ProducersOf | None:
    """Return a partition's producers, or None if the broker is not the leader or is not ready."""
    if answer.error_code:
        error = broker_error(answer.error_code, "producers")
        is_denied = isinstance(error, TopicAuthorizationFailed)
        return ProducersOf(now_ms, (), is_denied=True) if is_denied else None
    found = answer.active_producers
    newest = heapq.nlargest(_MOST_PER_PARTITION, found, key=lambda each: each.last_timestamp)
    return ProducersOf(now_ms, tuple(map(producer_state, newest)), len(found) - len(newest))


def within_bounds(
    producers: dict[TopicPartition, ProducersOf],
) -> dict[TopicPartition, ProducersOf]:
    """If there are too many producers in total, drop those of the partitions with the oldest
    answers.
    """
    count = sum(len(each.states) for each in producers.values())
    if count <= MOST_STATES:
        return producers
    left = MOST_STATES
    kept: dict[TopicPartition, ProducersOf] = {}
    for name, each in sorted(producers.items(), key=lambda one: one[1].at_ms, reverse=True):
        states = each.states[:left]
        left -= len(states)
        dropped = len(each.states) - len(states)
        kept[name] = each._replace(states=states, left_out=each.left_out + dropped)
    return kept


def _reason(error: Exception) -> str:
    if isinstance(error, ClusterAuthorizationFailed):
        return "the console's user lacks the permission DescribeConfigs on the cluster"
    if isinstance(error, UnsupportedVersion):
        return "this version of Kafka does not report them"
    return reason_of(error)
