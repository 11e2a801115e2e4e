"""Lists the broker configs of Kafka 3.9 that have no effect here, grouped by the reason.

They are checked like all others, so that an invalid value is found now and not when it starts to
matter; setting any of them gives a warning with the group's reason.
"""

from __future__ import annotations

from barnabas.config.inert_log_keys import INERT_LOG_KEYS
from barnabas.config.key import ConfigKey, table

_INT_MAX = 2147483647

_ONE_LOOP = (
    ("background.threads", "int", 10, "[1,...]", "Threads for work in the background."),
    ("num.io.threads", "int", 8, "[1,...]", "Threads that work on requests."),
    ("num.network.threads", "int", 3, "[1,...]", "Threads that read and write sockets."),
    ("num.replica.alter.log.dirs.threads", "int", None, "",
     "Threads that move replicas between log directories."),
    ("queued.max.requests", "int", 500, "[1,...]",
     "Requests that wait for a thread before reading stops."),
    ("producer.purgatory.purge.interval.requests", "int", 1000, "",
     "Requests between two purges of parked produce requests."),
    ("fetch.purgatory.purge.interval.requests", "int", 1000, "",
     "Requests between two purges of parked fetches."),
    ("delete.records.purgatory.purge.interval.requests", "int", 1, "",
     "Requests between two purges of parked record deletions."),
)  # fmt: skip

_KRAFT = (
    ("broker.heartbeat.interval.ms", "int", 2000, "", "Time between heartbeats to the quorum."),
    ("broker.session.timeout.ms", "int", 9000, "", "Silence after which the quorum fences."),
    ("controller.quorum.append.linger.ms", "int", 25, "", "Time to gather quorum writes."),
    ("controller.quorum.election.backoff.max.ms", "int", 1000, "",
     "Longest pause before another election."),
    ("controller.quorum.election.timeout.ms", "int", 1000, "",
     "Silence of the leader after which an election begins."),
    ("controller.quorum.fetch.timeout.ms", "int", 2000, "",
     "Time without a fetch after which a voter becomes a candidate."),
    ("controller.quorum.request.timeout.ms", "int", 2000, "", "Time for a quorum request."),
    ("controller.quorum.retry.backoff.ms", "int", 20, "", "Pause before a quorum retry."),
    ("early.start.listeners", "string", None, "", "Listeners that open before authorization."),
    ("eligible.leader.replicas.enable", "boolean", False, "", "Eligible leader replicas."),
    ("initial.broker.registration.timeout.ms", "int", 60000, "",
     "Time to register with the quorum."),
    ("metadata.log.dir", "string", None, "", "Directory of the metadata log."),
    ("metadata.log.max.record.bytes.between.snapshots", "long", 20971520, "[1,...]",
     "Bytes of metadata records between two snapshots."),
    ("metadata.log.max.snapshot.interval.ms", "long", 3600000, "[0,...]",
     "Longest time between two metadata snapshots."),
    ("metadata.log.segment.bytes", "int", 1073741824, "[12,...]", "Size of a metadata segment."),
    ("metadata.log.segment.min.bytes", "int", 8388608, "[12,...]",
     "Smallest size of a metadata segment."),
    ("metadata.log.segment.ms", "long", 604800000, "", "Age of a metadata segment."),
    ("metadata.max.idle.interval.ms", "int", 500, "[0,...]", "Time between no-op records."),
    ("metadata.max.retention.bytes", "long", 104857600, "", "Size of the metadata log."),
    ("metadata.max.retention.ms", "long", 604800000, "", "Age of old metadata snapshots."),
    ("server.max.startup.time.ms", "long", 9223372036854775807, "[0,...]",
     "Time to start before the process gives up."),
    ("unclean.leader.election.interval.ms", "long", 300000, "[1,...]",
     "Time between two checks for partitions that need an unclean election."),
    ("unstable.api.versions.enable", "boolean", False, "", "Offer unfinished API versions."),
    ("unstable.feature.versions.enable", "boolean", False, "", "Offer unfinished features."),
    ("zookeeper.metadata.migration.enable", "boolean", False, "",
     "Move the metadata from ZooKeeper to a quorum."),
    ("zookeeper.metadata.migration.min.batch.size", "int", 200, "[1,...]",
     "Records per batch of that move."),
)  # fmt: skip

