"""Broker configs of replication, controlled shutdown and the controller."""

from __future__ import annotations

from barnabas.config.key import ConfigKey, table

_ROWS = (
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

REPLICATION_KEYS: dict[str, ConfigKey] = table(_ROWS)
