"""Lists Kafka 3.9's broker configs that have no effect in Barnabas, grouped by the reason.

Their values are checked like those of all other configs, so that an invalid value is found before
it matters. If one of them is set, there is a warning that contains the reason for its group.
"""

from __future__ import annotations

from barnabas.config.inert_log_keys import INERT_LOG_KEYS
from barnabas.config.key import ConfigKey, table

_INT_MAX = 2147483647

_ONE_LOOP = (
    ("background.threads", "int", 10, "[1,...]", "Number of threads for background tasks."),
    ("num.io.threads", "int", 8, "[1,...]", "Number of threads that process requests."),
    ("num.network.threads", "int", 3, "[1,...]", "Number of threads that read and write sockets."),
    ("num.replica.alter.log.dirs.threads", "int", None, "",
     "Number of threads that move replicas between log directories."),
    ("queued.max.requests", "int", 500, "[1,...]",
     "Number of queued requests at which reading from the network stops."),
    ("producer.purgatory.purge.interval.requests", "int", 1000, "",
     "Purge interval, in requests, of the produce purgatory."),
    ("fetch.purgatory.purge.interval.requests", "int", 1000, "",
     "Purge interval, in requests, of the fetch purgatory."),
    ("delete.records.purgatory.purge.interval.requests", "int", 1, "",
     "Purge interval, in requests, of the DeleteRecords purgatory."),
)  # fmt: skip

_KRAFT = (
    ("broker.heartbeat.interval.ms", "int", 2000, "", "Interval of heartbeats to the quorum."),
    ("broker.session.timeout.ms", "int", 9000, "",
     "Time without a heartbeat after which the quorum fences a broker."),
    ("controller.quorum.append.linger.ms", "int", 25, "", "How long quorum writes are gathered."),
    ("controller.quorum.election.backoff.max.ms", "int", 1000, "",
     "Maximum pause before another election."),
    ("controller.quorum.election.timeout.ms", "int", 1000, "",
     "Time without a response from the leader after which an election starts."),
    ("controller.quorum.fetch.timeout.ms", "int", 2000, "",
     "Time without a fetch after which a voter becomes a candidate."),
    ("controller.quorum.request.timeout.ms", "int", 2000, "", "Timeout of a quorum request."),
    ("controller.quorum.retry.backoff.ms", "int", 20, "", "Pause before a quorum retry."),
    ("early.start.listeners", "string", None, "",
     "Listeners that open before the authorizer is ready."),
    ("eligible.leader.replicas.enable", "boolean", False, "", "Eligible leader replicas."),
    ("initial.broker.registration.timeout.ms", "int", 60000, "",
     "Timeout of the registration with the quorum."),
    ("metadata.log.dir", "string", None, "", "Directory of the metadata log."),
    ("metadata.log.max.record.bytes.between.snapshots", "long", 20971520, "[1,...]",
     "Maximum bytes of metadata records between two snapshots."),
    ("metadata.log.max.snapshot.interval.ms", "long", 3600000, "[0,...]",
     "Maximum time between two metadata snapshots."),
    ("metadata.log.segment.bytes", "int", 1073741824, "[12,...]",
     "Maximum size of a metadata segment."),
    ("metadata.log.segment.min.bytes", "int", 8388608, "[12,...]",
     "Minimum size of a metadata segment."),
    ("metadata.log.segment.ms", "long", 604800000, "", "Maximum age of a metadata segment."),
    ("metadata.max.idle.interval.ms", "int", 500, "[0,...]", "Interval of no-op records."),
    ("metadata.max.retention.bytes", "long", 104857600, "", "Maximum size of the metadata log."),
    ("metadata.max.retention.ms", "long", 604800000, "", "Retention time of metadata snapshots."),
    ("server.max.startup.time.ms", "long", 9223372036854775807, "[0,...]",
     "Timeout of the startup."),
    ("unclean.leader.election.interval.ms", "long", 300000, "[1,...]",
     "Interval of checks for partitions that need an unclean election."),
    ("unstable.api.versions.enable", "boolean", False, "",
     "Whether unreleased API versions are enabled."),
    ("unstable.feature.versions.enable", "boolean", False, "",
     "Whether unreleased features are enabled."),
    ("zookeeper.metadata.migration.enable", "boolean", False, "",
     "Whether the metadata migrates from ZooKeeper to a quorum."),
    ("zookeeper.metadata.migration.min.batch.size", "int", 200, "[1,...]",
     "Minimum records per batch of the migration."),
)  # fmt: skip

_CLUSTER = (
    ("broker.id.generation.enable", "boolean", True, "",
     "Whether the cluster generates an id for a broker without one."),
    ("replica.socket.receive.buffer.bytes", "int", 65536, "",
     "Receive buffer size of a follower's socket."),
    ("reserved.broker.max.id", "int", 1000, "[0,...]",
     "Maximum value of broker.id; generated ids are higher."),
)  # fmt: skip

