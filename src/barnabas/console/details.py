"""Queries brokers for details that only one page shows, and caches the answers for a few seconds.

The functions that turn answers into shapes are pure.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from barnabas.cli.configs.text import SOURCES
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.configs import (
    BROKER,
    DEFAULT_CONFIG,
    TOPIC,
    ConfigEntry,
    ConfigResource,
)
from barnabas.client.admin.partition_admin import Reassignment
from barnabas.console.problem import FAILURES
from barnabas.console.query import Paging
from barnabas.console.security import (
    explanation,
    no_explanation,
    rules_about,
    security_page,
    why_hidden,
)
from barnabas.console.shapes import AccessExplanation, ConfigRow, Move, Security
from barnabas.console.topics import Ends
from barnabas.security.acl_binding import AclBinding
from barnabas.security.acl_explanation import Access
from barnabas.types import TopicPartition

_KEPT_S: Final = 10.0
_MOVES_KEPT_S: Final = 1.0
_MOST_KEPT: Final = 50
_PATIENCE_S: Final = 2.0


class _Answer(NamedTuple):
    at_s: float
    value: Any


class Details:
    """Answers queries about single topics, brokers and users."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._answers: dict[object, _Answer] = {}

    def forget(self) -> None:
        """Forget all cached answers after the cluster has changed."""
        self._answers.clear()

    async def topic_configs(self, name: str) -> list[ConfigRow] | None:
        """Return the configs of a topic, or None if no broker answers in time."""
        return await self._configs(ConfigResource(TOPIC, name))

    async def broker_configs(self, broker_id: int) -> list[ConfigRow] | None:
        """Return a broker's configs, or None if it does not answer in time."""
        return await self._configs(ConfigResource(BROKER, str(broker_id)))

    async def _configs(self, resource: ConfigResource) -> list[ConfigRow] | None:
        async def ask() -> list[ConfigRow]:
            return config_rows(await self._admin.describe_configs(resource))

        try:
            rows: list[ConfigRow] = await self._kept(resource, ask)
        except FAILURES:
            return None
        return rows

    async def replica_ends(self, replicas: Mapping[TopicPartition, Sequence[int]]) -> Ends:
        """Return the log end offsets of the replicas. Offsets that do not arrive in time are
        omitted.
        """
        try:
            async with asyncio.timeout(_PATIENCE_S):
                return await self._admin.replica_ends(replicas)
        except FAILURES:
            return {}

    async def moves(self, topic: str) -> list[Move] | None:
        """Return a topic's reassignments, or None if the controller does not answer in time."""

        async def ask() -> Mapping[TopicPartition, Reassignment]:
            return await self._admin.list_partition_reassignments()

        try:
            # One answer serves the pages of all topics.
            found = await self._kept("moves", ask, _MOVES_KEPT_S)
        except FAILURES:
            return None
        return [move_row(name, each) for name, each in found.items() if name.topic == topic]

    async def security(self, wanted: Paging) -> Security:
        """Return the ACLs and the users, or the reason why they cannot be shown."""
        acls: list[AclBinding] = []
        users: dict[str, list[str]] = {}
        errors: list[str] = []
        try:
            acls = await self._kept("acls", self._admin.describe_acls)
        except FAILURES as error:
            errors.append(f"rules: {why_hidden(error)}")
        try:
            users = await self._kept("users", self._admin.describe_user_scram_credentials)
        except FAILURES as error:
            errors.append(f"users: {why_hidden(error)}")
        return security_page(acls, users, wanted, "; ".join(errors))

    async def explain(self, access: Access) -> AccessExplanation:
        """Return whether the ACLs allow a request, or why the ACLs cannot be read."""
        wanted = rules_about(access)
        try:
            rules = await self._kept(wanted, lambda: self._admin.describe_acls(wanted))
        except FAILURES as error:
            return no_explanation(error)
        return explanation(access, rules)

    async def _kept(
        self, key: object, ask: Callable[[], Awaitable[Any]], kept_s: float = _KEPT_S
    ) -> Any:
        """Return the cached answer, or repeat the query if the answer is more than a few seconds
        old.
        """
        now_s = time.monotonic()
        kept = self._answers.get(key)
        if kept is not None and now_s - kept.at_s < kept_s:
            return kept.value
        async with asyncio.timeout(_PATIENCE_S):
            value = await ask()
        self._answers.pop(key, None)
        self._answers[key] = _Answer(now_s, value)
        while len(self._answers) > _MOST_KEPT:
            del self._answers[next(iter(self._answers))]
        return value


def move_row(name: TopicPartition, moving: Reassignment) -> Move:
    """Return the row of a partition that is being reassigned."""
    return Move(
        partition=name.partition,
        adding=list(moving.adding),
        removing=list(moving.removing),
        replicas=[each for each in moving.replicas if each not in moving.removing],
    )


def config_rows(entries: Iterable[ConfigEntry]) -> list[ConfigRow]:
    """Return the rows of configs, by name."""
    return [
        ConfigRow(
            name=each.name,
            # Brokers send no sensitive values, so this is a second safeguard.
            value=None if each.is_sensitive else each.value or "",
            source=_source_text(each.source),
            is_default=each.source == DEFAULT_CONFIG,
            is_read_only=each.is_read_only,
        )
        for each in sorted(entries, key=lambda entry: entry.name)
    ]


def _source_text(source: int) -> str:
    """Return a name such as `dynamic topic` for a constant such as Kafka's DYNAMIC_TOPIC_CONFIG."""
    if source not in SOURCES:
        return f"unknown source {source}"
    return SOURCES[source].removesuffix("_CONFIG").replace("_", " ").lower()
