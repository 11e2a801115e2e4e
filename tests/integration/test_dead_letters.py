"""SP-2: `barnabas dead-letters` counts what a pipeline could not use, and sends it again, once."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from barnabas import Broker
from barnabas.cli.main import main
from barnabas.client import ConsumerRecord, NewTopic, SyncAdmin, SyncConsumer, SyncProducer
from barnabas.types import TopicPartition
from tests.kit.processes.command_line import COMMAND
from tests.kit.raw_client import PATIENCE_S

PARTITIONS = 3


class Letters(NamedTuple):
    servers: str

    def send(self, first: int, last: int) -> None:
        with SyncProducer(self.servers) as producer:
            for number in range(first, last):
                headers = [
                    ("file.id", b"f"),
                    ("reason", b"odd" if number % 2 else b"even"),
                    ("source.topic", b"lines"),
                    ("source.partition", b"%d" % (number % PARTITIONS)),
                    ("source.offset", b"%d" % number),
                    ("query", b"q"),
                    ("batch", b"0"),
                ]
                value = b"%d" % number
                producer.send("dead", value, key=b"k", headers=headers, timestamp_ms=1_000 + number)

    def run(self, *words: str) -> int:
        return main(["dead-letters", *words, "--bootstrap-server", self.servers])

    def sent(self, topic: str = "lines") -> list[ConsumerRecord]:
        found: list[ConsumerRecord] = []
        with SyncConsumer(self.servers, isolation_level="read_committed") as consumer:
            places = [TopicPartition(topic, each) for each in consumer.partitions_for(topic)]
            consumer.assign(places)
            consumer.seek_to_beginning()
            ends = consumer.end_offsets(places)
            while any(consumer.position(place) < ends[place] for place in places):
                found += consumer.poll(1_000)
        return found


@pytest.fixture
def letters() -> Iterator[Letters]:
    with Broker() as broker:
        with SyncAdmin(broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("lines", PARTITIONS), NewTopic("dead", 1)])
            admin.create_topics([NewTopic("other", 1)])
        yield Letters(broker.bootstrap_servers)


def test_sp_2_each_is_sent_again_as_it_was(
    letters: Letters, capsys: pytest.CaptureFixture[str]
) -> None:
    letters.send(0, 9)
    assert letters.run("replay", "dead") == 0
    assert capsys.readouterr().out == "9 dead letters sent again to lines\n"
    sent = letters.sent()
    assert sorted(int(each.value or b"") for each in sent) == list(range(9))
    for each in sent:
        number = int(each.value or b"")
        assert (each.partition, each.key, each.timestamp_ms) == (
            *(number % PARTITIONS, b"k"),
            1_000 + number,
        )
        assert each.headers == (("file.id", b"f"), ("replayed", b"dead 0 %d" % number))


def test_only_what_came_since(letters: Letters, capsys: pytest.CaptureFixture[str]) -> None:
    letters.send(0, 4)
    assert letters.run("replay", "dead") == 0
    letters.send(4, 5)
    capsys.readouterr()
    assert letters.run("replay", "dead") == 0
    assert capsys.readouterr().out == "1 dead letter sent again to lines\n"
    assert letters.run("replay", "dead", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"letters": 0, "byTopic": {}}
    assert letters.run("replay", "dead") == 0
    assert "no new dead letters in dead since" in capsys.readouterr().out
    assert sorted(int(each.value or b"") for each in letters.sent()) == list(range(5))


def test_to_another_topic_with_fewer_partitions(letters: Letters) -> None:
    letters.send(0, 6)
    assert letters.run("replay", "dead", "--to", "other") == 0
    assert [each.value for each in letters.sent("other")] == [b"%d" % each for each in range(6)]
    assert letters.sent() == []


def test_reasons_are_counted(letters: Letters, capsys: pytest.CaptureFixture[str]) -> None:
    assert letters.run("list", "dead") == 0
    assert capsys.readouterr().out == "no dead letters in dead\n"
    letters.send(0, 5)
    assert letters.run("list", "dead") == 0
    assert capsys.readouterr().out == "        3  even\n        2  odd\n"
    assert letters.run("list", "dead", "--json") == 0
    assert json.loads(capsys.readouterr().out)[0] == {"reason": "even", "letters": 3}


def test_ux_4_a_record_that_is_no_dead_letter(
    letters: Letters, capsys: pytest.CaptureFixture[str]
) -> None:
    with SyncProducer(letters.servers) as producer:
        producer.send("dead", b"x")
    assert letters.run("replay", "dead") == 1
    assert "dead-0, offset 0: not a dead letter" in capsys.readouterr().err
    assert letters.run("replay", "unknown") == 1
    assert "unknown" in capsys.readouterr().err


@pytest.mark.slow
def test_sp_2_a_replay_that_is_killed_sends_each_once(letters: Letters) -> None:
    """SP-2: kill -9 at any moment; how far it got is committed with what it sent."""
    count = 150_000
    letters.send(0, count)
    command = [COMMAND, "dead-letters", "replay", "dead", "--bootstrap-server", letters.servers]
    kills = 0
    for _ in range(40):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            process.wait(0.4 + 0.02 * kills)
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
    else:  # a slow machine: no run got to the end in its time
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        process.wait(PATIENCE_S)
    assert process.returncode == 0 and kills > 2
    sent = letters.sent()
    assert sorted(int(each.value or b"") for each in sent) == list(range(count))
    for partition in range(PARTITIONS):
        own = [int(each.value or b"") for each in sent if each.partition == partition]
        assert own == sorted(own)
    print(f"{kills} kills")
