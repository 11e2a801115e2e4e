"""Determines effective configs and their sources for the DescribeConfigs and CreateTopics requests.

Every place where a value is set is listed as a synonym, in descending order of precedence
(KIP-226):

    the topic's own setting
    /config/brokers/<id>        under each name of this key, by precedence
    /config/brokers/<default>   the same
    the properties file         the same
    the defaults                the same

As in Kafka, the list starts with the first entry that has the key's primary name, and entries
before it do not count as the source. For example, `retention.ms` is reported as a default if its
value comes from `log.retention.hours`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from itertools import dropwhile
from typing import NamedTuple

from barnabas.config import BROKER_KEYS, TOPIC_KEYS, BrokerConfig, ConfigKey, key_of
from barnabas.config.dynamic_keys import Scope, scope_of
from barnabas.config.topic_keys import SAME_SETTING, unusable


class Source(IntEnum):
    """Kafka's config sources, with their wire codes (KIP-226)."""

    DYNAMIC_TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6


class Synonym(NamedTuple):
    """A place where a config's value is set. The value of a secret is None."""

    name: str
    value: str | None
    source: Source


class Effective(NamedTuple):
    """A config that is in effect. `value` is its text, or None if the value is null or a secret
    (SE-6).
    """

    key: ConfigKey
    value: str | None
    source: Source
    synonyms: tuple[Synonym, ...]
    is_read_only: bool


def topic_configs(config: BrokerConfig, overrides: Mapping[str, str]) -> list[Effective]:
    """Return all configs of a topic. Its own settings take precedence over the broker's settings
    and the defaults.
    """
    in_force = config.log_config(overrides)
    useless = unusable(overrides)
    effective = []
    for key in TOPIC_KEYS.values():
        value = key.text(getattr(in_force, key.name.replace(".", "_")))
        synonyms: list[Synonym] = []
        if key.name in overrides and key.name not in useless:
            synonyms.append(Synonym(key.name, value, Source.DYNAMIC_TOPIC))
        if key.synonyms:
            synonyms += _synonyms(config, key.synonyms[0], is_sensitive=False)
        effective.append(Effective(key, value, _source(synonyms), tuple(synonyms), False))
    return effective


def broker_configs(config: BrokerConfig) -> list[Effective]:
    """Return all of this broker's configs, including settings that are not in the table of keys."""
    from barnabas.config.inert_keys import INTERNAL_KEYS  # most brokers never need the table

    names = [name for name in BROKER_KEYS if name not in INTERNAL_KEYS or config.is_set(name)]
    # The table does not contain settings for individual listeners, plug-ins or throttles.
    names += [name for name in config.set_names() if name not in BROKER_KEYS]
    effective = []
    for name in names:
        key = key_of(name)
        synonyms = _synonyms(config, name, key.is_sensitive)
        value = None if key.is_sensitive else key.text(config.value(name))
        effective.append(
            Effective(key, value, _source(synonyms), tuple(synonyms), _is_read_only(name))
        )
    return effective


def cluster_configs(config: BrokerConfig) -> list[Effective]:
    """Return only the configs that have been set as defaults for all brokers."""
    effective = []
    for name, text in config.cluster_wide.items():
        key = key_of(name)
        value = None if key.is_sensitive else text
        source = Source.DYNAMIC_DEFAULT_BROKER
        only = (Synonym(name, value, source),)
        effective.append(Effective(key, value, source, only, _is_read_only(name)))
    return effective


def _synonyms(config: BrokerConfig, name: str, is_sensitive: bool) -> list[Synonym]:
    """Return every place where this broker key or an equivalent key is set."""
    names = _names_of(name)
    found = [
        Synonym(each, None if is_sensitive else texts[each], source)
        for source, texts in (
            (Source.DYNAMIC_BROKER, config.per_broker),
            (Source.DYNAMIC_DEFAULT_BROKER, config.cluster_wide),
            (Source.STATIC_BROKER, config.properties),
        )
        for each in names
        if each in texts
    ]
    for each in names:
        key = BROKER_KEYS.get(each)
        if key is not None and key.default is not None:
            text = None if is_sensitive else key.text(key.default)
            found.append(Synonym(each, text, Source.DEFAULT))
    # As in Kafka, omit entries under other names if they precede the first entry under this name.
    return list(dropwhile(lambda synonym: synonym.name != name, found))


def _names_of(name: str) -> tuple[str, ...]:
    """Return the names under which a broker key can be set, in descending order of precedence.
    Nearly all keys have only one name.
    """
    if name.startswith("listener.name."):
        return (name, name.split(".", 3)[-1])
    return SAME_SETTING.get(name, (name,))


def _source(synonyms: list[Synonym]) -> Source:
    return synonyms[0].source if synonyms else Source.DEFAULT


def _is_read_only(name: str) -> bool:
    # Like Kafka, report a listener's settings as read-only, although they can be changed.
    return name not in BROKER_KEYS or scope_of(name) is Scope.READ_ONLY
