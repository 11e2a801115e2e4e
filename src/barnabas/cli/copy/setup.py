"""Creates the topics of the target, and copies access rules and quotas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.cli.copy.clusters import Side, Sides
from barnabas.cli.copy.plan import LOG_APPEND_TIME, TIMESTAMP_TYPE, Configs, TopicPlan
from barnabas.client.admin.admin import (
    TOPIC,
    ConfigOperation,
    ConfigOperationType,
    ConfigResource,
    NewTopic,
)
from barnabas.client.admin.quota_admin import QuotaEntity
from barnabas.errors import KafkaError, SecurityDisabled, TopicAlreadyExists, UnsupportedVersion
from barnabas.security.acl_binding import AclBinding


class Settings(NamedTuple):
    """Contains what belongs to a cluster and to no topic. `notes` say what could not be read."""

    acls: frozenset[AclBinding]
    quotas: dict[QuotaEntity, dict[str, float]]
    users: tuple[str, ...]  # with SCRAM credentials, which cannot be copied
    has_rules: bool  # whether there is an authorizer
    notes: tuple[str, ...] = ()


async def settings_of(side: Side) -> Settings:
    """Return the settings of a cluster, as far as it shows them."""
    acls: frozenset[AclBinding] = frozenset()
    quotas: dict[QuotaEntity, dict[str, float]] = {}
    users: tuple[str, ...] = ()
    has_rules, notes = True, []
    try:
        acls = frozenset(await side.admin.describe_acls())
    except SecurityDisabled:
        has_rules = False
    except KafkaError as error:
        notes.append(f"access rules cannot be read: {error}")
    try:
        quotas = await side.admin.describe_client_quotas()
        users = tuple(sorted(await side.admin.describe_user_scram_credentials()))
    except (KafkaError, UnsupportedVersion) as error:
        notes.append(f"quotas and users cannot be read: {error}")
    return Settings(acls, quotas, users, has_rules, tuple(notes))


def settings_notes(source: Settings, target: Settings) -> list[str]:
    """Name what will not be copied."""
    notes = list(source.notes)
    if source.users:
        notes.append(
            f"passwords cannot be read: create the users {', '.join(source.users)} again with "
            "`barnabas users add`"
        )
    if source.acls and not target.has_rules:
        notes.append(
            "access rules are not copied, because the target has no authorizer: `barnabas server "
            "start --secure` or authorizer.class.name adds one"
        )
    return notes


async def copy_settings(sides: Sides) -> tuple[int, int]:
    """Copy missing access rules and differing quotas. Returns how many of each were copied."""
    source, target = await settings_of(sides.source), await settings_of(sides.target)
    rules = source.acls - target.acls if target.has_rules else frozenset()
    if rules:
        await sides.target.admin.create_acls(sorted(rules, key=repr))
    quotas = {
        entity: values
        for entity, values in source.quotas.items()
        if target.quotas.get(entity) != values
    }
    for entity, values in quotas.items():
        await sides.target.admin.alter_client_quotas(dict(entity), values)
    return len(rules), len(quotas)


async def create_topics(side: Side, plans: Iterable[TopicPlan]) -> int:
    """Create the topics that do not exist yet. Returns their number."""
    created = 0
    for plan in plans:
        if plan.exists:
            continue
        topic = NewTopic(plan.name, plan.source.partitions, plan.replicas, plan.first_configs)
        try:
            await side.admin.create_topics([topic])
        except TopicAlreadyExists:
            continue
        created += 1
    return created


async def set_times(side: Side, plans: Iterable[TopicPlan], *, is_copying: bool) -> None:
    """Let topics with log-append time keep the times of copied records, or end this."""
    for plan in plans:
        if plan.has_append_time:
            wanted: Configs = (
                plan.first_configs if is_copying else {TIMESTAMP_TYPE: LOG_APPEND_TIME}
            )
            operation = ConfigOperation(
                TIMESTAMP_TYPE, ConfigOperationType.SET, wanted[TIMESTAMP_TYPE]
            )
            await side.admin.alter_configs(ConfigResource(TOPIC, plan.name), [operation])
