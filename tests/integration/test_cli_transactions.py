"""`barnabas transactions`, `records delete` and `produce --transactional-id`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaException, Producer

from barnabas.client.admin.admin import NewTopic
from barnabas.client.sync.producer import SyncAdmin, SyncProducer
from barnabas.types import TopicPartition
from tests.kit.processes.command_line import InProcess
from tests.kit.waiting import wait_until

if TYPE_CHECKING:
    from barnabas.testing.embedded.broker import Broker

TIMEOUT_S = 120


def create(broker: Broker, topic: str, partitions: int = 1) -> None:
    with SyncAdmin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(topic, partitions)])


@contextmanager
def open_transaction(broker: Broker, transactional_id: str, topic: str) -> Iterator[Producer]:
    """A foreign producer in the middle of a transaction, with a record in partitions 0 and 1."""
    settings = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": transactional_id}
    producer = Producer(settings)
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    for partition in (0, 1):
        producer.produce(topic, b"open", partition=partition)
    assert producer.flush(TIMEOUT_S) == 0
    yield producer


def rows(text: str) -> list[dict[str, str]]:
    """The lines of a table by the names of its columns; each cell has a tab behind it."""
    heading, *lines = ([cell.strip() for cell in line.split("\t")] for line in text.splitlines())
    assert heading.pop() == "" and all(line.pop() == "" for line in lines)
    return [dict(zip(heading, line, strict=True)) for line in lines]


def committed(barnabas: InProcess, topic: str) -> list[str]:
    line = f"consume {topic} --from-beginning --isolation-level read_committed --timeout-ms 3000"
    return barnabas(line)[0].splitlines()


def test_an_open_transaction_is_seen_and_aborted(broker: Broker, barnabas: InProcess) -> None:
    """By its id: the coordinator ends it, and fences its producer."""
    create(broker, "opened", 2)
    with open_transaction(broker, "tx-opened", "opened") as producer:
        listed = rows(barnabas("transactions list --state ongoing")[0])
        (row,) = [row for row in listed if row["TransactionalId"] == "tx-opened"]
        assert (row["Coordinator"], row["TransactionState"]) == ("0", "Ongoing")
        (values,) = json.loads(
            barnabas(f"transactions list --producer-id {row['ProducerId']} --json")[0]
        )
        assert values == {
            "transactional_id": "tx-opened",
            "coordinator": 0,
            "producer_id": int(row["ProducerId"]),
            "state": "Ongoing",
        }
        for others in ("--state Empty", "--duration-filter 3600000"):
            assert "tx-opened" not in barnabas(f"transactions list {others}")[0]
        (row,) = rows(barnabas("transactions describe tx-opened")[0])
        assert row["TopicPartitions"] == "opened-0,opened-1"
        assert 0 <= int(row["TransactionDurationMs"]) < 60_000
        (row,) = rows(barnabas("transactions describe-producers --topic opened --partition 1")[0])
        assert row["CurrentTransactionStartOffset"] == "0"
        stdout = barnabas("transactions abort --transactional-id tx-opened")[0]
        assert stdout.startswith("Fenced tx-opened")
        with pytest.raises(KafkaException):
            producer.commit_transaction(TIMEOUT_S)
    (row,) = rows(barnabas("transactions describe --transactional-id tx-opened")[0])
    assert row["TransactionState"] in ("Empty", "CompleteAbort")
    assert row["TopicPartitions"] == ""
    assert committed(barnabas, "opened") == []


def test_a_transaction_is_aborted_in_one_partition(broker: Broker, barnabas: InProcess) -> None:
    """KIP-664: past its coordinator, found by the offset at which it begins."""
    create(broker, "past", 2)
    with open_transaction(broker, "tx-past", "past"):
        where = "--topic past --partition 0"
        stderr = barnabas(f"transactions abort {where} --start-offset 7", code=1)[1]
        assert stderr == (
            "barnabas: Could not find any open transactions starting at offset 7 "
            "on partition past-0\n"
        )
        assert "of producer" in barnabas(f"transactions abort {where} --start-offset 0")[0]
        (row,) = rows(barnabas(f"transactions describe-producers {where}")[0])
        assert row["CurrentTransactionStartOffset"] == "None"
        (row,) = rows(barnabas("transactions describe-producers --topic past --partition 1")[0])
        numbers = f"--producer-id {row['ProducerId']} --producer-epoch {row['ProducerEpoch']}"
        line = f"transactions abort --topic past --partition 1 {numbers} --coordinator-epoch 0"
        assert f"producer {row['ProducerId']} in past-1" in barnabas(line)[0]


def test_what_a_coordinator_knows_of_does_not_hang(broker: Broker, barnabas: InProcess) -> None:
    create(broker, "hangs-not", 2)
    with open_transaction(broker, "tx-hangs-not", "hangs-not"):
        for words in ("", "--topic hangs-not", "--topic hangs-not --partition 0", "--broker-id 0"):
            line = f"transactions find-hanging --max-transaction-timeout 0 {words}"
            assert rows(barnabas(line)[0]) == []
        assert json.loads(barnabas("transactions find-hanging --json")[0]) == []


def test_a_file_is_produced_as_a_whole_or_not_at_all(
    broker: Broker, barnabas: InProcess, tmp_path: Path
) -> None:
    """PR-7: what read_committed sees."""
    create(broker, "whole")
    (tmp_path / "good").write_text("a:1\nb:2\n")
    (tmp_path / "bad").write_text("c:3\nd:4\nwithout a key\n")
    line = "produce whole --transactional-id tx-whole --key-separator : --file"
    stderr = barnabas(line, f"{tmp_path}/bad", code=1)[1]
    assert f"nothing was committed: {tmp_path}/bad: line 3" in stderr
    assert committed(barnabas, "whole") == []
    assert "2 records" in barnabas(line, f"{tmp_path}/good")[1]
    wait_until(lambda: committed(barnabas, "whole") == ["1", "2"])  # 3 s may be too short


def test_the_oldest_records_are_deleted(
    broker: Broker, barnabas: InProcess, tmp_path: Path
) -> None:
    """As kafka-delete-records.sh does, by the command line or by its file."""
    create(broker, "oldest", 3)
    with SyncProducer(broker.bootstrap_servers) as producer:
        for partition in range(3):
            for _ in range(4):
                producer.send("oldest", b"", partition=partition)
    assert barnabas("records delete --topic oldest --partition 0 --offset 3")[0] == (
        "partition: oldest-0\tlow_watermark: 3\n"
    )
    entries = [
        {"topic": "oldest", "partition": 1, "offset": -1},
        {"topic": "oldest", "partition": 2, "offset": 5},
        {"topic": "nosuch", "partition": 0, "offset": 1},
    ]
    (tmp_path / "offsets.json").write_text(json.dumps({"partitions": entries, "version": 1}))
    output, stderr = barnabas(
        f"records delete --json --offset-json-file {tmp_path}/offsets.json", code=1
    )
    assert json.loads(output) == [{"topic": "oldest", "partition": 1, "log_start": 4}]
    first, second = stderr.splitlines()
    assert "oldest-2" in first and "OFFSET_OUT_OF_RANGE" in first
    assert "nosuch" in second and "UNKNOWN_TOPIC_OR_PARTITION" in second
    with SyncAdmin(broker.bootstrap_servers) as admin:
        starts = admin.list_offsets({TopicPartition("oldest", n): -2 for n in range(3)})
    assert [at.offset for at in starts.values()] == [3, 4, 0]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("transactions describe", "name a transactional id"),
        ("transactions list --state Sleepy", "Sleepy"),
        ("transactions find-hanging --partition 0", "--partition needs --topic"),
        ("transactions abort", "name the transaction"),
        ("transactions abort --transactional-id a --topic t", "cannot be combined"),
        ("transactions abort --transactional-id a --producer-id 1", "cannot be combined"),
        ("transactions abort --topic t --partition 0", "name the transaction"),
        ("transactions abort --topic t --partition 0 --producer-id 1", "--producer-epoch"),
        (
            "transactions abort --topic t --partition 0 --start-offset 0 --producer-id 1",
            "leave out",
        ),
        ("produce t --transactional-id a --acks 1", "idempotence"),
        ("records delete --topic t --partition 0", "--offset"),
        ("records delete --topic t --partition 0 --offset -2", "-2"),
        ("records delete --topic t --offset-json-file f", "cannot be combined"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_2(
    barnabas: InProcess, line: str, problem: str
) -> None:
    """UX-4."""
    stderr = barnabas(line, code=2)[1]
    assert stderr.count("\n") == 1 and problem in stderr and "--help" in stderr


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("transactions describe gone", "TRANSACTIONAL_ID_NOT_FOUND"),
        ("transactions abort --transactional-id gone", "TRANSACTIONAL_ID_NOT_FOUND"),
        ("transactions describe-producers --topic gone --partition 0", "UNKNOWN_TOPIC"),
        ("transactions find-hanging --topic gone", "UNKNOWN_TOPIC"),
        ("transactions abort --topic gone --partition 0 --start-offset 0", "UNKNOWN_TOPIC"),
        ("records delete --topic gone --partition 0 --offset 0", "UNKNOWN_TOPIC"),
        ("records delete --offset-json-file /there/is/no/such/file", "no such file"),
    ],
)
def test_what_cannot_be_is_one_line_and_exit_1(
    barnabas: InProcess, line: str, problem: str
) -> None:
    """UX-4: and at once."""
    stderr = barnabas(line, code=1)[1]
    assert stderr.count("\n") == 1 and problem in stderr
