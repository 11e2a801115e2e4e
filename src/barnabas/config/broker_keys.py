"""Lists the broker configs that have an effect.

BROKER_KEYS combines them with all other broker configs.

Each row contains the name, the type, the default, the valid values (in the notation of Kafka's
documentation) and a description. The defaults are the same as in Kafka 3.9, unless the description
says otherwise.
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
"""Names that start with one of these prefixes have no row: settings of a listener or a plug-in, and
names that are in Kafka 4's sample file."""

_NODE = (
    ("broker.id", "int", 0, "[0,...]",
     "The id of this broker; 0 if unset (Kafka generates one)."),
    ("node.id", "int", -1, "",
     "KRaft's name for broker.id; sets the same value."),
    ("process.roles", "list", "", "[broker, controller]",
     "KRaft's roles of this process: without zookeeper.connect it runs as both, as a single node."),
    ("controller.quorum.voters", "list", "", "",
     "KRaft's voters (id@host:port): without zookeeper.connect this node must be the only voter."),
    ("controller.quorum.bootstrap.servers", "list", "", "",
     "KRaft's quorum: without zookeeper.connect this node must be its only server."),
    ("controller.listener.names", "string", None, "",
     "Listeners of KRaft's controllers; Barnabas does not open them."),
    ("auto.create.topics.enable", "boolean", True, "",
     "Whether metadata and produce requests create unknown topics."),
    ("delete.topic.enable", "boolean", True, "",
     "Whether topics can be deleted."),
    ("num.partitions", "int", 1, "[1,...]",
     "Default number of partitions of a new topic."),
    ("default.replication.factor", "int", 1, "",
     "Default replication factor of a new topic."),
    ("min.insync.replicas", "int", 1, "[1,...]",
     "Minimum number of in-sync replicas for a write with acks=all to be accepted."),
    ("broker.rack", "string", None, "",
     "Rack of this broker; replicas are spread over racks."),
    ("barnabas.log.level", "string", "INFO", "[TRACE, DEBUG, INFO, WARN, ERROR, FATAL]",
     "Lowest level of the messages that the broker logs; TRACE means DEBUG. Specific to Barnabas."),
    ("barnabas.log.format", "string", "text", "[text, json]",
     "Format of the log of `barnabas server start`: text, or one JSON object per line. Specific "
     "to Barnabas."),
    ("barnabas.metrics.port", "int", 0, "[0,...,65535]",
     "Port that serves /metrics for Prometheus and /healthz and /readyz for probes; 0 disables "
     "it. Specific to Barnabas."),
    ("barnabas.metrics.host", "string", "", "",
     "Host on which metrics are served; empty: the host of the first listener. Specific to "
     "Barnabas."),
    ("barnabas.event.loop.delay.ms", "int", 500, "[0,...]",
     "Delay of the event loop from which the broker reports it as an event; 0 disables it. "
     "Specific to Barnabas."),
    ("barnabas.verify.all.records", "boolean", None, "",
     "Whether every record of a batch is validated before it is appended; unset: only with an "
     "authorizer. Specific to Barnabas."),
)  # fmt: skip

# These configs are for groups, offsets and transactions.
_COORDINATORS = (
    ("group.initial.rebalance.delay.ms", "int", 3000, "",
     "How long a new group waits for more members before its first rebalance."),
    ("group.max.session.timeout.ms", "int", 1800000, "", "Maximum session timeout of a member."),
    ("group.max.size", "int", _INT_MAX, "[1,...]", "Maximum number of members of a group."),
    ("group.min.session.timeout.ms", "int", 6000, "", "Minimum session timeout of a member."),
    ("offset.metadata.max.bytes", "int", 4096, "",
     "Maximum size of the metadata of a committed offset."),
    ("offsets.commit.timeout.ms", "int", 5000, "[1,...]", "Timeout of an offset commit."),
    ("offsets.load.buffer.size", "int", 5242880, "[1,...]",
     "Bytes per read when offsets are loaded."),
    ("offsets.retention.check.interval.ms", "long", 600000, "[1,...]",
     "Interval of checks for expired offsets."),
    ("offsets.retention.minutes", "int", 10080, "[1,...]",
     "How long the offsets of a group without members are retained."),
    ("offsets.topic.compression.codec", "int", 0, "", "Compression codec of the offsets topic."),
    ("offsets.topic.num.partitions", "int", 50, "[1,...]",
     "Number of partitions of the offsets topic."),
    ("offsets.topic.replication.factor", "short", 3, "[1,...]",
     "Replication factor of the offsets topic."),
    ("offsets.topic.segment.bytes", "int", 104857600, "[1,...]",
     "Segment size of the offsets topic."),
    ("transaction.abort.timed.out.transaction.cleanup.interval.ms", "int", 10000, "[1,...]",
     "Interval of checks for timed-out transactions to abort."),
    ("transaction.max.timeout.ms", "int", 900000, "[1,...]",
     "Maximum timeout of a transaction."),
    ("transaction.partition.verification.enable", "boolean", True, "",
     "Whether the coordinator verifies that a partition was added to the transaction before a "
     "write."),
    ("transaction.remove.expired.transaction.cleanup.interval.ms", "int", 3600000, "[1,...]",
     "Interval of checks for expired transactional ids."),
    ("transaction.state.log.load.buffer.size", "int", 5242880, "[1,...]",
     "Bytes per read when transactions are loaded."),
    ("transaction.state.log.min.isr", "int", 2, "[1,...]",
     "min.insync.replicas of the transactions topic."),
    ("transaction.state.log.num.partitions", "int", 50, "[1,...]",
     "Number of partitions of the transactions topic."),
    ("transaction.state.log.replication.factor", "short", 3, "[1,...]",
     "Replication factor of the transactions topic."),
    ("transaction.state.log.segment.bytes", "int", 104857600, "[1,...]",
     "Segment size of the transactions topic."),
    ("transactional.id.expiration.ms", "int", 604800000, "[1,...]",
     "How long an unused transactional id is kept."),
)  # fmt: skip