_CLUSTER = (
    ("broker.id.generation.enable", "boolean", True, "",
     "Whether a broker without an id is given one by the cluster."),
    ("replica.socket.receive.buffer.bytes", "int", 65536, "",
     "Receive buffer of a follower's socket."),
    ("reserved.broker.max.id", "int", 1000, "[0,...]",
     "Largest id for broker.id; generated ones are above."),
)  # fmt: skip

_GROUPS = (
    ("group.consumer.assignors", "list",
     "org.apache.kafka.coordinator.group.assignor.UniformAssignor,"
     "org.apache.kafka.coordinator.group.assignor.RangeAssignor", "",
     "Server-side assignors of the new consumer protocol."),
    ("group.consumer.heartbeat.interval.ms", "int", 5000, "[1,...]", "Heartbeats of its members."),
    ("group.consumer.max.heartbeat.interval.ms", "int", 15000, "[1,...]", "Upper bound of that."),
    ("group.consumer.max.session.timeout.ms", "int", 60000, "[1,...]",
     "Upper bound of its session timeout."),
    ("group.consumer.max.size", "int", _INT_MAX, "[1,...]", "Members of such a group."),
    ("group.consumer.migration.policy", "string", "bidirectional", "",
     "Whether groups change between the old and the new protocol."),
    ("group.consumer.min.heartbeat.interval.ms", "int", 5000, "[1,...]",
     "Lower bound of its heartbeats."),
    ("group.consumer.min.session.timeout.ms", "int", 45000, "[1,...]",
     "Lower bound of its session timeout."),
    ("group.consumer.session.timeout.ms", "int", 45000, "[1,...]", "Its session timeout."),
    ("group.coordinator.append.linger.ms", "int", 10, "[0,...]",
     "Time to gather a coordinator's writes."),
    ("group.coordinator.new.enable", "boolean", False, "", "Kafka's own newer coordinator."),
    ("group.coordinator.rebalance.protocols", "list", "classic",
     "[consumer, classic, share, unknown]", "Rebalance protocols that are offered."),
    ("group.coordinator.threads", "int", 1, "[1,...]", "Threads of the coordinator."),
    ("group.share.delivery.count.limit", "int", 5, "[2,...,10]", "Share groups: deliveries."),
    ("group.share.enable", "boolean", False, "", "Share groups: whether there are any."),
    ("group.share.heartbeat.interval.ms", "int", 5000, "[1,...]", "Share groups: heartbeats."),
    ("group.share.max.groups", "short", 10, "[1,...,100]", "Share groups: their number."),
    ("group.share.max.heartbeat.interval.ms", "int", 15000, "[1,...]",
     "Share groups: upper bound of heartbeats."),
    ("group.share.max.record.lock.duration.ms", "int", 60000, "[30000,...,3600000]",
     "Share groups: upper bound of a record's lock."),
    ("group.share.max.session.timeout.ms", "int", 60000, "[1,...]",
     "Share groups: upper bound of the session timeout."),
    ("group.share.max.size", "short", 200, "[10,...,1000]", "Share groups: members."),
    ("group.share.min.heartbeat.interval.ms", "int", 5000, "[1,...]",
     "Share groups: lower bound of heartbeats."),
    ("group.share.min.record.lock.duration.ms", "int", 15000, "[1000,...,30000]",
     "Share groups: lower bound of a record's lock."),
    ("group.share.min.session.timeout.ms", "int", 45000, "[1,...]",
     "Share groups: lower bound of the session timeout."),
    ("group.share.partition.max.record.locks", "int", 200, "[100,...,10000]",
     "Share groups: locked records of a partition."),
    ("group.share.record.lock.duration.ms", "int", 30000, "[1000,...,60000]",
     "Share groups: how long a record is locked."),
    ("group.share.session.timeout.ms", "int", 45000, "[1,...]", "Share groups: session timeout."),
    ("offsets.commit.required.acks", "short", -1, "", "Acks of an offset commit."),
)  # fmt: skip