_GROUPS = (
    ("group.consumer.assignors", "list",
     "org.apache.kafka.coordinator.group.assignor.UniformAssignor,"
     "org.apache.kafka.coordinator.group.assignor.RangeAssignor", "",
     "Server-side assignors of the consumer protocol (KIP-848)."),
    ("group.consumer.heartbeat.interval.ms", "int", 5000, "[1,...]",
     "Heartbeat interval of its members."),
    ("group.consumer.max.heartbeat.interval.ms", "int", 15000, "[1,...]",
     "Maximum heartbeat interval."),
    ("group.consumer.max.session.timeout.ms", "int", 60000, "[1,...]",
     "Maximum session timeout."),
    ("group.consumer.max.size", "int", _INT_MAX, "[1,...]",
     "Maximum number of members of such a group."),
    ("group.consumer.migration.policy", "string", "bidirectional", "",
     "Whether groups migrate between the classic and the consumer protocol."),
    ("group.consumer.min.heartbeat.interval.ms", "int", 5000, "[1,...]",
     "Minimum heartbeat interval."),
    ("group.consumer.min.session.timeout.ms", "int", 45000, "[1,...]",
     "Minimum session timeout."),
    ("group.consumer.session.timeout.ms", "int", 45000, "[1,...]",
     "Session timeout of its members."),
    ("group.coordinator.append.linger.ms", "int", 10, "[0,...]",
     "How long a coordinator's writes are gathered."),
    ("group.coordinator.new.enable", "boolean", False, "",
     "Whether Kafka's new group coordinator is used."),
    ("group.coordinator.rebalance.protocols", "list", "classic",
     "[consumer, classic, share, unknown]", "Enabled rebalance protocols."),
    ("group.coordinator.threads", "int", 1, "[1,...]", "Number of threads of the coordinator."),
    ("group.share.delivery.count.limit", "int", 5, "[2,...,10]",
     "Share groups: maximum delivery attempts of a record."),
    ("group.share.enable", "boolean", False, "", "Share groups: whether they are enabled."),
    ("group.share.heartbeat.interval.ms", "int", 5000, "[1,...]",
     "Share groups: heartbeat interval."),
    ("group.share.max.groups", "short", 10, "[1,...,100]",
     "Share groups: maximum number of groups."),
    ("group.share.max.heartbeat.interval.ms", "int", 15000, "[1,...]",
     "Share groups: maximum heartbeat interval."),
    ("group.share.max.record.lock.duration.ms", "int", 60000, "[30000,...,3600000]",
     "Share groups: maximum duration of a record lock."),
    ("group.share.max.session.timeout.ms", "int", 60000, "[1,...]",
     "Share groups: maximum session timeout."),
    ("group.share.max.size", "short", 200, "[10,...,1000]",
     "Share groups: maximum number of members."),
    ("group.share.min.heartbeat.interval.ms", "int", 5000, "[1,...]",
     "Share groups: minimum heartbeat interval."),
    ("group.share.min.record.lock.duration.ms", "int", 15000, "[1000,...,30000]",
     "Share groups: minimum duration of a record lock."),
    ("group.share.min.session.timeout.ms", "int", 45000, "[1,...]",
     "Share groups: minimum session timeout."),
    ("group.share.partition.max.record.locks", "int", 200, "[100,...,10000]",
     "Share groups: maximum locked records of a partition."),
    ("group.share.record.lock.duration.ms", "int", 30000, "[1000,...,60000]",
     "Share groups: duration of a record lock."),
    ("group.share.session.timeout.ms", "int", 45000, "[1,...]", "Share groups: session timeout."),
    ("offsets.commit.required.acks", "short", -1, "", "Required acks of an offset commit."),
)  # fmt: skip

_NETWORK = (
    ("max.request.partition.size.limit", "int", 2000, "[1,...]",
     "Maximum partitions in one DescribeTopicPartitions response."),
    ("socket.connection.setup.timeout.max.ms", "long", 30000, "",
     "Maximum time to set up a connection to another broker."),
    ("socket.connection.setup.timeout.ms", "long", 10000, "",
     "Time to set up a connection to another broker."),
    ("client.quota.callback.class", "class", None, "", "Java class that determines client quotas."),
    ("telemetry.max.bytes", "int", 1048576, "[1,...]",
     "Maximum size of a client's metrics report."),
)  # fmt: skip

_JAVA = (
    ("alter.config.policy.class.name", "class", None, "",
     "Java class that validates config changes."),
    ("auto.include.jmx.reporter", "boolean", True, "", "Whether metrics are reported to JMX."),
    ("create.topic.policy.class.name", "class", None, "", "Java class that validates new topics."),
    ("kafka.metrics.polling.interval.secs", "int", 10, "[1,...]", "Interval of metric reports."),
    ("kafka.metrics.reporters", "list", "", "", "Java classes that report metrics."),
    ("metric.reporters", "list", "", "", "Java classes that report metrics."),
    ("metrics.num.samples", "int", 2, "[1,...]", "Number of samples kept for each metric."),
    ("metrics.recording.level", "string", "INFO", "", "Recording level of metrics."),
    ("metrics.sample.window.ms", "long", 30000, "[1,...]", "Time window of a metric sample."),
)  # fmt: skip

_ZOOKEEPER = (
    ("zookeeper.clientCnxnSocket", "string", None, "",
     "Java class of the connection to ZooKeeper."),
    ("zookeeper.max.in.flight.requests", "int", 10, "[1,...]",
     "Maximum unanswered requests to ZooKeeper."),
)  # fmt: skip

INERT_KEYS: dict[str, ConfigKey] = {
    **table(_ONE_LOOP, "Barnabas does this work on one event loop"),
    **table(_KRAFT, "it belongs to KRaft; Barnabas keeps metadata as Kafka does with ZooKeeper"),
    **table(_CLUSTER, "clusters of this version do not use it"),
    **table(_GROUPS, "it belongs to newer group types or to Kafka's threads"),
    **table(_NETWORK, "the broker does not support it yet"),
    **table(_ZOOKEEPER, "Barnabas has its own ZooKeeper client"),
    **table(_JAVA, "Barnabas does not run on the Java platform"),
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
"""Internal configs of Kafka, and the configs of Kafka's authorizer.

If one of them is set, there is a warning.
"""
