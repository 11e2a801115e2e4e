"""UX-2: a console consumer without `--group` is a group of its own, through each rebalance."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

import pytest

import barnabas as package
from barnabas.client.admin.admin import NewTopic
from barnabas.client.sync.producer import SyncAdmin, SyncProducer
from tests.kit.processes.command_line import InProcess, Shell
from tests.kit.waiting import wait_until

if TYPE_CHECKING:
    from barnabas.testing.embedded.broker import Broker

OURS = "consume {topic}"
KAFKAS = "kafka-console-consumer.sh --topic {topic} --bootstrap-server {at}"
TIMEOUT_S = 120
# New partitions are found with the metadata's age.
SOON = "--consumer-property metadata.max.age.ms=50"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    config = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "1"}
    with package.Broker(config=config) as running:
        yield running


@pytest.fixture
def barnabas(broker: Broker, capfdbinary: pytest.CaptureFixture[bytes]) -> InProcess:
    return InProcess(broker, capfdbinary)


@contextmanager
def running(broker: Broker, line: str, topic: str) -> Iterator[subprocess.Popen[bytes]]:
    words = line.format(topic=topic, at=broker.bootstrap_servers).split()
    consumer = Shell(broker).start(*words)
    limit = threading.Timer(TIMEOUT_S, consumer.kill)  # which ends a wait for a line
    limit.start()
    try:
        yield consumer
    finally:
        limit.cancel()
        consumer.kill()
        consumer.communicate()


def lines(consumer: subprocess.Popen[bytes], count: int) -> list[str]:
    """The next lines, in the order of their texts."""
    output: BinaryIO | None = consumer.stdout  # type: ignore[assignment]
    assert output is not None
    return sorted(output.readline().decode().strip() for _ in range(count))


def rest(consumer: subprocess.Popen[bytes]) -> bytes:
    """What it prints until Ctrl-C ends it."""
    consumer.send_signal(signal.SIGINT)
    output, errors = consumer.communicate(timeout=TIMEOUT_S)
    assert consumer.returncode == 0, errors.decode()
    return output


def own_groups(barnabas: InProcess) -> list[str]:
    """Those that have a member."""
    found = json.loads(barnabas("groups list --state --json")[0])
    return [each["group"] for each in found if each["state"] == "Stable"]


@pytest.mark.parametrize("line", [OURS, KAFKAS])
@pytest.mark.parametrize("is_from_now", [False, True])
def test_ux_2_partitions_that_are_added_are_read_and_no_record_is_printed_twice(
    line: str, is_from_now: bool, broker: Broker, barnabas: InProcess
) -> None:
    topic = f"grows-{is_from_now}-{line.split()[0]}"
    line = f"{line} {SOON}" if is_from_now else f"{line} {SOON} --from-beginning"
    with (
        SyncAdmin(broker.bootstrap_servers) as admin,
        SyncProducer(broker.bootstrap_servers) as producer,
    ):
        admin.create_topics([NewTopic(topic, 1)])
        producer.send(topic, b"old").result(60)
        with running(broker, line, topic) as consumer:
            wait_until(lambda: own_groups(barnabas))
            producer.send(topic, b"r1", partition=0).result(60)
            assert lines(consumer, 1 if is_from_now else 2)[-1] == "r1"
            (group,) = own_groups(barnabas)
            assert re.fullmatch(r"console-consumer-\d{1,5}", group)
            admin.create_partitions(topic, 3)
            wait_until(lambda: len(admin.describe_topics(topic)[0].partitions) == 3)
            with SyncProducer(broker.bootstrap_servers) as later:
                for number in range(3):
                    later.send(topic, b"new-%d" % number, partition=number).result(60)
            assert lines(consumer, 3) == ["new-0", "new-1", "new-2"]
            assert rest(consumer) == b""
        assert admin.list_group_offsets(group) == {}


@pytest.mark.parametrize("line", [OURS, KAFKAS])
def test_ux_2_a_property_says_where_an_own_group_begins(line: str, broker: Broker) -> None:
    with SyncProducer(broker.bootstrap_servers) as producer:
        producer.send("reset", b"old").result(60)
    line = f"{line} --consumer-property auto.offset.reset=earliest --max-messages 1"
    with running(broker, line, "reset") as consumer:
        assert lines(consumer, 1) == ["old"]
        assert consumer.wait(TIMEOUT_S) == 0


@pytest.mark.parametrize("options", ["", "--group readers", "--partition 0"])
def test_ux_2_the_first_record_of_a_topic_that_it_waits_for_is_printed(
    options: str, broker: Broker
) -> None:
    topic = f"awaited-{len(options)}"
    asked = broker.faults.add(api="Metadata", topic=topic, client_id="console-consumer", delay_ms=1)
    with running(broker, f"{KAFKAS} {options}", topic) as consumer:
        asked.wait(2)
        with SyncProducer(broker.bootstrap_servers) as producer:
            producer.send(topic, b"first").result(60)
        assert lines(consumer, 1) == ["first"]
        assert rest(consumer) == b""
    asked.remove()


def test_ux_2_what_matches_a_pattern_later_is_printed_from_its_first_record(
    broker: Broker, barnabas: InProcess
) -> None:
    with SyncProducer(broker.bootstrap_servers) as producer:
        producer.send("matching-1", b"before").result(60)
        line = "kafka-console-consumer.sh --include matching-.* --bootstrap-server {at} " + SOON
        with running(broker, line, "") as consumer:
            wait_until(lambda: own_groups(barnabas))
            producer.send("matching-2", b"first").result(60)
            assert lines(consumer, 1) == ["first"]
            assert rest(consumer) == b""


def test_ux_2_a_topic_that_is_made_again_is_another_one(
    broker: Broker, barnabas: InProcess
) -> None:
    """Its records are read from the first; where the old one's reader was means nothing there."""
    with (
        SyncAdmin(broker.bootstrap_servers) as admin,
        SyncProducer(broker.bootstrap_servers) as producer,
    ):
        producer.send("again", b"old-0").result(60)
        with running(broker, f"{KAFKAS} --from-beginning {SOON}", "again") as consumer:
            assert lines(consumer, 1) == ["old-0"]
            (group,) = own_groups(barnabas)
            admin.delete_topics("again")
            wait_until(lambda: not admin.describe_groups(group)[group].members[0].partitions)
            admin.create_topics([NewTopic("again", 1)])
            with SyncProducer(broker.bootstrap_servers) as later:
                later.send("again", b"new-0").result(60)
            assert lines(consumer, 1) == ["new-0"]
            assert rest(consumer) == b""
