"""Lists the broker configs that have an effect here; BROKER_KEYS combines them with the others.

Rows: name, type, default, valid values in the notation of Kafka's documentation, description.
Defaults are Kafka 3.9's, unless the description says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain

from barnabas.config.key import ConfigKey, table, unknown_key
from barnabas.config.log_keys import LOG_KEYS
from barnabas.config.network_keys import NETWORK_KEYS, PER_LISTENER
from barnabas.config.zookeeper_keys import ZOOKEEPER_KEYS

_INT_MAX = 2147483647

_LISTENER = "listener.name."
_SHARE_GROUPS = "share.coordinator."
_PREFIXES = (_LISTENER, "rlmm.config.", "rsm.config.", _SHARE_GROUPS)
"""Prefixes of names without rows: for one listener, for a plug-in, and in Kafka 4's sample file."""

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
     "Port of /metrics for Prometheus, /healthz and /readyz for probes, at the first listener's "
     "host; 0: none. Barnabas's own."),
    ("barnabas.metrics.host", "string", "", "",
     "Host at which metrics are served; empty: that of the first listener. Barnabas's own."),
    ("barnabas.verify.all.records", "boolean", None, "",
     "Whether every record of a batch is validated before the append; unset: where there is an "
     "authorizer. Barnabas's own."),
)  # fmt: skip

# Groups, offsets and transactions.
_COORDINATORS = (
    ("group.initial.rebalance.delay.ms", "int", 3000, "",
     "How long a new group waits for more members."),
    ("group.max.session.timeout.ms", "int", 1800000, "", "Longest session timeout of a member."),
    ("group.max.size", "int", _INT_MAX, "[1,...]", "Members of a group."),
    ("group.min.session.timeout.ms", "int", 6000, "", "Shortest session timeout of a member."),
    ("offset.metadata.max.bytes", "int", 4096, "", "Largest metadata of a committed offset."),
    ("offsets.commit.timeout.ms", "int", 5000, "[1,...]", "Time for an offset commit."),
    ("offsets.load.buffer.size", "int", 5242880, "[1,...]",
     "Bytes read at once while loading offsets."),
    ("offsets.retention.check.interval.ms", "long", 600000, "[1,...]",
     "Time between two checks for expired offsets."),
    ("offsets.retention.minutes", "int", 10080, "[1,...]",
     "How long offsets of a group without members are kept."),
    ("offsets.topic.compression.codec", "int", 0, "", "Codec of the offsets topic."),
    ("offsets.topic.num.partitions", "int", 50, "[1,...]", "Partitions of the offsets topic."),
    ("offsets.topic.replication.factor", "short", 3, "[1,...]", "Replicas of the offsets topic."),
    ("offsets.topic.segment.bytes", "int", 104857600, "[1,...]",
     "Segment size of the offsets topic."),
    ("transaction.abort.timed.out.transaction.cleanup.interval.ms", "int", 10000, "[1,...]",
     "Time between two checks for transactions to abort."),
    ("transaction.max.timeout.ms", "int", 900000, "[1,...]",
     "Longest timeout that a transaction may have."),
    ("transaction.partition.verification.enable", "boolean", True, "",
     "Whether a transactional write is verified at the coordinator."),
    ("transaction.remove.expired.transaction.cleanup.interval.ms", "int", 3600000, "[1,...]",
     "Time between two checks for expired transactional ids."),
    ("transaction.state.log.load.buffer.size", "int", 5242880, "[1,...]",
     "Bytes read at once while loading transactions."),
    ("transaction.state.log.min.isr", "int", 2, "[1,...]",
     "min.insync.replicas of the transactions topic."),
    ("transaction.state.log.num.partitions", "int", 50, "[1,...]",
     "Partitions of the transactions topic."),
    ("transaction.state.log.replication.factor", "short", 3, "[1,...]",
     "Replicas of the transactions topic."),
    ("transaction.state.log.segment.bytes", "int", 104857600, "[1,...]",
     "Segment size of the transactions topic."),
    ("transactional.id.expiration.ms", "int", 604800000, "[1,...]",
     "How long an unused transactional id is kept."),
)  # fmt: skip

# The time over which clients are measured.
_QUOTAS = (
    ("quota.window.num", "int", 11, "[1,...]",
     "Windows over which the rates of clients are measured."),
    ("quota.window.size.seconds", "int", 1, "[1,...]", "Length of such a window."),
    ("controller.quota.window.num", "int", 11, "[1,...]",
     "Windows whose partitions a client may create or delete at once."),
    ("controller.quota.window.size.seconds", "int", 1, "[1,...]", "Length of such a window."),
)  # fmt: skip

