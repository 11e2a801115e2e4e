"""GC-4, CO-3, PR-7: Kafka's own tools for groups, transactions and records manage our broker."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer

import barnabas as package
from barnabas.client import NewTopic, SyncAdmin, SyncProducer
from barnabas.types import TopicPartition
from tests.kit.clients.kafka_tools import Tools
from tests.kit.processes.command_line import InProcess
from tests.kit.waiting import wait_until

if TYPE_CHECKING:
    from barnabas.testing.embedded.broker import Broker

WAIT_S = 120.0
LONG_MS = 600_000  # a transaction is open for longer than six starts of Java
GROUPS = "kafka-consumer-groups"
TRANSACTIONS = "kafka-transactions"

pytestmark = [pytest.mark.slow, pytest.mark.foreign, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    config = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "1"}
    with package.Broker(config=config) as running:
        yield running


@pytest.fixture(scope="module")
def tools(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Tools:
    return Tools(broker.bootstrap_servers, tmp_path_factory.mktemp("tools"))


@pytest.fixture
def barnabas(broker: Broker, capfdbinary: pytest.CaptureFixture[bytes]) -> InProcess:
    return InProcess(broker, capfdbinary)


def fill(tools: Tools, topic: str, *counts: int) -> None:
    """A topic with so many records in each partition."""
    with SyncAdmin(tools.servers) as admin:
        admin.create_topics([NewTopic(topic, len(counts))])
    with SyncProducer(tools.servers) as producer:
        for partition, count in enumerate(counts):
            for _ in range(count):
                producer.send(topic, b"value", partition=partition)
        producer.flush()


def read_and_commit(tools: Tools, group: str, topic: str, count: int) -> Consumer:
    """A member that has read so many records and committed where it is."""
    config = {
        "bootstrap.servers": tools.servers,
        "group.id": group,
        "client.id": f"reader-of-{group}",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
    }
    consumer = Consumer(config)
    consumer.subscribe([topic])
    seen = 0

    def reads() -> bool:
        nonlocal seen
        message = consumer.poll(0.1)
        seen += message is not None and message.error() is None
        return seen >= count

    wait_until(reads, WAIT_S)
    consumer.commit(asynchronous=False)
    return consumer


def committed(tools: Tools, group: str) -> dict[tuple[str, int], int]:
    with SyncAdmin(tools.servers) as admin:
        offsets = admin.list_group_offsets(group)
    return {(name.topic, name.partition): at.offset for name, at in offsets.items()}


def test_a_group_with_a_member_is_listed_and_described(tools: Tools) -> None:
    """GC-4: offsets, ends and lags, members with what they have, the state."""
    fill(tools, "live", 3, 0)
    member = read_and_commit(tools, "live-group", "live", 3)
    [member_id] = _member_ids(tools, "live-group")
    assert "live-group" in tools.run(GROUPS, "--list").splitlines()
    assert re.search(r"^live-group +Stable *$", tools.run(GROUPS, "--list", "--state"), re.M)
    assert "live-group" not in tools.run(GROUPS, "--list", "--state", "empty")

    who = f"{member_id} /127.0.0.1 reader-of-live-group"
    rows = sorted(_lines(tools.run(GROUPS, "--describe", "--group", "live-group")))
    assert rows == [
        f"live-group live 0 3 3 0 {who}",
        f"live-group live 1 - 0 - {who}",
    ]
    options = ("--describe", "--group", "live-group", "--members", "--verbose")
    assert _lines(tools.run(GROUPS, *options)) == [f"live-group {who} 2 (0,1)"]
    state = _lines(tools.run(GROUPS, "--describe", "--group", "live-group", "--state"))
    assert state == [f"live-group {tools.servers} (0) range Stable 1"]

    reset = ("--reset-offsets", "--group", "live-group", "--all-topics", "--to-earliest")
    refused = tools.run(GROUPS, *reset, "--execute")
    assert "the current state is Stable" in refused
    refused = tools.run(GROUPS, "--delete", "--group", "live-group")
    assert "GroupNotEmptyException" in refused
    forgotten = ("--delete-offsets", "--group", "live-group", "--topic", "live")
    assert "GroupSubscribedToTopicException" in tools.run(GROUPS, *forgotten)
    assert committed(tools, "live-group") == {("live", 0): 3}
    member.close()


def _lines(text: str) -> list[str]:
    """The rows of a table, without their padding."""
    return [" ".join(line.split()) for line in text.split("\n") if line.strip()][1:]


def _member_ids(tools: Tools, group: str) -> list[str]:
    with SyncAdmin(tools.servers) as admin:
        return [member.member_id for member in admin.describe_groups([group])[group].members]


def test_the_offsets_of_a_group_are_reset_deleted_and_the_group_with_them(tools: Tools) -> None:
    """CO-3"""
    fill(tools, "reset", 5, 2)
    read_and_commit(tools, "reset-group", "reset", 7).close()
    assert committed(tools, "reset-group") == {("reset", 0): 5, ("reset", 1): 2}
    group = ("--group", "reset-group")
    reset = ("--reset-offsets", *group)
    for where, expected in (
        (("--to-earliest",), {0: 0, 1: 0}),
        (("--shift-by", "3"), {0: 3, 1: 2}),  # not beyond the end
        (("--to-offset", "1"), {0: 1, 1: 1}),
        (("--to-latest",), {0: 5, 1: 2}),
    ):
        tools.run(GROUPS, *reset, "--topic", "reset", *where, "--dry-run")
        tools.run(GROUPS, *reset, "--topic", "reset", *where, "--execute")
        at = {("reset", number): offset for number, offset in expected.items()}
        assert committed(tools, "reset-group") == at, where

    printed = tools.run(GROUPS, "--delete-offsets", *group, "--topic", "reset:1")
    assert "Successful" in printed
    assert committed(tools, "reset-group") == {("reset", 0): 5}
    assert "successful" in tools.run(GROUPS, "--delete", *group)
    assert committed(tools, "reset-group") == {}
    assert "reset-group" not in tools.run(GROUPS, "--list").splitlines()
    assert "GroupIdNotFoundException" in tools.run(GROUPS, "--delete", *group)
    assert "does not exist" in tools.run(GROUPS, "--describe", *group)


def open_transaction(tools: Tools, transactional_id: str, topic: str) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": tools.servers,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": LONG_MS,
            "log_level": 0,
        }
    )
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    assert producer.flush(WAIT_S) == 0
    return producer


def cells(text: str) -> list[dict[str, str]]:
    """The rows of a table of kafka-transactions, whose cells end with a tab."""
    heading, *lines = ([one.strip() for one in line.split("\t")] for line in text.splitlines())
    return [dict(zip(heading, line, strict=True)) for line in lines]


def test_pr_7_transactions_are_listed_described_and_aborted(tools: Tools) -> None:
    fill(tools, "transactional", 0, 0)
    ended = open_transaction(tools, "tool-ended", "transactional")
    ended.commit_transaction(WAIT_S)
    producer = open_transaction(tools, "tool-open", "transactional")

    listed = {row["TransactionalId"]: row for row in cells(tools.run(TRANSACTIONS, "list"))}
    assert listed["tool-ended"]["TransactionState"] == "CompleteCommit"
    assert listed["tool-open"]["TransactionState"] == "Ongoing"
    producer_id = listed["tool-open"]["ProducerId"]
    describe = ("describe", "--transactional-id", "tool-open")
    [described] = cells(tools.run(TRANSACTIONS, *describe))
    assert described["TopicPartitions"] == "transactional-0"
    assert (described["ProducerId"], described["TransactionTimeoutMs"]) == (
        producer_id,
        str(LONG_MS),
    )

    where = ("--topic", "transactional", "--partition", "0")
    producers = cells(tools.run(TRANSACTIONS, "describe-producers", *where))
    starts = {row["ProducerId"]: row["CurrentTransactionStartOffset"] for row in producers}
    assert starts.pop(producer_id) == "2"
    assert set(starts.values()) == {"None"}
    hanging = tools.run(TRANSACTIONS, "find-hanging", "--broker-id", "0")
    assert cells(hanging) == [], "none hangs that the coordinator knows of"

    assert tools.run(TRANSACTIONS, "abort", *where, "--start-offset", "2") == ""
    producers = cells(tools.run(TRANSACTIONS, "describe-producers", *where))
    assert {row["CurrentTransactionStartOffset"] for row in producers} == {"None"}
    producer.abort_transaction(WAIT_S)
    refused = tools.try_run(
        TRANSACTIONS, "--bootstrap-server", tools.servers, "describe", "--transactional-id", "gone"
    )
    assert refused.returncode == 1
    assert "the ID could not be found" in refused.stdout + refused.stderr


def test_records_are_deleted(tools: Tools, tmp_path: Path) -> None:
    """TP-8, ST-10"""
    fill(tools, "deleted", 6, 1)
    entries = [
        {"topic": "deleted", "partition": number, "offset": offset}
        for number, offset in enumerate((4, 2))
    ]
    path = tmp_path / "offsets.json"
    path.write_text(json.dumps({"partitions": entries, "version": 1}))
    printed = tools.run("kafka-delete-records", "--offset-json-file", str(path))
    assert "partition: deleted-0\tlow_watermark: 4\n" in printed
    assert re.search(r"partition: deleted-1\terror: .*OffsetOutOfRangeException", printed)
    earliest = tools.run("kafka-get-offsets", "--topic", "deleted", "--time", "earliest")
    assert sorted(earliest.split()) == ["deleted:0:4", "deleted:1:0"]


@pytest.mark.parametrize(
    ("formatter", "ours"),
    [("OffsetsMessageFormatter", "offsets"), ("GroupMetadataMessageFormatter", "groups")],
)
def test_gc_4_the_offsets_topic_has_the_lines_of_kafkas_formatter(
    tools: Tools, barnabas: InProcess, formatter: str, ours: str
) -> None:
    """Commits with and without an epoch, tombstones, groups with members and without."""
    topic, group = f"shown-{ours}", f"shown-{ours}-grüße"
    fill(tools, topic, 2)
    member = read_and_commit(tools, group, topic, 2)
    read_and_commit(tools, f"{topic}-deleted", topic, 2).close()
    with SyncAdmin(tools.servers) as admin:
        name = TopicPartition(topic, 0)
        admin.alter_group_offsets(f"{topic}-altered", {name: 1})
        admin.delete_groups([f"{topic}-deleted"])
    where = ("--topic", "__consumer_offsets", "--partition", "0", "--offset", "earliest")
    theirs = tools.run(
        "kafka-console-consumer",
        *(*where, "--timeout-ms", "10000"),
        *("--formatter", f"kafka.coordinator.group.GroupMetadataManager${formatter}"),
    )
    line = "consume __consumer_offsets --partition 0 --offset earliest --timeout-ms 5000"
    said, _ = barnabas(f"{line} --format {ours}")
    member.close()
    assert said.splitlines() == theirs.splitlines()
    assert f"{topic}-deleted" in said
    assert group in said and "NULL" in said
    print(f"{len(said.splitlines())} lines as Kafka's {formatter} writes them")
