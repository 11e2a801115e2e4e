"""Maps Kafka's scripts and classes to our modules or to replacements, or notes that there is no
replacement.
"""

from __future__ import annotations

from typing import Final, NamedTuple

MODULES: Final = {
    "kafka-topics": "topics",
    "kafka-console-producer": "console_producer",
    "kafka-console-consumer": "console_consumer",
    "kafka-simple-consumer-shell": "simple_consumer_shell",
    "kafka-consumer-groups": "consumer_groups",
    "kafka-configs": "configs",
    "kafka-dump-log": "dump_log",
    "kafka-get-offsets": "get_offsets",
    "kafka-delete-records": "delete_records",
    "kafka-leader-election": "leader_election",
    "kafka-preferred-replica-election": "preferred_replica_election",
    "kafka-reassign-partitions": "reassign_partitions",
    "kafka-producer-perf-test": "producer_perf_test",
    "kafka-consumer-perf-test": "consumer_perf_test",
    "kafka-verifiable-producer": "verifiable",
    "kafka-verifiable-consumer": "verifiable",
    "kafka-transactions": "transactions",
    "kafka-broker-api-versions": "broker_api_versions",
    "kafka-log-dirs": "log_dirs",
    "kafka-cluster": "cluster",
    "kafka-acls": "acls",
    "kafka-delegation-tokens": "delegation_tokens",
    "kafka-server-start": "server_start",
    "kafka-server-stop": "server_stop",
    "zookeeper-shell": "zookeeper_shell",
    "zookeeper-security-migration": "zookeeper_security_migration",
    "zookeeper-server-start": "zookeeper_server",
    "zookeeper-server-stop": "zookeeper_server",
    "zkServer": "zookeeper_server",
}
"""Maps each tool to its module in this package."""

RUN_CLASS: Final = "kafka-run-class"

CLASSES: Final = {
    # Kafka 3.x moved its tools from Scala (kafka.admin, kafka.tools) to Java
    # (org.apache.kafka.tools). Documentation and scripts use either name.
    "kafka.Kafka": "kafka-server-start",
    "kafka.admin.TopicCommand": "kafka-topics",
    "org.apache.kafka.tools.TopicCommand": "kafka-topics",
    "kafka.admin.ConfigCommand": "kafka-configs",
    "kafka.admin.ConsumerGroupCommand": "kafka-consumer-groups",
    "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand": "kafka-consumer-groups",
    "kafka.tools.ConsoleProducer": "kafka-console-producer",
    "org.apache.kafka.tools.ConsoleProducer": "kafka-console-producer",
    "kafka.tools.ConsoleConsumer": "kafka-console-consumer",
    "org.apache.kafka.tools.consumer.ConsoleConsumer": "kafka-console-consumer",
    "kafka.tools.DumpLogSegments": "kafka-dump-log",
    "org.apache.kafka.tools.DumpLogSegments": "kafka-dump-log",
    "kafka.tools.GetOffsetShell": "kafka-get-offsets",
    "org.apache.kafka.tools.GetOffsetShell": "kafka-get-offsets",
    "kafka.admin.DeleteRecordsCommand": "kafka-delete-records",
    "org.apache.kafka.tools.DeleteRecordsCommand": "kafka-delete-records",
    "kafka.admin.LeaderElectionCommand": "kafka-leader-election",
    "org.apache.kafka.tools.LeaderElectionCommand": "kafka-leader-election",
    "kafka.admin.ReassignPartitionsCommand": "kafka-reassign-partitions",
    "org.apache.kafka.tools.reassign.ReassignPartitionsCommand": "kafka-reassign-partitions",
    "kafka.tools.ProducerPerformance": "kafka-producer-perf-test",
    "org.apache.kafka.tools.ProducerPerformance": "kafka-producer-perf-test",
    "kafka.tools.ConsumerPerformance": "kafka-consumer-perf-test",
    "org.apache.kafka.tools.ConsumerPerformance": "kafka-consumer-perf-test",
    "org.apache.kafka.tools.VerifiableProducer": "kafka-verifiable-producer",
    "org.apache.kafka.tools.VerifiableConsumer": "kafka-verifiable-consumer",
    "org.apache.kafka.tools.TransactionsCommand": "kafka-transactions",
    "kafka.admin.BrokerApiVersionsCommand": "kafka-broker-api-versions",
    "org.apache.kafka.tools.BrokerApiVersionsCommand": "kafka-broker-api-versions",
    "kafka.admin.LogDirsCommand": "kafka-log-dirs",
    "org.apache.kafka.tools.LogDirsCommand": "kafka-log-dirs",
    "kafka.tools.ClusterTool": "kafka-cluster",
    "kafka.admin.AclCommand": "kafka-acls",
    "kafka.admin.DelegationTokenCommand": "kafka-delegation-tokens",
    "org.apache.kafka.tools.DelegationTokenCommand": "kafka-delegation-tokens",
    "kafka.admin.ZkSecurityMigrator": "zookeeper-security-migration",
    "org.apache.kafka.tools.ClusterTool": "kafka-cluster",
    "kafka.tools.ReplicaVerificationTool": "kafka-replica-verification",
    "org.apache.kafka.tools.ReplicaVerificationTool": "kafka-replica-verification",
    "kafka.tools.EndToEndLatency": "kafka-e2e-latency",
    "org.apache.kafka.tools.EndToEndLatency": "kafka-e2e-latency",
    "kafka.tools.JmxTool": "kafka-jmx",
    "org.apache.kafka.tools.JmxTool": "kafka-jmx",
    "kafka.tools.StreamsResetter": "kafka-streams-application-reset",
    "org.apache.kafka.tools.StreamsResetter": "kafka-streams-application-reset",
    "org.apache.kafka.connect.cli.ConnectStandalone": "connect-standalone",
    "org.apache.kafka.connect.cli.ConnectDistributed": "connect-distributed",
    "org.apache.zookeeper.ZooKeeperMain": "zookeeper-shell",
    "kafka.tools.ZooKeeperMainWrapper": "zookeeper-shell",
    "org.apache.zookeeper.ZooKeeperMainWithTlsSupportForKafka": "zookeeper-shell",
    "org.apache.zookeeper.server.quorum.QuorumPeerMain": "zookeeper-server-start",
    "kafka.tools.SimpleConsumerShell": "kafka-simple-consumer-shell",
    "kafka.tools.ConsumerOffsetChecker": "kafka-consumer-offset-checker",
    "kafka.admin.PreferredReplicaLeaderElectionCommand": "kafka-preferred-replica-election",
    "kafka.tools.MirrorMaker": "kafka-mirror-maker",
    "kafka.tools.ReplayLogProducer": "kafka-replay-log-producer",
}
"""Maps classes commonly run with `kafka-run-class.sh`, in old and new packages, to their tools."""


