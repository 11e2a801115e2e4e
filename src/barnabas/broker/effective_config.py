"""What a config's value is and where it comes from, as DescribeConfigs and CreateTopics tell it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from barnabas.config import BROKER_KEYS, TOPIC_KEYS, BrokerConfig, ConfigKey


class Source(IntEnum):
    """Kafka's config sources, with their codes on the wire (KIP-226)."""

    DYNAMIC_TOPIC = 1
    STATIC_BROKER = 4
    DEFAULT = 5


class Effective(NamedTuple):
    """A config in force; `value` is its text, None for null."""

    key: ConfigKey
    value: str | None
    source: Source


def topic_configs(config: BrokerConfig, overrides: Mapping[str, str]) -> list[Effective]:
    """Every config of a topic: its own settings over the broker's over the defaults."""
    in_force = config.log_config(overrides)
    effective = []
    for key in TOPIC_KEYS.values():
        if key.name in overrides:
            source = Source.DYNAMIC_TOPIC
        elif any(config.is_set(synonym) for synonym in key.synonyms):
            source = Source.STATIC_BROKER
        else:
            source = Source.DEFAULT
        value = getattr(in_force, key.name.replace(".", "_"))
        effective.append(Effective(key, key.text(value), source))
    return effective


def broker_configs(config: BrokerConfig) -> list[Effective]:
    """Every config of this broker; secrets are null (SE-6)."""
    return [
        Effective(
            key,
            None if key.is_sensitive else key.text(config.value(key.name)),
            Source.STATIC_BROKER if config.is_set(key.name) else Source.DEFAULT,
        )
        for key in BROKER_KEYS.values()
    ]
