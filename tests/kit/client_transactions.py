"""Topics, names and committed offsets for tests of our producer's transactions."""

from __future__ import annotations

from uuid import uuid4

from barnabas.client import (
    Admin,
    NewTopic,
    TopicPartition,
)

PATIENCE_S = 120.0


def name(stem: str) -> str:
    """Of a topic, a group and a transactional id that no other run of a test has."""
    return f"{stem}-{uuid4().hex[:8]}"


async def make(servers: str, *topics: str, partitions: int = 3, **configs: str) -> None:
    named = {key.replace("_", "."): value for key, value in configs.items()}
    async with Admin(servers) as admin:
        await admin.create_topics([NewTopic(topic, partitions, configs=named) for topic in topics])


async def committed(servers: str, group: str, *partitions: TopicPartition) -> list[int]:
    """Once no transaction can change them."""
    async with Admin(servers) as admin:
        found = await admin.list_group_offsets(group, partitions, require_stable=True)
    return [found[each].offset if each in found else -1 for each in partitions]