class Replacement(NamedTuple):
    """Describes the replacement for a script removed from Kafka."""

    tool: str  # empty if there is none
    why: str
    renamed: tuple[tuple[str, str], ...] = ()  # options since renamed or removed
    added: tuple[str, ...] = ()  # words that the new command line requires


REPLACED: Final = {
    "kafka-consumer-offset-checker": Replacement(
        "kafka-consumer-groups",
        "Kafka has removed it",
        (("zookeeper", "bootstrap-server"), ("zk", "bootstrap-server"), ("broker-info", ""),
         ("topic", ""), ("retry.backoff.ms", ""), ("socket.timeout.ms", "")),
        ("--describe",),
    ),
    "kafka-mirror-maker": Replacement(
        "",
        "Kafka replaced it by MirrorMaker 2 (connect-mirror-maker.sh of a Kafka distribution), "
        "which works with Barnabas as it does with Kafka; to copy one topic, without its keys and "
        "offsets: barnabas consume TOPIC --from-beginning --bootstrap-server FROM | "
        "barnabas produce TOPIC --bootstrap-server TO",
    ),
    "kafka-replay-log-producer": Replacement(
        "",
        "Kafka has removed it; this reads a topic and writes it again: barnabas consume FROM "
        "--from-beginning | barnabas produce TO",
    ),
}  # fmt: skip

_NO_KRAFT = "Barnabas keeps its metadata as Kafka does in ZooKeeper mode: there is no KRaft quorum"
_NO_CONNECT = (
    "Barnabas is a broker without Kafka Connect: run the Connect of a Kafka distribution against it"
)
NOT_COVERED: Final = {
    "kafka-metadata-quorum": _NO_KRAFT,
    "kafka-metadata-shell": f"{_NO_KRAFT}; `barnabas metadata ls /` reads the metadata",
    "kafka-storage": f"{_NO_KRAFT}, and a directory needs no formatting: barnabas server start",
    "kafka-features": "Barnabas has no versioned features to upgrade",
    "kafka-client-metrics": "Barnabas has no tool for subscriptions to clients' metrics",
    "kafka-streams-application-reset": (
        "reset its groups with `barnabas groups reset-offsets` and delete its internal topics "
        "with `barnabas topics delete`"
    ),
    "kafka-jmx": "Barnabas has no JMX: its metrics are text of Prometheus, served over HTTP",
    "kafka-e2e-latency": (
        "Barnabas has no such measurement; `barnabas perf produce` shows the latency of writes"
    ),
    "kafka-replica-verification": (
        "Barnabas does not compare replicas; `barnabas partitions watch` shows how far each is "
        "behind, `barnabas dump --verify DIR` checks the files of a broker"
    ),
    "kafka-get-group-coordinator": "`barnabas groups describe GROUP --state` shows it",
    "connect-standalone": _NO_CONNECT,
    "connect-distributed": _NO_CONNECT,
    "connect-mirror-maker": _NO_CONNECT,
    "connect-plugin-path": _NO_CONNECT,
    "trogdor": "Barnabas has no such tool; `barnabas perf` measures a cluster",
}
"""Kafka's tools that Barnabas lacks, with alternatives."""

PREFIXES: Final = ("kafka-", "zookeeper-", "zkServer", "connect-", "trogdor")


def script_of(word: str) -> str | None:
    """Return the script that a word names, with or without `.sh`, or None if it is not one of
    Kafka's.
    """
    # Any word with such a prefix counts as a script, so that a typing error leads to a suggestion.
    return word.removesuffix(".sh") if word.startswith(PREFIXES) else None


def every_script() -> list[str]:
    """Return the names of all scripts that run or point to an alternative."""
    return [*MODULES, RUN_CLASS, *REPLACED]