# Replication, controlled shutdown and the controller.
_REPLICATION = (
    ("auto.leader.rebalance.enable", "boolean", True, "",
     "Whether preferred leaders are elected automatically."),
    ("controlled.shutdown.enable", "boolean", True, "",
     "Whether leaders move away before the broker stops."),
    ("controlled.shutdown.max.retries", "int", 3, "", "Attempts at that."),
    ("controlled.shutdown.retry.backoff.ms", "long", 5000, "", "Pause between two of them."),
    ("controller.socket.timeout.ms", "int", 30000, "",
     "Time for a request of the controller to a broker."),
    ("inter.broker.protocol.version", "string", "3.9-IV0", "",
     "Version of the protocol between brokers, for rolling upgrades: below 2.7 leaders write their "
     "ISRs themselves."),
    ("leader.imbalance.check.interval.seconds", "long", 300, "[1,...]",
     "Time between two checks for leader imbalance."),
    ("leader.imbalance.per.broker.percentage", "int", 10, "",
     "Percentage of leaders that are not preferred above which they move."),
    ("num.replica.fetchers", "int", 1, "", "Connections to each leader's broker."),
    ("replica.fetch.backoff.ms", "int", 1000, "[0,...]", "Pause of a follower after an error."),
    ("replica.fetch.max.bytes", "int", 1048576, "[0,...]",
     "Bytes per partition in a follower's fetch."),
    ("replica.fetch.min.bytes", "int", 1, "", "Least bytes that a follower's fetch waits for."),
    ("replica.fetch.response.max.bytes", "int", 10485760, "[0,...]",
     "Bytes in all in a follower's fetch."),
    ("replica.fetch.wait.max.ms", "int", 500, "", "Longest wait of a follower's fetch."),
    ("replica.lag.time.max.ms", "long", 30000, "",
     "Time after which a follower that has not caught up leaves the ISR."),
    ("replica.selector.class", "string", None,
     "[org.apache.kafka.common.replica.RackAwareReplicaSelector, RackAwareReplicaSelector, "
     "org.apache.kafka.common.replica.LeaderSelector, LeaderSelector]",
     "How a replica is chosen for a consumer with client.rack; unset: all consumers read from "
     "the leader."),
    ("replica.socket.timeout.ms", "int", 30000, "", "Time for a follower's request."),
    ("replication.quota.window.num", "int", 11, "[1,...]",
     "Windows over which the rate of throttled replication is measured."),
    ("replication.quota.window.size.seconds", "int", 1, "[1,...]", "Length of such a window."),
    ("alter.log.dirs.replication.quota.window.num", "int", 11, "[1,...]",
     "Windows over which moves between log directories are measured."),
    ("alter.log.dirs.replication.quota.window.size.seconds", "int", 1, "[1,...]",
     "Length of such a window."),
    ("unclean.leader.election.enable", "boolean", False, "",
     "Whether a replica out of sync may become leader if none in sync is left; it loses records."),
    ("security.inter.broker.protocol", "string", "PLAINTEXT",
     "[PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL]", "Security protocol between brokers."),
)  # fmt: skip

_EFFECTIVE: Mapping[str, ConfigKey] = {
    **table(_NODE),
    **NETWORK_KEYS,
    **LOG_KEYS,
    **table(_COORDINATORS),
    **table(_QUOTAS),
    **table(_REPLICATION),
    **ZOOKEEPER_KEYS,
}


_FOR_KAFKA_4 = "share groups came with Kafka 4, and Barnabas has none"
_FOR_OTHERS = "it is for a plug-in or a secured listener"


class _BrokerKeys(Mapping[str, ConfigKey]):
    """All broker configs. The configs for security, and those without effect, are loaded on first
    use, since few starts need them.
    """

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
    """Return the row for any name that a broker's settings may have. Raises ConfigError otherwise.

    `listener.name.<listener>.<key>` is read like `<key>`. A plug-in's setting is unknown, so its
    value is never shown.
    """
    key = _EFFECTIVE.get(name)
    if key is not None:
        return key
    from barnabas.config.dynamic_keys import THROTTLES

    if name in THROTTLES:  # read by every start, so it comes before the rare ones
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
    """Return the warning for setting a key that has no effect here, or None if the key has an
    effect.
    """
    reason = key_of(name).inert
    return f"{name} has no effect: {reason}" if reason else None