_NETWORK = (
    ("max.request.partition.size.limit", "int", 2000, "[1,...]",
     "Partitions in one DescribeTopicPartitions response."),
    ("socket.connection.setup.timeout.max.ms", "long", 30000, "",
     "Longest time to set up a connection to another broker."),
    ("socket.connection.setup.timeout.ms", "long", 10000, "",
     "Time to set up a connection to another broker."),
    ("client.quota.callback.class", "class", None, "", "Java class that sets quotas."),
    ("telemetry.max.bytes", "int", 1048576, "[1,...]", "Largest report of a client's metrics."),
)  # fmt: skip

_JAVA = (
    ("alter.config.policy.class.name", "class", None, "", "Java class that allows config changes."),
    ("auto.include.jmx.reporter", "boolean", True, "", "Whether metrics go to JMX."),
    ("create.topic.policy.class.name", "class", None, "", "Java class that allows topics."),
    ("kafka.metrics.polling.interval.secs", "int", 10, "[1,...]", "Time between metric reports."),
    ("kafka.metrics.reporters", "list", "", "", "Java classes that report metrics."),
    ("metric.reporters", "list", "", "", "Java classes that report metrics."),
    ("metrics.num.samples", "int", 2, "[1,...]", "Samples kept of each metric."),
    ("metrics.recording.level", "string", "INFO", "", "Which metrics are kept."),
    ("metrics.sample.window.ms", "long", 30000, "[1,...]", "Length of a metric's sample."),
)  # fmt: skip

_ZOOKEEPER = (
    ("zookeeper.clientCnxnSocket", "string", None, "", "Java class of ZooKeeper's connection."),
    ("zookeeper.max.in.flight.requests", "int", 10, "[1,...]",
     "Requests to ZooKeeper without an answer."),
)  # fmt: skip

INERT_KEYS: dict[str, ConfigKey] = {
    **table(_ONE_LOOP, "Barnabas does this work on one event loop"),
    **table(_KRAFT, "it belongs to KRaft; Barnabas keeps metadata as Kafka does with ZooKeeper"),
    **table(_CLUSTER, "clusters of this version do not use it"),
    **table(_GROUPS, "it belongs to the newer kinds of groups, or to Kafka's threads"),
    **table(_NETWORK, "the broker does not support it yet"),
    **table(_ZOOKEEPER, "Barnabas has its own ZooKeeper client"),
    **table(_JAVA, "Barnabas is not on the Java platform"),
    **INERT_LOG_KEYS,
}

INTERNAL_KEYS = frozenset(
    {
        "allow.everyone.if.no.acl.found",
        "group.consumer.migration.policy",
        "group.coordinator.new.enable",
        "group.share.enable",
        "log.initial.task.delay.ms",
        "metadata.log.segment.min.bytes",
        "producer.id.expiration.check.interval.ms",
        "remote.log.manager.task.retry.backoff.max.ms",
        "remote.log.manager.task.retry.backoff.ms",
        "remote.log.manager.task.retry.jitter",
        "server.max.startup.time.ms",
        "super.users",
        "unclean.leader.election.interval.ms",
        "unstable.api.versions.enable",
        "unstable.feature.versions.enable",
        "zookeeper.metadata.migration.min.batch.size",
    }
)
"""Kafka's internal configs, and the configs of its authorizer: setting any of them gives a
warning.
"""
