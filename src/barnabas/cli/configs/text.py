"""Formats the output of `configs describe` as JSON values, or exactly as Kafka 3.9 prints it. Pure.

Dynamic configs for topic test are:
  retention.ms=1000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=1000}
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from barnabas.client.admin.configs import (
    BROKER,
    BROKER_LOGGER,
    DEFAULT_CONFIG,
    DYNAMIC_BROKER_CONFIG,
    DYNAMIC_BROKER_LOGGER_CONFIG,
    DYNAMIC_DEFAULT_BROKER_CONFIG,
    DYNAMIC_TOPIC_CONFIG,
    STATIC_BROKER_CONFIG,
    TOPIC,
    ConfigEntry,
    ConfigResource,
    ConfigSynonym,
)
from barnabas.config import BROKER_KEYS, TOPIC_KEYS, ConfigKey
from barnabas.config.dynamic_keys import scope_of
from barnabas.config.key import unknown_key

SOURCES = {
    DYNAMIC_TOPIC_CONFIG: "DYNAMIC_TOPIC_CONFIG",
    DYNAMIC_BROKER_CONFIG: "DYNAMIC_BROKER_CONFIG",
    DYNAMIC_DEFAULT_BROKER_CONFIG: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    STATIC_BROKER_CONFIG: "STATIC_BROKER_CONFIG",
    DEFAULT_CONFIG: "DEFAULT_CONFIG",
    DYNAMIC_BROKER_LOGGER_CONFIG: "DYNAMIC_BROKER_LOGGER_CONFIG",
}
KINDS = {TOPIC: "topic", BROKER: "broker", BROKER_LOGGER: "broker-logger"}
"""Kafka's names for the resource types."""


def shown_entries(
    resource: ConfigResource, entries: Iterable[ConfigEntry], everything: bool
) -> list[ConfigEntry]:
    """Return the entries set on the resource itself, or all entries, sorted by name."""
    own = DYNAMIC_TOPIC_CONFIG
    # "" stands for the defaults of all brokers, whose values have a separate source.
    if resource.type == BROKER:
        own = DYNAMIC_BROKER_CONFIG if resource.name else DYNAMIC_DEFAULT_BROKER_CONFIG
    if resource.type == BROKER_LOGGER:
        own = DYNAMIC_BROKER_LOGGER_CONFIG
    return sorted(entry for entry in entries if everything or entry.source == own)


def describe_configs_text(
    resource: ConfigResource, entries: Iterable[ConfigEntry], everything: bool
) -> str:
    """Return the lines that Kafka prints, each ending in a newline."""
    lines = [heading(resource, everything)]
    for entry in entries:
        synonyms = ", ".join(map(synonym_text, entry.synonyms))
        sensitive = "true" if entry.is_sensitive else "false"
        lines.append(
            f"  {entry.name}={_java(entry.value)} sensitive={sensitive} synonyms={{{synonyms}}}"
        )
    return "\n".join(lines) + "\n"


def heading(resource: ConfigResource, everything: bool) -> str:
    kind = KINDS[resource.type]
    if not resource.name:
        return f"Default configs for {kind}s in the cluster are:"
    return f"{'All' if everything else 'Dynamic'} configs for {kind} {resource.name} are:"


def synonym_text(synonym: ConfigSynonym) -> str:
    source = SOURCES.get(synonym.source, "UNKNOWN")
    return f"{source}:{synonym.name}={_java(synonym.value)}"


def describe_configs_values(entries: Iterable[ConfigEntry]) -> list[dict[str, Any]]:
    """Return the same values for JSON, with details that the lines omit."""
    return [
        {
            "name": entry.name,
            "value": entry.value,
            "source": SOURCES.get(entry.source, "UNKNOWN"),
            "type": entry.type,
            "read_only": entry.is_read_only,
            "sensitive": entry.is_sensitive,
            "synonyms": [
                {"name": name, "value": value, "source": SOURCES.get(source, "UNKNOWN")}
                for name, value, source in entry.synonyms
            ],
            "documentation": entry.documentation,
        }
        for entry in entries
    ]


def explain_text(name: str) -> str:
    """Return the documentation of the topic or broker config, or configs, whose names start with
    this text.

    Raises ConfigError if there is none.
    """
    every = {**BROKER_KEYS, **TOPIC_KEYS}
    if name not in every and name:
        near = sorted(each for each in every if each.startswith(name))
        # If several names start with the text, list all of them. If only one does, show that one.
        if len(near) > 1:
            return "".join(f"{each}\n  {every[each].doc}\n" for each in near)
        name = near[0] if near else name
    found = [
        (kind, keys[name])
        for kind, keys in (("topic", TOPIC_KEYS), ("broker", BROKER_KEYS))
        if name in keys
    ]
    if not found:
        raise unknown_key(name, every, "topic or broker")
    return "\n".join(_explanation(kind, key) for kind, key in found)


def _explanation(kind: str, key: ConfigKey) -> str:
    lines = [f"{key.name} ({kind} config)", f"  {key.doc}", f"  type: {key.type}"]
    lines.append(f"  default: {_java(key.text(key.default_value))}")
    if key.valid:
        lines.append(f"  valid: {key.valid}")
    if key.synonyms:
        lines.append(f"  set for all topics by: {', '.join(key.synonyms)}")
    if kind == "broker":
        lines.append(f"  changes while brokers run: {scope_of(key.name).value}")
    if key.inert:
        lines.append(f"  has no effect: {key.inert}")
    return "\n".join(lines) + "\n"


def _java(value: str | None) -> str:
    return "null" if value is None else value
