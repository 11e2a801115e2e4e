"""Alters the configs of a topic, a single broker or all brokers.

AlterConfigs and IncrementalAlterConfigs share this code and differ only in the edit that they
apply.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.configs.broker_loggers import own_levels, set_levels
from barnabas.broker.configs.config_edit import Edit
from barnabas.broker.runtime.slices import in_slices
from barnabas.config import TOPIC_KEYS, ConfigKey, key_of
from barnabas.config.key import unknown_key
from barnabas.errors import (
    NONE,
    ClusterAuthorizationFailed,
    ConfigError,
    InvalidConfig,
    InvalidRequest,
    KafkaError,
    TopicAuthorizationFailed,
)
from barnabas.security.acl import CLUSTER_NAME, Operation, ResourceType

if TYPE_CHECKING:
    from barnabas.broker.context import Context


class ResourceKind(IntEnum):
    """The supported types of config resources, with the codes that Kafka uses for them."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8


class Alteration(NamedTuple):
    """The alteration requested for one resource.

    `edit` is not built until it is needed, so an error while building it is reported for this
    resource.
    """

    kind: int
    name: str
    edit: Callable[[Callable[[str], ConfigKey]], Edit]


class Outcome(NamedTuple):
    """The outcome for one resource. If the alteration succeeded, the code is 0 and the message is
    None.
    """

    kind: int
    name: str
    error_code: int
    error_message: str | None


async def alter_all(
    context: Context, alterations: Sequence[Alteration], validate_only: bool
) -> list[Outcome]:
    """Alter the resources one after another. If altering one of them fails, the rest are still
    altered.
    """
    times = Counter((each.kind, each.name) for each in alterations)
    outcomes = []
    async for each in in_slices(alterations):
        code, message = NONE, None
        try:
            # As in Kafka, if a resource is listed twice, both alterations are rejected, because it
            # is unclear which of them was intended.
            if times[each.kind, each.name] > 1:
                raise InvalidRequest(f"{each.name!r} is listed more than once; list it only once")
            await _alter(context, each, validate_only)
        except KafkaError as error:
            code, message = error.code, str(error)
        outcomes.append(Outcome(each.kind, each.name, code, message))
    return outcomes


async def _alter(context: Context, wanted: Alteration, validate_only: bool) -> None:
    name, dynamic = wanted.name, context.node.dynamic_config
    if wanted.kind == ResourceKind.TOPIC:
        # An empty name refers to all brokers (KIP-226).
        if not name:
            raise InvalidRequest(
                "the topic name is missing; configs cannot be set for all topics at once"
            )
        if not context.is_allowed(name):
            raise TopicAuthorizationFailed(f"not allowed to alter the configs of {name}")
        edit = wanted.edit(_topic_key)
        await dynamic.alter_topic(name, edit, validate_only=validate_only)
        return
    if wanted.kind not in (ResourceKind.BROKER, ResourceKind.BROKER_LOGGER):
        raise InvalidRequest(
            f"resource type {wanted.kind} has no configs; use 2 (topic), 4 (broker) or 8 "
            "(broker loggers)"
        )
    if not context.allowed_to(Operation.ALTER_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed("not allowed to alter the configs of brokers")
    broker_id = context.node.broker_id
    if wanted.kind == ResourceKind.BROKER_LOGGER:
        check_logger_owner(name, broker_id)
        levels = wanted.edit(_broker_key)(own_levels())
        if not validate_only:
            set_levels(levels)
        return
    if name not in ("", str(broker_id)):
        raise InvalidRequest(
            f"this is broker {broker_id}: send the request to broker {name!r}, or omit the "
            "broker id to alter the configs of all brokers"
        )
    edit = wanted.edit(_broker_key)
    await dynamic.alter_broker(broker_id if name else None, edit, validate_only=validate_only)


def check_logger_owner(name: str, broker_id: int) -> None:
    """Raise InvalidRequest if the logger resource belongs to another broker."""
    if name != str(broker_id):
        raise InvalidRequest(
            f"Unexpected broker id, expected {broker_id}, but received {name!r}: each broker has "
            "its own loggers"
        )


def _topic_key(name: str) -> ConfigKey:
    key = TOPIC_KEYS.get(name)
    if key is None:
        raise InvalidConfig(str(unknown_key(name, TOPIC_KEYS, "topic")))
    return key


def _broker_key(name: str) -> ConfigKey:
    try:
        return key_of(name)
    except ConfigError as error:
        raise InvalidConfig(str(error)) from None
