"""Our commands beside Kafka 3.9's own tools, about the same groups of the same broker.

The tools list rows in the order of their hash tables, and 3.9.1 forgets some line ends; so what is
compared is every row's cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer

import barnabas as package
from barnabas.client.admin.admin import NewTopic
from barnabas.client.sync.producer import SyncAdmin, SyncProducer
from barnabas.types import TopicPartition
from tests.kit.clients.kafka_tools import Tools
from tests.kit.processes.command_line import InProcess

if TYPE_CHECKING:
    from barnabas.testing.embedded.broker import Broker

pytestmark = pytest.mark.foreign

GROUPS, TRANSACTIONS = "kafka-consumer-groups", "kafka-transactions"
POLLS = 1200
TIMEOUT_S = 120


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with package.Broker(config={"group.initial.rebalance.delay.ms": "0"}) as running:
        yield running


@pytest.fixture
def kafkas(broker: Broker, tmp_path: Path) -> Tools:
    return Tools(broker.bootstrap_servers, tmp_path)


@pytest.fixture(scope="module")
def member(broker: Broker) -> Iterator[Consumer]:
    """A static member of the group `live`, which has committed everywhere; `gone` has none."""
    servers = broker.bootstrap_servers
    with SyncAdmin(servers) as admin:
        admin.create_topics([NewTopic("orders", 3), NewTopic("bills", 1)])
        with SyncProducer(servers) as producer:
            for number in range(30):
                producer.send("orders", b"x", partition=number % 3)
        names = [TopicPartition("bills", 0), *(TopicPartition("orders", n) for n in range(3))]
        admin.alter_group_offsets("live", dict.fromkeys(names, 0))
        admin.alter_group_offsets("gone", {names[1]: 7, names[2]: 3})
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "live",
            "group.instance.id": "instance-1",
            "client.id": "reader",
            "enable.auto.commit": False,
            "max.poll.interval.ms": 3_600_000,  # it is not polled while Kafka's tools run
        }
    )
    consumer.subscribe(["orders", "bills"])
    for _ in range(POLLS):
        consumer.poll(0.1)
        if len(consumer.assignment()) == len(names):
            break
    yield consumer
    consumer.close()


def cells(text: str) -> list[list[str]]:
    """Each row's cells, sorted; without empty lines."""
    return sorted(line.split() for line in text.splitlines() if line.strip())


def test_gc_4_groups_are_described_as_by_kafka(
    member: Consumer, kafkas: Tools, barnabas: InProcess
) -> None:
    """The list, the offsets, the members and the state of groups with and without members."""
    pairs = {
        "--list": "groups list",
        "--list --state": "groups list --state",
        "--list --type --state stable": "groups list --type --state stable",
        "--describe --group live": "groups describe live",
        "--describe --group live --members": "groups describe live --members",
        "--describe --group gone --members --verbose": "groups describe gone --members --verbose",
        "--describe --group live --state": "groups describe live --state",
        "--describe --all-groups": "groups describe",
    }
    for theirs, ours in pairs.items():
        expected = kafkas.run(GROUPS, *theirs.split())
        assert cells(barnabas(ours)[0]) == cells(expected), ours
        if "--members" in theirs or "--state" in theirs:
            # One row each, so there is only one order: to the byte.
            rows = len([line for line in expected.splitlines() if line.strip()])
            assert rows > 2 or barnabas(ours)[0] == expected, ours
    print(f"\n{len(pairs)} tables are those of Kafka's tool")


def test_a_group_is_reset_as_kafka_resets_it(
    member: Consumer, kafkas: Tools, barnabas: InProcess, tmp_path: Path
) -> None:
    """The same plan, and a file that either writes and the other reads."""
    for words in ("--to-earliest", "--to-latest", "--to-current", "--to-offset 5"):
        line = f"--reset-offsets --group gone --topic orders {words} --dry-run"
        theirs = kafkas.run(GROUPS, *line.split())
        ours = barnabas(f"groups reset-offsets gone --topic orders {words}")[0]
        assert sorted(ours.split()) == sorted(theirs.split()), words
    line = "--reset-offsets --group gone --all-topics --shift-by -1 --dry-run --export"
    exported = kafkas.run(GROUPS, *line.split())
    ours = barnabas("groups reset-offsets gone --all-topics --shift-by -1 --export")[0]
    assert sorted(ours.split()) == sorted(exported.split())
    (tmp_path / "plan.csv").write_text(exported)
    plan = f"reset-offsets gone --from-file {tmp_path}/plan.csv"
    assert barnabas(f"groups {plan} --export")[0].split() == exported.split()


def test_transactions_are_described_as_by_kafka(
    broker: Broker, member: Consumer, kafkas: Tools, barnabas: InProcess
) -> None:
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "transactional.id": "tx",
            "transaction.timeout.ms": 600_000,  # longer than eight starts of Java
        }
    )
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    producer.produce("bills", b"x", partition=0)
    assert producer.flush(TIMEOUT_S) == 0
    partition = "--topic bills --partition 0"
    for line in ("list", f"describe-producers {partition}", "find-hanging --topic bills"):
        assert barnabas(f"transactions {line}")[0] == kafkas.run(TRANSACTIONS, *line.split()), line
    theirs = cells(kafkas.run(TRANSACTIONS, "describe", "--transactional-id", "tx"))
    ours = cells(barnabas("transactions describe tx")[0])
    duration = theirs[1].index("TransactionDurationMs")
    assert int(ours[0].pop(duration)) >= int(theirs[0].pop(duration))
    assert ours == theirs
    kafkas.run(TRANSACTIONS, "abort", *partition.split(), "--start-offset", "0")
    assert "None" in barnabas(f"transactions describe-producers {partition}")[0]
