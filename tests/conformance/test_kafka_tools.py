"""Kafka's own command-line tools, of 3.9.1, manage our broker."""

from __future__ import annotations

import json
import re

import pytest

from tests.kit.clients.kafka_tools import Tools

pytestmark = pytest.mark.foreign


@pytest.fixture(scope="module")
def tools(servers: str, tmp_path_factory: pytest.TempPathFactory) -> Tools:
    return Tools(servers, tmp_path_factory.mktemp("tools"))


def test_kafka_topics_creates_describes_enlarges_lists_and_deletes(tools: Tools) -> None:
    """TP-1, TP-4, TP-5: `describe` to the letter, but for the id that was drawn."""
    named = ("--topic", "tools-topic")
    create = ("--create", *named, "--partitions", "1", "--replication-factor", "1")
    assert tools.run("kafka-topics", *create) == "Created topic tools-topic.\n"
    described = tools.run("kafka-topics", "--describe", *named)
    topic_id = re.search(r"TopicId: (\S{22})\t", described)
    assert topic_id, described
    assert described == (
        f"Topic: tools-topic\tTopicId: {topic_id[1]}\tPartitionCount: 1\tReplicationFactor: 1\t"
        "Configs: \n"
        "\tTopic: tools-topic\tPartition: 0\tLeader: 0\tReplicas: 0\tIsr: 0\t"
        "Elr: N/A\tLastKnownElr: N/A\n"
    )
    assert tools.run("kafka-topics", "--alter", *named, "--partitions", "3") == ""
    assert "PartitionCount: 3" in tools.run("kafka-topics", "--describe", *named)
    words = ("--bootstrap-server", tools.servers, "--alter", *named, "--partitions", "2")
    refused = tools.try_run("kafka-topics", *words)
    assert refused.returncode == 1
    assert "InvalidPartitionsException" in refused.stdout + refused.stderr
    tools.run("kafka-topics", "--delete", *named)
    assert "tools-topic" not in tools.run("kafka-topics", "--list").splitlines()


def test_kafka_configs_changes_topics_and_brokers(tools: Tools) -> None:
    """UX-3"""
    create = ("--create", "--topic", "tools-configs", "--config", "retention.ms=3600000")
    tools.run("kafka-topics", *create)
    topic = ("--entity-type", "topics", "--entity-name", "tools-configs")
    changes = ("--add-config", "cleanup.policy=[compact,delete],max.message.bytes=200000")
    altered = tools.run(
        "kafka-configs", "--alter", *topic, *changes, "--delete-config", "retention.ms"
    )
    assert altered == "Completed updating config for topic tools-configs.\n"
    dynamic = "sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:"
    assert tools.run("kafka-configs", "--describe", *topic) == (
        "Dynamic configs for topic tools-configs are:\n"
        f"  cleanup.policy=compact,delete {dynamic}cleanup.policy=compact,delete, "
        "DEFAULT_CONFIG:log.cleanup.policy=delete}\n"
        f"  max.message.bytes=200000 {dynamic}max.message.bytes=200000, "
        "DEFAULT_CONFIG:message.max.bytes=1048588}\n"
    )
    broker, key = ("--entity-type", "brokers", "--entity-name", "0"), "log.cleaner.io.buffer.size"
    tools.run("kafka-configs", "--alter", *broker, "--add-config", f"{key}=600000")
    described = tools.run("kafka-configs", "--describe", *broker)
    tools.run("kafka-configs", "--alter", *broker, "--delete-config", key)
    assert described == (
        "Dynamic configs for broker 0 are:\n"
        f"  {key}=600000 sensitive=false synonyms={{DYNAMIC_BROKER_CONFIG:{key}=600000, "
        f"DEFAULT_CONFIG:{key}=524288}}\n"
    )


def test_the_console_tools_write_and_read(tools: Tools) -> None:
    """UX-5: by partition; and the topic comes with its first record (TP-6)."""
    topic = ("--topic", "tools-console")
    parsing = ("parse.key=true", "key.separator=:", "parse.headers=true")
    properties = [word for one in parsing for word in ("--property", one)]
    lines = "h1:x,h2:y\tkey-1:hello\nh1:z\tkey-2:world\n"
    codec = ("--compression-codec", "zstd")
    tools.run("kafka-console-producer", *topic, *codec, *properties, stdin=lines)
    shown = ("print.partition=true", "print.offset=true", "print.key=true", "print.headers=true")
    properties = [word for one in shown for word in ("--property", one)]
    where = ("--partition", "0", "--offset", "earliest", "--max-messages", "2")
    limit = ("--timeout-ms", "30000")
    read = tools.run("kafka-console-consumer", *topic, *where, *limit, *properties)
    assert read.splitlines() == [
        "Partition:0\tOffset:0\th1:x,h2:y\tkey-1\thello",
        "Partition:0\tOffset:1\th1:z\tkey-2\tworld",
    ]
    assert tools.run("kafka-get-offsets", *topic) == "tools-console:0:2\n"
    assert tools.run("kafka-get-offsets", *topic, "--time", "earliest") == "tools-console:0:0\n"


def test_kafka_producer_perf_test_is_answered(tools: Tools) -> None:
    """UX-2: every record of it is there."""
    sizes = ("--num-records", "20000", "--record-size", "100", "--throughput", "-1")
    to = ("--producer-props", f"bootstrap.servers={tools.servers}", "acks=all")
    done = tools.try_run("kafka-producer-perf-test", "--topic", "tools-perf", *sizes, *to)
    assert "20000 records sent" in done.stdout, done.stdout + done.stderr
    assert tools.run("kafka-get-offsets", "--topic", "tools-perf") == "tools-perf:0:20000\n"


def test_kafka_log_dirs_tells_sizes(tools: Tools) -> None:
    """ST-10"""
    tools.run("kafka-topics", "--create", "--topic", "tools-dirs", "--partitions", "2")
    said = tools.run("kafka-log-dirs", "--describe", "--topic-list", "tools-dirs")
    answer = json.loads(said.splitlines()[-1])
    [broker] = answer["brokers"]
    [directory] = broker["logDirs"]
    assert (broker["broker"], directory["error"]) == (0, None)
    empty = {"size": 0, "offsetLag": 0, "isFuture": False}
    assert sorted(directory["partitions"], key=lambda one: str(one["partition"])) == [
        {"partition": f"tools-dirs-{number}", **empty} for number in range(2)
    ]


def test_the_tools_print_the_api_versions_and_the_cluster_id(tools: Tools) -> None:
    """PR-9: what is not there is not advertised."""
    said = tools.run("kafka-broker-api-versions")
    assert said.startswith(f"{tools.servers} (id: 0 rack: null) -> (\n")
    assert "\tProduce(0): 0 to 11 [usable: 11],\n" in said
    assert "\tIncrementalAlterConfigs(44): 0 to 1 [usable: 1],\n" in said
    assert "\tDescribeTopicPartitions(75): UNSUPPORTED" in said
    cluster = tools.try_run("kafka-cluster", "cluster-id", "--bootstrap-server", tools.servers)
    assert re.fullmatch(r"Cluster ID: \S{22}\n", cluster.stdout), cluster.stdout + cluster.stderr
