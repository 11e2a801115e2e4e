"""MX-5: `barnabas copy` copies a real KRaft cluster, and is killed while it does."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from barnabas.client import NewTopic, SyncAdmin, SyncProducer
from tests.kit.clients.kraft_process import KraftProcess, kraft_process
from tests.kit.processes.broker_process import COMMAND, BrokerProcess, broker_process

pytestmark = [pytest.mark.slow, pytest.mark.foreign, pytest.mark.timeout(600)]

KRAFT = ("log.cleaner.backoff.ms=200", "log.retention.ms=-1")
OURS = ("log.retention.ms=-1",)
SECONDS = 240
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
LONG_AGO_MS = 1_600_000_000_000

Record = tuple[int, Any, Any, Any, Any]
"""Timestamp type, timestamp, key, value, headers."""


@pytest.fixture
def kraft(tmp_path: Path) -> Iterator[KraftProcess]:
    with kraft_process(tmp_path / "kraft", *KRAFT) as process:
        yield process


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[BrokerProcess]:
    (tmp_path / "ours").mkdir()
    with broker_process(tmp_path / "ours", *OURS) as process:
        yield process


class Copying:
    """The command line between two clusters."""

    def __init__(self, source: str, target: str) -> None:
        self.source, self.target = source, target

    def words(self, verb: str, *more: str) -> list[str]:
        return [str(COMMAND), "copy", verb, "--from", self.source, "--to", self.target, *more]

    def run(self, verb: str, *more: str, code: int = 0) -> str:
        done = subprocess.run(
            self.words(verb, *more), capture_output=True, text=True, timeout=SECONDS
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def start(self, verb: str, *more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.words(verb, *more), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )


def everything(servers: str, topic: str, partitions: int) -> list[list[tuple[int, Record]]]:
    """All committed records with their offsets, by partition, as librdkafka reads them."""
    settings: dict[str, Any] = {
        "bootstrap.servers": servers,
        "group.id": "unused",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
    }
    found: list[list[tuple[int, Record]]] = [[] for _ in range(partitions)]
    consumer = Consumer(settings)
    try:
        consumer.assign([TopicPartition(topic, n, OFFSET_BEGINNING) for n in range(partitions)])
        ended: set[int] = set()
        while len(ended) < partitions:
            message = consumer.poll(SECONDS)
            assert message is not None
            error, number = message.error(), message.partition()
            assert number is not None
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ended.add(number)
                continue
            offset = message.offset()
            assert offset is not None
            value = (message.key(), message.value(), message.headers())
            found[number].append((offset, (*message.timestamp(), *value)))
    finally:
        consumer.close()
    return found


def without_offsets(found: list[list[tuple[int, Record]]]) -> list[list[Record]]:
    return [[record for _, record in each] for each in found]


def produce_all_kinds(servers: str, topic: str, partitions: int, rounds: int = 1) -> None:
    """Every codec, keys, headers and nulls, batches of one record and of many."""
    for codec in CODECS:
        with SyncProducer(servers, compression_type=codec, linger_ms=20) as producer:
            for number in range(300 * rounds):
                headers = (("h", b"1"), ("n", None), ("h", b"\xff")) if number % 3 == 0 else ()
                producer.send(
                    topic,
                    None if number % 7 == 0 else f"{codec} {number}".encode() * (number % 40),
                    key=None if number % 5 == 0 else f"{number}".encode(),
                    partition=number % partitions,
                    timestamp_ms=LONG_AGO_MS + number * 1000 if number % 2 else None,
                    headers=headers,
                )
                if number % 100 == 50:
                    producer.flush()


def produce_transactions(servers: str, topic: str) -> None:
    """Committed and aborted ones in turn."""
    with SyncProducer(servers, transactional_id="writer") as producer:
        producer.init_transactions()
        for number in range(10):
            producer.begin_transaction()
            for each in range(20):
                producer.send(topic, f"{number}/{each}".encode(), partition=0)
            producer.flush()
            if number % 3 == 1:
                producer.abort_transaction()
            else:
                producer.commit_transaction()


def test_a_copy_has_every_record_once_although_it_is_killed(
    kraft: KraftProcess, ours: BrokerProcess
) -> None:
    """MX-5: killed with -9 in the midst, again and again, while records are still arriving."""
    copying = Copying(kraft.bootstrap_servers, ours.bootstrap_servers)
    with SyncAdmin(kraft.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("orders", 3, 1, {"max.message.bytes": "2000000"})])
    produce_all_kinds(kraft.bootstrap_servers, "orders", 3, rounds=4)
    produce_transactions(kraft.bootstrap_servers, "orders")
    kills = 0
    for wait_s in (0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5, 2.0):
        process = copying.start("run", "--follow", "--rate", "1")
        produce_all_kinds(kraft.bootstrap_servers, "orders", 3)
        time.sleep(wait_s)
        assert process.poll() is None, process.communicate()
        process.kill()
        process.communicate()
        kills += 1
    assert kills == 8
    assert "copied" in copying.run("run")
    assert "no differences" in copying.run("verify")
    theirs = without_offsets(everything(kraft.bootstrap_servers, "orders", 3))
    assert without_offsets(everything(ours.bootstrap_servers, "orders", 3)) == theirs
    assert sum(map(len, theirs)) == 5 * 300 * (4 + 8) + 7 * 20
    # There is nothing left to do, and a copy of a copy would be complete, too.
    assert "copied 0 records" in copying.run("run")
    assert "0 offsets left" in copying.run("status")
