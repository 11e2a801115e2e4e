"""UX-6: Kafka's command lines behind `barnabas` print the same bytes as Kafka 3.9's own tools.

Both ask one broker. Each line is one about a single topic, partition or group: of several, Kafka's
tools print the order of a hash table.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import barnabas as package
from barnabas.cli.main import main
from barnabas.client.admin.admin import NewTopic
from barnabas.client.sync.producer import SyncAdmin, SyncProducer
from barnabas.types import TopicPartition
from tests.kit.clients.kafka_tools import Tools
from tests.kit.processes.zookeeper_process import zookeeper_process

if TYPE_CHECKING:
    from barnabas.testing.embedded.broker import Broker

pytestmark = [pytest.mark.foreign, pytest.mark.slow]

ONE = TopicPartition("one", 0)
WEB_OF_ALICE = "--entity-type clients --entity-name web --entity-type users --entity-name alice"
QUOTAS: tuple[tuple[dict[str, str | None], dict[str, float | None]], ...] = (
    ({"user": "alice"}, {"producer_byte_rate": 1_048_576, "consumer_byte_rate": 1e7}),
    (
        {"user": "alice", "client-id": "web"},
        {
            "producer_byte_rate": 12_345_678,
            "controller_mutation_rate": 1,
            "request_percentage": 5,
        },
    ),
    ({"user": None}, {"request_percentage": 0.5}),
    ({"ip": None}, {"connection_creation_rate": 100}),
)
SAME = (
    ("kafka-topics", "--describe --topic one"),
    ("kafka-topics", "--create --topic with.dot --partitions 0"),
    ("kafka-topics", "--create --topic one"),
    ("kafka-consumer-groups", "--list --state"),
    ("kafka-consumer-groups", "--describe --group readers"),
    ("kafka-consumer-groups", "--describe --group missing --members"),
    ("kafka-configs", "--describe --topic one --all"),
    ("kafka-configs", "--describe --entity-type broker-loggers --entity-name 0"),
    ("kafka-configs", f"--describe {WEB_OF_ALICE}"),
    ("kafka-configs", "--describe --user alice"),
    ("kafka-configs", "--describe --user-defaults"),
    ("kafka-configs", "--describe --entity-type ips"),
    ("kafka-configs", f"--alter {WEB_OF_ALICE} --add-config request_percentage=0.0005"),
    ("kafka-configs", "--alter --client-defaults --add-config controller_mutation_rate=1e7"),
    ("kafka-configs", "--alter --ip 10.0.0.2 --delete-config connection_creation_rate"),
    ("kafka-configs", "--alter --client a --user b --ip 10.0.0.2 --add-config x=1"),
    (
        "kafka-console-consumer",
        "--topic __consumer_offsets --partition 0 --offset earliest --max-messages 1 "
        "--formatter kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter",
    ),
    (
        "kafka-console-consumer",
        "--topic __transaction_state --partition 0 --offset earliest --max-messages 4 --formatter "
        "kafka.coordinator.transaction.TransactionLog$TransactionLogMessageFormatter",
    ),
    (
        "kafka-console-consumer",
        "--topic one --partition 0 --offset earliest --max-messages 2 --property print.key=true "
        "--property print.timestamp=true --property print.headers=true "
        "--property print.offset=true",
    ),
    ("kafka-get-offsets", "--topic-partitions one:0 --time -2"),
    ("kafka-log-dirs", "--describe --topic-list one"),
    ("kafka-broker-api-versions", ""),
    ("kafka-leader-election", "--election-type preferred --topic one --partition 0"),
)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    config = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
    with package.Broker(config=config) as running:
        servers = running.bootstrap_servers
        with SyncAdmin(servers) as admin:
            admin.create_topics([NewTopic("one", 1, configs={"retention.ms": "-1"})])
            with SyncProducer(servers) as producer:
                headers = (("h", b"1"), ("i", b"2"))
                producer.send("one", b"v", b"k", headers=headers, timestamp_ms=1_000)
                producer.send("one", b"w", timestamp_ms=2_000)
            admin.alter_group_offsets("readers", {ONE: 1})
            admin.create_topics([NewTopic("copied", 1)])
            with (
                SyncProducer(servers, transactional_id="copy") as producer,
                producer.transaction(),
            ):
                producer.send("copied", b"v")
            for entity, quotas in QUOTAS:
                admin.alter_client_quotas(entity, quotas)
        yield running


@pytest.fixture
def kafkas(broker: Broker, tmp_path: Path) -> Tools:
    return Tools(broker.bootstrap_servers, tmp_path)


@pytest.mark.parametrize(("tool", "line"), SAME)
def test_ux_6_kafkas_tool_prints_the_same(
    tool: str, line: str, broker: Broker, kafkas: Tools, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["--bootstrap-server", broker.bootstrap_servers, *line.split()]
    theirs = kafkas.try_run(tool, *words)
    capfd.readouterr()
    code = main([f"{tool}.sh", *words])
    ours, errors = capfd.readouterr()
    # 3.9.1 forgets the end of the last line of a description.
    assert ours.rstrip("\n") == theirs.stdout.rstrip("\n"), errors
    assert code == theirs.returncode
    assert ours or theirs.returncode


def test_ux_6_records_are_deleted_in_kafkas_words(
    broker: Broker, kafkas: Tools, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with SyncAdmin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("two", 1)])
        with SyncProducer(broker.bootstrap_servers) as producer:
            producer.send("two", b"x")
    path = tmp_path / "offsets.json"
    wanted = {"topic": "two", "partition": 0, "offset": 1}
    path.write_text(json.dumps({"partitions": [wanted], "version": 1}))
    words = ["--bootstrap-server", broker.bootstrap_servers, "--offset-json-file", str(path)]
    capfd.readouterr()
    assert main(["kafka-delete-records.sh", *words]) == 0
    ours = capfd.readouterr().out
    theirs = kafkas.try_run("kafka-delete-records", *words)
    assert ours == theirs.stdout
    assert "low_watermark: 1" in ours


def test_ux_6_zookeepers_tree_is_read_in_its_shells_words(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    connected = "\nWATCHER::\n\nWatchedEvent state:SyncConnected type:None path:null\n"
    with zookeeper_process(tmp_path) as zookeeper:
        address = zookeeper.connect
        for command, code, said, complaint in (
            ("ls /zookeeper", 0, "[config, quota]\n", ""),
            ("get /zookeeper/quota", 0, "\n", ""),
            ("get /nope", 1, "", "Node does not exist: /nope\n"),
        ):
            capfd.readouterr()
            assert main(["zookeeper-shell.sh", address, *command.split()]) == code
            output, errors = capfd.readouterr()
            assert output == f"Connecting to {address}\n{connected}{said}"
            assert errors == complaint
