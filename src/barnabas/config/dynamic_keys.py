"""Lists the dynamic broker configs, and the scope of each (DynamicBrokerConfig in Kafka 3.9).

    /config/brokers/<id>          configs of one broker; may contain any dynamic key
    /config/brokers/<default>     configs of all brokers; may contain only cluster-wide keys

In Kafka, listeners can also be added and removed while a broker runs; in Barnabas, they are
read-only. If the authentication of a listener is changed, the change applies from the next
authentication on; in Kafka, it applies after a restart.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

from barnabas.config.key import ConfigKey, table
from barnabas.config.network_keys import PER_LISTENER
from barnabas.config.topic_keys import LONG_MAX


class Scope(Enum):
    """Lists the scopes in which a key can be changed."""

    READ_ONLY = "read-only"
    PER_LISTENER = "per-listener"  # one broker, only as `listener.name.<listener>.<key>`
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"  # for one broker or for all


_CLUSTER_WIDE = """
    background.threads
    compression.gzip.level compression.lz4.level compression.type compression.zstd.level
    log.cleaner.backoff.ms log.cleaner.dedupe.buffer.size log.cleaner.delete.retention.ms
    log.cleaner.io.buffer.load.factor log.cleaner.io.buffer.size
    log.cleaner.io.max.bytes.per.second log.cleaner.max.compaction.lag.ms
    log.cleaner.min.cleanable.ratio log.cleaner.min.compaction.lag.ms log.cleaner.threads
    log.cleanup.policy log.flush.interval.messages log.flush.interval.ms
    log.index.interval.bytes log.index.size.max.bytes
    log.local.retention.bytes log.local.retention.ms log.message.downconversion.enable
    log.message.timestamp.after.max.ms log.message.timestamp.before.max.ms
    log.message.timestamp.difference.max.ms log.message.timestamp.type log.preallocate
    log.retention.bytes log.retention.ms log.roll.jitter.ms log.roll.ms
    log.segment.bytes log.segment.delete.delay.ms
    max.connection.creation.rate max.connections max.connections.per.ip
    max.connections.per.ip.overrides message.max.bytes metric.reporters min.insync.replicas
    num.io.threads num.network.threads num.recovery.threads.per.data.dir num.replica.fetchers
    producer.id.expiration.ms remote.fetch.max.wait.ms
    remote.log.index.file.cache.total.size.bytes remote.log.manager.copy.max.bytes.per.second
    remote.log.manager.fetch.max.bytes.per.second
    transaction.partition.verification.enable unclean.leader.election.enable
    barnabas.log.level
"""

_PER_BROKER = """
    principal.builder.class
    sasl.enabled.mechanisms sasl.jaas.config sasl.kerberos.kinit.cmd
    sasl.kerberos.min.time.before.relogin sasl.kerberos.principal.to.local.rules
    sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter
    sasl.kerberos.ticket.renew.window.factor sasl.login.refresh.buffer.seconds
    sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor
    sasl.login.refresh.window.jitter sasl.mechanism.inter.broker.protocol
    ssl.cipher.suites ssl.client.auth ssl.enabled.protocols
    ssl.endpoint.identification.algorithm ssl.engine.factory.class ssl.keymanager.algorithm
    ssl.protocol ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm
"""

_ONLY_PER_LISTENER = """
    barnabas.ssl.crl.location
    ssl.key.password ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location
    ssl.keystore.password ssl.keystore.type
    ssl.truststore.certificates ssl.truststore.location ssl.truststore.password
    ssl.truststore.type
"""

DYNAMIC_KEYS: Final[Mapping[str, Scope]] = MappingProxyType(
    {
        **dict.fromkeys(_CLUSTER_WIDE.split(), Scope.CLUSTER_WIDE),
        **dict.fromkeys(_PER_BROKER.split(), Scope.PER_BROKER),
        **dict.fromkeys(_ONLY_PER_LISTENER.split(), Scope.PER_LISTENER),
    }
)
"""All keys that can be changed while a broker runs, by name."""

_THROTTLES = (
    ("leader.replication.throttled.rate", "long", LONG_MAX, "[0,...]",
     "Maximum bytes per second that leaders send to throttled replicas on other brokers."),
    ("follower.replication.throttled.rate", "long", LONG_MAX, "[0,...]",
     "Maximum bytes per second that throttled replicas fetch."),
    ("replica.alter.log.dirs.io.max.bytes.per.second", "long", LONG_MAX, "[0,...]",
     "Maximum bytes per second at which replicas move between log directories."),
)  # fmt: skip

THROTTLES: Final[Mapping[str, ConfigKey]] = MappingProxyType(table(_THROTTLES))
"""These keys are never in a properties file, because reassignments set and remove them (KIP-73)."""


def scope_of(name: str) -> Scope:
    """Return the scope of a key.

    If it is a setting of a listener, the scope depends on the key without its prefix.
    """
    if name in THROTTLES:
        return Scope.CLUSTER_WIDE
    # Limits on connections may be set for all brokers, but the keys and certificates of a listener
    # only for one broker (KIP-226).
    if name.startswith("listener.name."):
        base = name.split(".", 3)[-1]
        return Scope.CLUSTER_WIDE if base in PER_LISTENER else Scope.PER_BROKER
    return DYNAMIC_KEYS.get(name, Scope.READ_ONLY)


_PASSWORDS = (
    "sasl.jaas.config",
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.password",
    "ssl.truststore.certificates",
    "ssl.truststore.password",
)


def is_dynamic_password(name: str) -> bool:
    """Return whether Kafka encrypts this dynamic config, with or without a listener prefix."""
    # Compare only the end of the name, because it may begin with `listener.name.x.` or
    # `listener.name.x.plain.`.
    return name.endswith(_PASSWORDS)


def refusal(name: str, is_for_all: bool) -> str | None:
    """Return why a config cannot be changed while a broker is running, or None if it can."""
    scope = scope_of(name)
    if scope is Scope.READ_ONLY:
        return (
            f"{name} cannot be changed while brokers run: set it in the properties file and "
            "restart the broker"
        )
    if scope is Scope.PER_LISTENER:
        return f"{name} can be changed only for one listener, as listener.name.<listener>.{name}"
    if scope is Scope.PER_BROKER and is_for_all:
        return f"{name} can be changed only for one broker at a time: name the broker"
    return None
