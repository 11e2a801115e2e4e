"""Broker configs of groups, offsets and transactions that have an effect here."""

from __future__ import annotations

from barnabas.config.key import ConfigKey, table

_INT_MAX = 2147483647

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

COORDINATOR_KEYS: dict[str, ConfigKey] = table(_COORDINATORS)