# These configs set the period over which client usage is measured.
_QUOTAS = (
    ("quota.window.num", "int", 11, "[1,...]",
     "Number of windows over which client quotas are measured."),
    ("quota.window.size.seconds", "int", 1, "[1,...]", "Length of each window."),
    ("controller.quota.window.num", "int", 11, "[1,...]",
     "Number of windows over which controller mutations are measured."),
    ("controller.quota.window.size.seconds", "int", 1, "[1,...]", "Length of each window."),
)  # fmt: skip

# These configs are for replication, controlled shutdown and the controller.
_REPLICATION = (
    ("auto.leader.rebalance.enable", "boolean", True, "",
     "Whether preferred leaders are elected automatically."),
    ("controlled.shutdown.enable", "boolean", True, "",
     "Whether leadership moves to other brokers before this broker stops."),
    ("controlled.shutdown.max.retries", "int", 3, "",
     "Number of attempts at a controlled shutdown."),
    ("controlled.shutdown.retry.backoff.ms", "long", 5000, "", "Pause between two attempts."),
    ("controller.socket.timeout.ms", "int", 30000, "",
     "Timeout of a controller's request to a broker."),
    ("inter.broker.protocol.version", "string", "3.9-IV0", "",
     "Version of the inter-broker protocol, for rolling upgrades; below 2.7, leaders write their "
     "ISRs themselves."),
    ("leader.imbalance.check.interval.seconds", "long", 300, "[1,...]",
     "Interval of checks for leader imbalance."),
    ("leader.imbalance.per.broker.percentage", "int", 10, "",
     "Percentage of non-preferred leaders of a broker above which preferred leaders are elected."),
    ("num.replica.fetchers", "int", 1, "", "Number of fetchers per source broker."),
    ("replica.fetch.backoff.ms", "int", 1000, "[0,...]",
     "Pause of a follower after a fetch error."),
    ("replica.fetch.max.bytes", "int", 1048576, "[0,...]",
     "Maximum bytes per partition of a follower's fetch."),
    ("replica.fetch.min.bytes", "int", 1, "", "Minimum bytes for which a follower's fetch waits."),
    ("replica.fetch.response.max.bytes", "int", 10485760, "[0,...]",
     "Maximum bytes of a follower's fetch response."),
    ("replica.fetch.wait.max.ms", "int", 500, "", "Maximum wait time of a follower's fetch."),
    ("replica.lag.time.max.ms", "long", 30000, "",
     "Time after which a follower that has not caught up leaves the ISR."),
    ("replica.selector.class", "string", None,
     "[org.apache.kafka.common.replica.RackAwareReplicaSelector, RackAwareReplicaSelector, "
     "org.apache.kafka.common.replica.LeaderSelector, LeaderSelector]",
     "How a replica is chosen for a consumer with client.rack; unset: all consumers read from "
     "the leader."),
    ("replica.socket.timeout.ms", "int", 30000, "", "Timeout of a follower's request."),
    ("replication.quota.window.num", "int", 11, "[1,...]",
     "Number of windows over which throttled replication is measured."),
    ("replication.quota.window.size.seconds", "int", 1, "[1,...]", "Length of each window."),
    ("alter.log.dirs.replication.quota.window.num", "int", 11, "[1,...]",
     "Number of windows over which moves between log directories are measured."),
    ("alter.log.dirs.replication.quota.window.size.seconds", "int", 1, "[1,...]",
     "Length of each window."),
    ("unclean.leader.election.enable", "boolean", False, "",
     "Whether an out-of-sync replica may become leader as a last resort, which loses records."),
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


_FOR_KAFKA_4 = "share groups were added in Kafka 4; Barnabas does not support them"
_FOR_OTHERS = "it is for a plug-in or a secured listener"


class _BrokerKeys(Mapping[str, ConfigKey]):
    """Combines all broker configs.

    The security configs and the configs without effect are loaded when they are first needed,
    because most brokers never need them.
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
    """Return the row for any name that can appear in the settings of a broker.

    Raises ConfigError for other names.

    `listener.name.<listener>.<key>` is treated like `<key>`. The type of a plug-in's setting is
    unknown, so its value is never shown.
    """
    key = _EFFECTIVE.get(name)
    if key is not None:
        return key
    from barnabas.config.dynamic_keys import THROTTLES

    if name in THROTTLES:  # read at every start, so check it before rare names
        return THROTTLES[name]
    key = BROKER_KEYS.get(name)
    if key is not None:
        return key
    if not name.startswith(_PREFIXES):
        raise unknown_key(name, BROKER_KEYS, "broker")
    if name.startswith(_SHARE_GROUPS):
        return ConfigKey(name, "string", None, "", "A config of share groups.", _FOR_KAFKA_4)
    if name.startswith(_LISTENER):
        base = name.split(".", 3)[-1]
        found = BROKER_KEYS.get(base) or BROKER_KEYS.get(base.partition(".")[2])
        if found is not None:
            if found.name not in PER_LISTENER and found.name not in _security_keys():
                return found._replace(name=name, inert=_FOR_OTHERS)
            return found._replace(name=name)
    return ConfigKey(name, "unknown", None, "", "A config of a plug-in.", _FOR_OTHERS)


def inert_warning(name: str) -> str | None:
    """Return a warning if this key has no effect, otherwise None."""
    reason = key_of(name).inert
    return f"{name} has no effect: {reason}" if reason else None
