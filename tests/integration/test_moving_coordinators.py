"""GC-3, PR-7: coordinators that move away and come back while clients are at work lose nothing.

A shard is its partition in one leader epoch. Here both internal topics change their leader, away
and back, many times a second, as LeaderAndIsr would say it; what was acknowledged before is there
afterwards, and no client has to know of it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from barnabas import Broker
from barnabas.cluster.controller_requests import LeaderAndIsr, PartitionState
from barnabas.cluster.image import PartitionImage
from barnabas.cluster.layout import INTERNAL_TOPICS
from barnabas.types import TopicPartition as Name
from tests.kit.raw_client import PATIENCE_S
from tests.kit.waiting import wait_until

pytestmark = pytest.mark.secured

TOPIC = "worked"
SECONDS = 6.0  # at least: until there was enough of everything
PAUSE_S = 0.05
AWAY = 99  # a broker that is not there
OPTIONS = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
}


class Mover:
    """Moves every partition of the internal topics away and back."""

    def __init__(self, broker: Broker) -> None:
        self._node = broker.server.node
        self._loop = broker.thread.loop
        self._epoch = 1000
        self._stopping = threading.Event()
        self.moves = 0

    def run(self) -> None:
        while not self._stopping.wait(PAUSE_S):
            self._loop.call_soon_threadsafe(self._lead, AWAY)
            time.sleep(PAUSE_S / 10)
            self._loop.call_soon_threadsafe(self._lead, 0)
            self.moves += 1

    def stop(self) -> None:
        self._stopping.set()

    def _lead(self, leader: int) -> None:
        self._epoch += 1
        states = []
        for name in INTERNAL_TOPICS & set(self._node.image.topics):
            topic = self._node.image.topics[name]
            image = PartitionImage(leader, self._epoch, (leader,), (0,), 0, 1)
            states += [
                PartitionState(
                    Name(name, number), topic.topic_id, image, topic.config, is_new=False
                )
                for number in topic.partitions
            ]
        self._server.parts.role_changes.apply_leader_and_isr(LeaderAndIsr(0, 1, tuple(states)))


@contextmanager
def moving(broker: Broker) -> Iterator[Mover]:
    mover = Mover(broker)
    thread = threading.Thread(target=mover.run)
    thread.start()
    try:
        yield mover
    finally:
        mover.stop()
        thread.join(60)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_acknowledged_commits_survive_a_coordinator_that_moves_all_the_time() -> None:
    with Broker(config=OPTIONS) as broker:
        config = {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "movers",
            "enable.auto.commit": False,
            "log_level": 0,
        }
        Producer({"bootstrap.servers": broker.bootstrap_servers}).list_topics(TOPIC, 60)
        consumer = Consumer(config)
        place = TopicPartition(TOPIC, 0)
        consumer.assign([place])
        acknowledged = refused = 0
        ends_at = time.monotonic() + SECONDS
        with moving(broker) as mover:
            while time.monotonic() < ends_at or acknowledged <= 50 or mover.moves <= 20:
                offset = acknowledged + 1
                try:
                    consumer.commit(offsets=[TopicPartition(TOPIC, 0, offset)], asynchronous=False)
                except KafkaException:
                    refused += 1
                    continue
                acknowledged = offset
        [committed] = consumer.committed([place], 120)
        consumer.close()
        # A commit whose answer was lost may be there as well; the next one has the same offset.
        assert committed.offset in (acknowledged, acknowledged + 1)
        print(
            f"{mover.moves} moves of the coordinator, {acknowledged} commits acknowledged and kept"
        )


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_transactions_are_all_or_nothing_while_their_coordinator_moves() -> None:
    with Broker(config=OPTIONS) as broker:
        servers = broker.bootstrap_servers
        producer = Producer(
            {"bootstrap.servers": servers, "transactional.id": "moved", "log_level": 0}
        )
        producer.init_transactions(PATIENCE_S)
        committed: list[int] = []
        number = 0
        ends_at = time.monotonic() + SECONDS
        with moving(broker) as mover:
            while time.monotonic() < ends_at or len(committed) <= 5:
                number += 1
                if transact(producer, number):
                    committed.append(number)
        seen = read_committed(servers, len(committed) * 2)
        assert seen == [each for each in committed for _ in range(2)]
        print(f"{mover.moves} moves of the coordinator, {len(committed)} transactions each whole")


def transact(producer: Producer, number: int) -> bool:
    """Two records in one transaction; whether it was committed."""
    producer.begin_transaction()
    for _ in range(2):
        producer.produce(TOPIC, b"%d" % number, partition=0)
    is_commit = True
    while True:
        try:
            (producer.commit_transaction if is_commit else producer.abort_transaction)(30)
        except KafkaException as error:
            if error.args[0].retriable():
                continue
            assert is_commit and error.args[0].txn_requires_abort(), error
            is_commit = False
        else:
            return is_commit


def read_committed(servers: str, count: int) -> list[int]:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "reads",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    seen: list[int] = []

    def has_all() -> bool:
        seen.extend(int(each.value()) for each in consumer.consume(1000, 0.2) if not each.error())
        return len(seen) >= count

    try:
        wait_until(has_all)
        has_all()  # nothing more may come
        return seen
    finally:
        consumer.close()
