"""The broker configs that have effect here; BROKER_KEYS joins them with the others.

Rows: name, type, default, valid values in the notation of Kafka's documentation, description.
Defaults are Kafka 3.9's, except where the sentence says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain

from barnabas.config.coordinator_keys import COORDINATOR_KEYS
from barnabas.config.key import ConfigKey, table, unknown_key
from barnabas.config.log_keys import LOG_KEYS
from barnabas.config.network_keys import NETWORK_KEYS, PER_LISTENER
from barnabas.config.quota_keys import QUOTA_KEYS
from barnabas.config.replication_keys import REPLICATION_KEYS
from barnabas.config.zookeeper_keys import ZOOKEEPER_KEYS

_LISTENER = "listener.name."
_SHARE_GROUPS = "share.coordinator."
_PREFIXES = (_LISTENER, "rlmm.config.", "rsm.config.", _SHARE_GROUPS)
"""Prefixes of names without rows: of one listener, of a plug-in, of Kafka 4's sample file."""

_NODE = (
    ("broker.id", "int", 0, "[0,...]",
     "This broker's number in its cluster; unset it is 0 (in Kafka: a generated one)."),
    ("node.id", "int", -1, "",
     "KRaft's name for broker.id, which takes its value."),
    ("process.roles", "list", "", "[broker, controller]",
     "KRaft's roles of this process: without zookeeper.connect it starts as both, and alone."),
    ("controller.quorum.voters", "list", "", "",
     "KRaft's voters (id@host:port): without zookeeper.connect a node must be the only one."),
    ("controller.quorum.bootstrap.servers", "list", "", "",
     "KRaft's quorum: without zookeeper.connect a node must be its only server."),
    ("controller.listener.names", "string", None, "",
     "Listeners of KRaft's controllers among themselves: they are not opened."),
    ("auto.create.topics.enable", "boolean", True, "",
     "Whether metadata and produce requests for an unknown topic create it."),
    ("delete.topic.enable", "boolean", True, "",
     "Whether topics can be deleted at all."),
    ("num.partitions", "int", 1, "[1,...]",
     "Number of partitions of a topic created without one."),
    ("default.replication.factor", "int", 1, "",
     "Replication factor of a topic created without one."),
    ("min.insync.replicas", "int", 1, "[1,...]",
     "Least number of in-sync replicas for which a write with acks=all is accepted."),
    ("broker.rack", "string", None, "",
     "Rack of this broker; replicas are spread over racks."),
    ("barnabas.log.level", "string", "INFO", "[TRACE, DEBUG, INFO, WARN, ERROR, FATAL]",
     "Lowest level of the messages that the broker logs; TRACE means DEBUG. Barnabas's own."),
    ("barnabas.log.format", "string", "text", "[text, json]",
     "What a line of the log of `barnabas server start` is: json is an object. Barnabas's own."),
    ("barnabas.metrics.port", "int", 0, "[0,...,65535]",
     "Port of GET /metrics for Prometheus, at the first listener's host; 0: none. Barnabas's own."),
    ("barnabas.metrics.host", "string", "", "",
     "Host at which metrics are served; empty: that of the first listener. Barnabas's own."),
    ("barnabas.verify.all.records", "boolean", None, "",
     "Whether every record of a batch is validated before the append; unset: where there is an "
     "authorizer. Barnabas's own."),
)  # fmt: skip

_EFFECTIVE: Mapping[str, ConfigKey] = {
    **table(_NODE),
    **NETWORK_KEYS,
    **LOG_KEYS,
    **COORDINATOR_KEYS,
    **QUOTA_KEYS,
    **REPLICATION_KEYS,
    **ZOOKEEPER_KEYS,
}


_FOR_KAFKA_4 = "share groups came with Kafka 4, and Barnabas has none"
_FOR_OTHERS = "it is for a plug-in or a secured listener"


class _BrokerKeys(Mapping[str, ConfigKey]):
    """All broker configs. Those of security, and those without effect, are loaded on first use: few
    starts need them."""

    __slots__ = ()

    def __getitem__(self, name: str) -> ConfigKey:
        key = _EFFECTIVE.get(name)
        return _rare()[name] if key is None else key

    def __iter__(self) -> Iterator[str]:
        return chain(_EFFECTIVE, _rare())

    def __len__(self) -> int:
        return len(_EFFECTIVE) + len(_rare())


@cache
def _rare() -> Mapping[str, ConfigKey]:
    from barnabas.config.inert_keys import INERT_KEYS
    from barnabas.config.security_keys import SECURITY_KEYS

    return {**INERT_KEYS, **SECURITY_KEYS}


def _security_keys() -> Mapping[str, ConfigKey]:
    from barnabas.config.security_keys import SECURITY_KEYS

    return SECURITY_KEYS


BROKER_KEYS: Mapping[str, ConfigKey] = _BrokerKeys()


def key_of(name: str) -> ConfigKey:
    """The row for any name that a broker's settings may have; raises ConfigError for others.

    `listener.name.<listener>.<key>` is read like `<key>`. A plug-in's setting is unknown, so its
    value is never shown.
    """
    key = _EFFECTIVE.get(name)
    if key is not None:
        return key
    from barnabas.config.dynamic_keys import THROTTLES

    if name in THROTTLES:  # which every start reads: not behind the rare ones
        return THROTTLES[name]
    key = BROKER_KEYS.get(name)
    if key is not None:
        return key
    if not name.startswith(_PREFIXES):
        raise unknown_key(name, BROKER_KEYS, "broker")
    if name.startswith(_SHARE_GROUPS):
        return ConfigKey(name, "string", None, "", "A setting of share groups.", _FOR_KAFKA_4)
    if name.startswith(_LISTENER):
        base = name.split(".", 3)[-1]
        found = BROKER_KEYS.get(base) or BROKER_KEYS.get(base.partition(".")[2])
        if found is not None:
            if found.name not in PER_LISTENER and found.name not in _security_keys():
                return found._replace(name=name, inert=_FOR_OTHERS)
            return found._replace(name=name)
    return ConfigKey(name, "unknown", None, "", "A setting for a plug-in.", _FOR_OTHERS)


def inert_warning(name: str) -> str | None:
    """The warning for setting a key that has no effect here; None if it has one."""
    reason = key_of(name).inert
    return f"{name} has no effect: {reason}" if reason else None
