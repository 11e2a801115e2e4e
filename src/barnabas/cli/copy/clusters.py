"""Connects to the two clusters of a copy, and asks them for their topics."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

import click

from barnabas.cli.copy.copier import CopyFailed, read_progress
from barnabas.cli.copy.fetches import Fetches
from barnabas.cli.copy.plan import TopicFacts, is_wanted
from barnabas.cli.copy.progress import PROGRESS_TOPIC, Progress
from barnabas.client.admin.admin import (
    DYNAMIC_TOPIC_CONFIG,
    TOPIC,
    Admin,
    ConfigResource,
    NewTopic,
    TopicDescription,
)
from barnabas.client.channel import system_seams
from barnabas.client.cluster import Cluster
from barnabas.client.config import ClientConfig, configure, of_every_client
from barnabas.client.errors import NoBrokersAvailable
from barnabas.config import load_properties
from barnabas.errors import ConfigError, TopicAlreadyExists
from barnabas.types import TopicPartition

_COPIES_OF_THE_PROGRESS = 3


class Side(NamedTuple):
    """One of the two clusters."""

    admin: Admin
    cluster: Cluster
    cluster_id: str
    brokers: int

    @property
    def fetches(self) -> Fetches:
        return Fetches(self.cluster)

    async def topics(self, patterns: Sequence[str]) -> list[TopicDescription]:
        """Return the topics that are not internal and match one of the patterns."""
        found = await self.admin.describe_topics()
        return [
            each
            for each in found
            if not each.is_internal
            and each.name != PROGRESS_TOPIC
            and is_wanted(each.name, patterns)
        ]

    async def topic_facts(self, patterns: Sequence[str]) -> list[TopicFacts]:
        """Return what the plan needs to know about these topics."""
        described = await self.topics(patterns)
        names = [name for each in described for name in partitions_of(each)]
        ends = await self.fetches.ends(names) if names else {}
        configs = await self.own_configs([each.name for each in described])
        return [
            TopicFacts(
                each.name,
                each.topic_id.hex(),
                len(each.partitions),
                max(len(partition.replicas) for partition in each.partitions),
                configs[each.name],
                each.is_internal,
                is_empty=all(ends[name].start == ends[name].end for name in partitions_of(each)),
            )
            for each in described
        ]

    async def own_configs(self, topics: list[str]) -> dict[str, dict[str, str]]:
        """Return the configs that were set for each of these topics."""
        resources = [ConfigResource(TOPIC, name) for name in topics]
        described = await self.admin.describe_configs(resources)
        return {
            resource.name: {
                each.name: each.value
                for each in entries
                if each.source == DYNAMIC_TOPIC_CONFIG and each.value is not None
            }
            for resource, entries in described.items()
        }

    async def progress_of(self, source_id: str) -> Progress:
        """Return the progress of copies from that cluster into this one."""
        if PROGRESS_TOPIC not in await self.admin.list_topics():
            return Progress(source_id)
        return await read_progress(self.fetches, source_id)

    async def create_progress_topic(self) -> None:
        replicas = min(_COPIES_OF_THE_PROGRESS, self.brokers)
        topic = NewTopic(PROGRESS_TOPIC, 1, replicas, {"cleanup.policy": "compact"})
        with suppress(TopicAlreadyExists):
            await self.admin.create_topics([topic])


class Sides(NamedTuple):
    """The cluster to copy from, and the one to copy to."""

    source: Side
    target: Side


def partitions_of(topic: TopicDescription) -> list[TopicPartition]:
    return [TopicPartition(topic.name, each.partition) for each in topic.partitions]


@asynccontextmanager
async def both_sides(
    addresses: tuple[str, str], files: tuple[str | None, str | None]
) -> AsyncIterator[Sides]:
    """Connect to both clusters, for the length of a `with` block. Raises UsageError."""
    async with (
        _side("--from", addresses[0], _options(files[0])) as source,
        _side("--to", addresses[1], _options(files[1])) as target,
    ):
        if source.cluster_id == target.cluster_id:
            raise click.UsageError(f"--from and --to are the same cluster, {source.cluster_id}")
        yield Sides(source, target)


@asynccontextmanager
async def _side(option: str, servers: str, options: Mapping[str, Any]) -> AsyncIterator[Side]:
    config, _ = configure(ClientConfig, options)
    cluster = Cluster(servers, config, system_seams())
    try:
        await cluster.start()
    except NoBrokersAvailable as error:
        raise CopyFailed(f"{option}: {error}") from error
    try:
        async with Admin(servers, **options) as admin:
            described = await admin.describe_cluster()
            yield Side(admin, cluster, described.cluster_id, len(described.brokers))
    finally:
        await cluster.close()


def _options(path: str | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        return of_every_client(load_properties(path))
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
