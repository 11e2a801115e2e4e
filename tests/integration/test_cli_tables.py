"""On a terminal lists are tables with what a person asks next; in a pipe they stay plain lines."""

from __future__ import annotations

import os
import pty
import termios
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import barnabas as package
from barnabas.client import SyncConsumer, SyncProducer
from tests.kit.processes.command_line import InProcess, Shell

if TYPE_CHECKING:
    from barnabas.testing.embedded.broker import Broker

COLUMNS = 100


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with package.Broker(
        config={"group.initial.rebalance.delay.ms": "0", "broker.rack": "r1"}
    ) as running:
        running.topic("orders", partitions=3)
        with SyncProducer(running.bootstrap_servers, transactional_id="copy") as producer:
            producer.init_transactions()
            producer.begin_transaction()
            for number in range(3):
                producer.send("orders", b"x" * 1000, partition=number)
            producer.commit_transaction()
        with SyncConsumer(
            running.bootstrap_servers, group_id="billing", auto_offset_reset="earliest"
        ) as consumer:
            consumer.subscribe(["orders"])
            while not consumer.poll(1000):
                pass
            consumer.commit()
        running.topic("orders").send(b"one more", partition=0)
        yield running


def on_terminal(shell: Shell, *words: str) -> list[list[str]]:
    """The words of each line that a command shows on a terminal."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (50, COLUMNS))
    command = shell.start(*words, stdout=theirs)
    os.close(theirs)
    shown = b""
    try:
        while True:
            shown += os.read(ours, 10_000)
    except OSError:  # how Linux says that the other end is closed
        pass
    finally:
        os.close(ours)
    assert command.wait(60) == 0 and command.stderr is not None
    command.stderr.close()
    text = shown.decode()
    for code in ("\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[33m"):
        text = text.replace(code, "")
    return [line.split() for line in text.splitlines()]


def test_topics_have_partitions_and_sizes(shell: Shell, barnabas: InProcess) -> None:
    heading, *rows = on_terminal(shell, "topics", "list")
    assert heading == ["topic", "partitions", "replicas", "size"]
    (orders,) = (row for row in rows if row[0] == "orders")
    assert orders[1:3] == ["3", "1"] and float(orders[3]) >= 3 and orders[4] == "kB"
    assert "__consumer_offsets" in {row[0] for row in rows}
    assert barnabas("topics list")[0] == "__consumer_offsets\n__transaction_state\norders\n"


def test_groups_have_states_and_lags(shell: Shell, barnabas: InProcess) -> None:
    heading, *rows = on_terminal(shell, "groups", "list")
    assert heading == ["group", "state", "protocol", "members", "lag"]
    (billing,) = rows
    assert billing[:4] == ["billing", "Empty", "consumer", "0"] and int(billing[4]) >= 1
    assert barnabas("groups list")[0] == "billing\n"
    assert barnabas("groups list --json")[0].count('"group"') == 1


def test_transactional_ids(shell: Shell, barnabas: InProcess) -> None:
    heading, row = on_terminal(shell, "transactions", "list")
    assert heading == ["transactional", "id", "state", "coordinator", "producer", "id"]
    assert row[:3] == ["copy", "CompleteCommit", "0"]
    assert barnabas("transactions list")[0].startswith("TransactionalId\t")


def test_brokers_of_a_cluster(shell: Shell, broker: Broker, barnabas: InProcess) -> None:
    facts, heading, row = on_terminal(shell, "cluster", "describe")
    assert facts[0] == "Cluster" and "controller" in facts
    assert heading == ["broker", "address", "rack", "leaders", "replicas", "size"]
    assert row[:3] == ["0", broker.bootstrap_servers, "r1"] and row[-1] == "controller"
    assert int(row[3]) == int(row[4]) >= 3
    assert barnabas("cluster describe")[0].startswith("Cluster ")
