"""What clients do to a cluster of both kinds of brokers, by confluent-kafka."""

from __future__ import annotations

from functools import partial
from uuid import uuid4

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as Place

from barnabas.client import NewTopic, SyncAdmin
from barnabas.client.admin.partition_admin import PREFERRED
from barnabas.types import TopicPartition
from tests.kit.clients import confluent_client
from tests.kit.clients.clients import Sent
from tests.kit.processes.mixed_cluster import PATIENCE_S, MixedCluster, described, restore_leaders
from tests.kit.processes.senders import ConfluentSender, Sender
from tests.kit.waiting import wait_until

QUIET = {"reconnect.backoff.max.ms": 200, "log_level": 0}


def make_topic(admin: SyncAdmin, stem: str, assignment: dict[int, list[int]]) -> str:
    topic = f"{stem}-{uuid4().hex[:6]}"
    admin.create_topics([NewTopic(topic, assignment=assignment)])
    wait_until(partial(is_led_as, admin, topic, {n: each[0] for n, each in assignment.items()}))
    return topic


def is_led_as(admin: SyncAdmin, topic: str, leaders: dict[int, int]) -> bool:
    found = {each.partition: each.leader for each in described(admin, topic).partitions}
    return found == leaders


def transact(producer: Producer, topic: str, values: list[bytes], *, commits: bool = True) -> None:
    producer.begin_transaction()
    send_all(producer, topic, values)
    assert producer.flush(PATIENCE_S) == 0
    end_transaction(producer, commits=commits)


def send_all(producer: Producer, topic: str, values: list[bytes]) -> None:
    for value in values:
        wait_until(partial(is_taken, producer, topic, value), PATIENCE_S)


def is_taken(producer: Producer, topic: str, value: bytes) -> bool:
    """librdkafka believes a Kafka that has just begun and knows of no topic yet."""
    try:
        producer.produce(topic, value, partition=0)
    except KafkaException as refused:
        if refused.args[0].code() != KafkaError._UNKNOWN_TOPIC:
            raise
        producer.list_topics(topic, PATIENCE_S)
        return False
    return True


def end_transaction(producer: Producer, *, commits: bool = True) -> None:
    end = producer.commit_transaction if commits else producer.abort_transaction

    def has_ended() -> bool:
        try:
            end(PATIENCE_S)
        except KafkaException as refused:
            if not refused.args[0].retriable():
                raise
            return False
        return True

    wait_until(has_ended, PATIENCE_S)


def transactional(servers: str, name: str) -> Producer:
    settings = {"bootstrap.servers": servers, "transactional.id": name, **QUIET}
    producer = Producer({**settings, "transaction.timeout.ms": 300_000})
    producer.init_transactions(PATIENCE_S)
    return producer


def read_in_group(servers: str, group: str, topic: str, count: int) -> list[bytes]:
    """The next `count` records of a group, which commits behind them."""
    settings = {"bootstrap.servers": servers, "group.id": group, "enable.auto.commit": False}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest", **QUIET})
    consumer.subscribe([topic])
    seen: list[bytes] = []

    def has_read() -> bool:
        for message in consumer.consume(count - len(seen), 0.2):
            if message.error() is None:
                seen.append(confluent_client.value_of(message))
        return len(seen) >= count

    try:
        wait_until(has_read, PATIENCE_S)
        [committed] = consumer.commit(
            offsets=[Place(topic, 0, consumer.position([Place(topic, 0)])[0].offset)],
            asynchronous=False,
        )
        assert committed.error is None
        return seen
    finally:
        consumer.close()


def warm_internal_topics(mixed: MixedCluster, admin: SyncAdmin) -> None:
    """Have both internal topics created, and led by their preferred replicas."""
    topic = make_topic(admin, "warm", {0: [2, 3, 1]})
    confluent_client.produce(mixed.bootstrap_servers, topic, [Sent(0, b"key", b"first")])
    read_in_group(mixed.bootstrap_servers, "warm", topic, 1)
    transactional(mixed.bootstrap_servers, "warm")
    restore_leaders(admin)


def lead(admin: SyncAdmin, topic: str, partition: int, broker_id: int) -> None:
    """Make this broker the preferred leader, and elect it."""
    name = TopicPartition(topic, partition)
    replicas = [broker_id, *({1, 2, 3} - {broker_id})]
    admin.alter_partition_reassignments({name: replicas})
    wait_until(lambda: not admin.list_partition_reassignments(), PATIENCE_S)

    def is_led() -> bool:
        admin.elect_leaders(PREFERRED, [name])
        return described(admin, topic).partitions[partition].leader == broker_id

    wait_until(is_led, PATIENCE_S)


def their_sender(servers: str, replicas: int) -> Sender:
    return ConfluentSender(servers, replicas, {"socket.timeout.ms": 5_000})
