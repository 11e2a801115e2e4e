"""DL-1, PR-7, CO-4: consume, transform, produce, with the offsets in the transaction.

The job is killed twenty times in the middle of its work, the broker among them four times. Its
output holds each input once, in order.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from barnabas.client import NewTopic, SyncAdmin
from tests.kit.processes.broker_process import broker_process
from tests.kit.waiting import wait_until

KILLS, BROKER_DIES_EVERY = 20, 5
PARTITIONS = 3
PER_LIFE = 2_000  # records that are new for each life of the job
SOURCE, TARGET, GROUP = "source", "target", "copiers"
OPTIONS = ("group.min.session.timeout.ms=500", "group.initial.rebalance.delay.ms=0")
LONGEST_LIFE_S = 0.1


@contextmanager
def job(servers: str) -> Iterator[subprocess.Popen[str]]:
    """A copy job that has begun; killed with -9 at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.integration.copy_job", servers, GROUP, SOURCE, TARGET],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "copying\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def produce(producer: Producer, first: int, count: int) -> None:
    for number in range(first, first + count):
        producer.produce(SOURCE, b"%d" % number, partition=number % PARTITIONS)
        producer.poll(0)
    assert producer.flush(120) == 0


class Output:
    """What a reader of committed records has seen of the target, by partition."""

    def __init__(self, servers: str) -> None:
        self.values: list[list[int]] = [[] for _ in range(PARTITIONS)]
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "looks",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        self._consumer.assign([TopicPartition(TARGET, n, 0) for n in range(PARTITIONS)])

    def count(self) -> int:
        for message in self._consumer.consume(1000, 0.2):
            if message.error() is None:
                self.values[message.partition()].append(int(message.value()))
        return sum(map(len, self.values))

    def close(self) -> None:
        self._consumer.close()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_copy_job_that_is_killed_twenty_times_copies_each_record_once(tmp_path: Path) -> None:
    random.seed(20)
    with broker_process(tmp_path, *OPTIONS) as broker:
        servers = broker.bootstrap_servers
        with SyncAdmin(servers) as admin:
            admin.create_topics([NewTopic(SOURCE, PARTITIONS), NewTopic(TARGET, PARTITIONS)])
        producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
        output = Output(servers)
        began_with = []
        sent = 0
        for life in range(1, KILLS + 1):
            produce(producer, sent, PER_LIFE)
            sent += PER_LIFE
            began_with.append(output.count())
            with job(servers):
                # It has joined, and is at work, when it has copied something.
                wait_until(lambda: output.count() > began_with[-1])
                time.sleep(random.uniform(0, LONGEST_LIFE_S))
                if life % BROKER_DIES_EVERY == 0:
                    broker.kill()
            if life % BROKER_DIES_EVERY == 0:
                broker.start()
        with job(servers):
            wait_until(lambda: output.count() >= sent)
            time.sleep(2)  # anything that comes now came twice
            output.count()
        output.close()
    cut_short = sum(1 for count in began_with if count % PER_LIFE)
    for partition, values in enumerate(output.values):
        assert values == list(range(partition, sent, PARTITIONS)), f"partition {partition}"
    assert cut_short > KILLS // 2, "the kills came after the work"
    print(
        f"{KILLS} kills of a copy job, {cut_short} in the middle of its records, {sent} copied once"
    )
