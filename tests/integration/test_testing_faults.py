"""TK-4: fault rules of an embedded broker, as the clients in use meet them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from typing import Any

import aiokafka
import confluent_kafka
import kafka
import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from barnabas import Broker
from barnabas.errors import ConfigError, FetchSessionIdNotFound, KafkaStorageError
from barnabas.protocol.api import FETCH, PRODUCE
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.testing.faults import RuleNotHit
from tests.kit.broker.fetches import fetch_request, only
from tests.kit.broker.produces import produce_request
from tests.kit.raw_client import RawClient, batch

RETRIES = {"retry.backoff.ms": 10, "reconnect.backoff.ms": 10, "linger.ms": 0, "log_level": 0}


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def broker(shared: Broker) -> Iterator[Broker]:
    """The rules of one test are not those of the next."""
    yield shared
    shared.faults.clear()


def confluent(broker: Broker, **more: Any) -> confluent_kafka.Producer:
    given = {"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True}
    return confluent_kafka.Producer({**given, **RETRIES, **more})


def sent(producer: confluent_kafka.Producer, topic: str, value: bytes) -> list[Any]:
    """The outcomes that were reported: one, if all is well."""
    outcomes: list[Any] = []
    producer.produce(topic, value, on_delivery=lambda error, _: outcomes.append(error))
    assert producer.flush(20) == 0
    return outcomes


def test_tk_4_confluent_delivers_once_what_was_refused_three_times(broker: Broker) -> None:
    orders = broker.topic("refused")
    producer = confluent(broker)
    assert sent(producer, "refused", b"before") == [None]  # so that the next one is a repetition
    assert sent(producer, "refused", b"too") == [None]
    add = broker.faults.add
    with add(api="Produce", topic="refused", error="NOT_LEADER_OR_FOLLOWER", count=3) as rule:
        assert sent(producer, "refused", b"one") == [None]
        assert rule.hits == 3 and rule.is_spent
    assert orders.values() == [b"before", b"too", b"one"]
    assert broker.faults.rules == ()


def test_tk_4_confluent_delivers_once_where_the_answer_was_lost(broker: Broker) -> None:
    with broker.faults.add(api="Produce", topic="lost", drop=True, count=1) as rule:
        assert sent(confluent(broker), "lost", b"one") == [None]
        rule.wait(hits=1)
    assert broker.topic("lost").values() == [b"one"]


def test_tk_4_aiokafka_delivers_once_where_the_answer_was_lost(broker: Broker) -> None:
    async def send() -> int:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap_servers,
            enable_idempotence=True,
            retry_backoff_ms=10,
        )
        async with producer:
            await producer.send_and_wait("aio", b"before", partition=0)
            with broker.faults.add(api="Produce", topic="aio", drop=True, count=1) as rule:
                await producer.send_and_wait("aio", b"one", partition=0)
                return rule.hits

    assert asyncio.run(send()) == 1
    assert broker.topic("aio").values() == [b"before", b"one"]


def test_tk_4_kafka_python_delivers_once_over_a_connection_that_is_cut(broker: Broker) -> None:
    producer = kafka.KafkaProducer(
        bootstrap_servers=broker.bootstrap_servers,
        enable_idempotence=True,
        retries=5,
        retry_backoff_ms=10,
        reconnect_backoff_ms=10,
    )
    with broker.faults.add(api="Produce", topic="cut", cut=True, count=2) as rule:
        producer.send("cut", b"one", partition=0).get(timeout=20)
        assert rule.hits == 2
    producer.close()
    assert broker.topic("cut").values() == [b"one"]


def test_tk_4_our_producer_delivers_once_and_in_order(broker: Broker) -> None:
    topic = broker.topic("ours")
    with broker.faults.add(api="Produce", topic="ours", drop=True, count=1, after=1) as rule:
        with broker.producer(retry_backoff_ms=10) as producer:
            for number in range(3):
                producer.send("ours", b"%d" % number, partition=0)
            producer.flush()
            producer.send("ours", b"3", partition=0).result(20)
        assert rule.hits == 1
    assert topic.values() == [b"0", b"1", b"2", b"3"]


def test_tk_4_a_delay_keeps_the_order_of_a_connection(broker: Broker) -> None:
    producer = confluent(broker, **{"batch.num.messages": 1})
    assert sent(producer, "slow", b"first") == [None]
    with broker.faults.add(api="Produce", topic="slow", delay_ms=200, count=1) as rule:
        began_s = time.monotonic()
        for number in range(4):
            producer.produce("slow", b"%d" % number, partition=0)
        assert producer.flush(20) == 0
        assert time.monotonic() - began_s >= 0.2
        assert rule.hits == 1
    assert broker.topic("slow").values() == [b"first", b"0", b"1", b"2", b"3"]


def test_tk_4_a_consumer_reads_on_behind_errors_of_its_topic_alone(broker: Broker) -> None:
    broker.topic("bad").send(b"bad")
    broker.topic("good").send(b"good")
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "reader",
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.subscribe(["bad", "good"])
    rule = broker.faults.add(api="Fetch", topic="bad", error="NOT_LEADER_OR_FOLLOWER")
    values = [read(consumer)]
    rule.wait(hits=2)
    assert values == [b"good"]
    rule.remove()
    values.append(read(consumer))
    consumer.close()
    assert values == [b"good", b"bad"]


def test_tk_4_a_rule_for_a_topic_is_hit_in_spite_of_a_fetch_session(broker: Broker) -> None:
    broker.topic("session").send(b"one")
    begin = copy_of(fetch_request("session"), session_epoch=0)
    with RawClient(broker.bootstrap_servers) as client:
        session_id = client.call(FETCH, 12, begin).session_id
        assert session_id > 0
        rule = broker.faults.add(api="Fetch", topic="session", error="KAFKA_STORAGE_ERROR")
        # It names no partition, so nobody knows whether the rule is about it.
        again = copy_of(begin, session_id=session_id, session_epoch=1, topics=[])
        assert client.call(FETCH, 12, again).error_code == FetchSessionIdNotFound.code
        assert rule.hits == 0
        answer = client.call(FETCH, 12, begin)
        assert (answer.session_id, only(answer).error_code) == (0, KafkaStorageError.code)
        rule.remove()
        assert client.call(FETCH, 12, begin).session_id > 0


def copy_of(request: FetchRequest, **changed: Any) -> FetchRequest:
    values = {made.name: getattr(request, made.name) for made in request.fields}
    return FetchRequest(**(values | changed))


def read(consumer: confluent_kafka.Consumer) -> bytes | None:
    ends_at_s = time.monotonic() + 20
    while time.monotonic() < ends_at_s:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            value: bytes | None = message.value()
            return value
    raise AssertionError("no record within 20 s")


def test_tk_4_a_group_survives_a_coordinator_that_moves(broker: Broker) -> None:
    broker.topic("grouped").send(b"one")
    moved = broker.faults.add(api="OffsetCommit", error="NOT_COORDINATOR", count=2)
    beats = broker.faults.add(api="JoinGroup", error="COORDINATOR_LOAD_IN_PROGRESS", count=1)
    with broker.consumer("grouped", group_id="moved", auto_offset_reset="earliest") as consumer:
        while not consumer.poll(timeout_ms=1000):
            pass
        consumer.commit_sync()
    assert (moved.hits, beats.hits) == (2, 1)
    assert broker.group("moved").offsets()


TRANSIENT = {
    "FindCoordinator": "COORDINATOR_NOT_AVAILABLE",
    "InitProducerId": "COORDINATOR_LOAD_IN_PROGRESS",
    "Metadata": "LEADER_NOT_AVAILABLE",
    "AddPartitionsToTxn": "CONCURRENT_TRANSACTIONS",
    "Produce": "KAFKA_STORAGE_ERROR",
    "AddOffsetsToTxn": "COORDINATOR_LOAD_IN_PROGRESS",
    "TxnOffsetCommit": "COORDINATOR_LOAD_IN_PROGRESS",
    "EndTxn": "NOT_COORDINATOR",
}


def test_tk_4_each_step_of_a_transaction_is_tried_again(broker: Broker) -> None:
    topic = broker.topic("transaction")
    rules = {
        api: broker.faults.add(api=api, error=error, count=1) for api, error in TRANSIENT.items()
    }
    producer = confluent(broker, **{"transactional.id": "retried", "acks": "all"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("transaction", b"one", partition=0)
    group = confluent_kafka.Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "txn", "log_level": 0}
    )
    place = confluent_kafka.TopicPartition("transaction", 0, 7)
    producer.send_offsets_to_transaction([place], group.consumer_group_metadata(), 30)
    producer.commit_transaction(30)
    group.close()
    assert {api: rule.hits for api, rule in rules.items()} == dict.fromkeys(TRANSIENT, 1)
    broker.faults.clear()
    assert topic.values(isolation_level="read_committed") == [b"one"]


def test_tk_4_administrators_get_the_errors_that_rules_say(broker: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    add = broker.faults.add
    add(api="CreateTopics", topic="refused-topic", error="TOPIC_AUTHORIZATION_FAILED")
    add(api="DescribeConfigs", topic="configured", error="TOPIC_AUTHORIZATION_FAILED")
    add(api="ListGroups", error="COORDINATOR_LOAD_IN_PROGRESS")
    broker.topic("configured")
    wanted = [NewTopic("refused-topic", 1, 1), NewTopic("made-topic", 1, 1)]
    made = admin.create_topics(wanted)
    made["made-topic"].result(20)
    described = admin.describe_configs([ConfigResource("topic", "configured")])
    groups = admin.list_consumer_groups().result(20)
    assert code_of(made["refused-topic"]) == "TOPIC_AUTHORIZATION_FAILED"
    assert [code_of(each) for each in described.values()] == ["TOPIC_AUTHORIZATION_FAILED"]
    assert [each.name() for each in groups.errors] == ["COORDINATOR_LOAD_IN_PROGRESS"]


def code_of(outcome: Any) -> str:
    with pytest.raises(confluent_kafka.KafkaException) as raised:
        outcome.result(20)
    name: str = raised.value.args[0].name()
    return name


def test_tk_4_a_rule_is_narrowed_to_a_client(broker: Broker) -> None:
    rule = broker.faults.add(api="Metadata", client_id="other", cut=True)
    assert sent(confluent(broker, **{"client.id": "this"}), "narrow", b"one") == [None]
    assert rule.hits == 0
    with pytest.raises(RuleNotHit, match="was hit 0 times"):
        rule.wait(timeout_s=0.05)


def test_tk_4_produce_without_answers_loses_its_connection(broker: Broker) -> None:
    topic = broker.topic("acks0")
    request = produce_request("acks0", {0: batch(b"refused")}, acks=0)
    broker.faults.add(api="Produce", topic="acks0", error="KAFKA_STORAGE_ERROR")
    with RawClient(broker.bootstrap_servers) as client:
        client.send(PRODUCE, 9, request)
        assert client.is_closed_by_peer()
    assert topic.values() == []


def test_tk_4_rules_outlive_a_restart() -> None:
    broker = Broker()
    rule = broker.faults.add(api="Produce", cut=True, count=1)
    with broker:
        assert sent(confluent(broker), "again", b"one") == [None]
        assert rule.hits == 1
        second = broker.faults.add(api="Produce", cut=True, count=1)
        broker.stop()
        broker.start()
        assert sent(confluent(broker), "again", b"two") == [None]
        assert second.hits == 1
        assert broker.topic("again").values() == [b"one", b"two"]


def test_tk_4_a_full_disk_stops_the_broker_and_loses_nothing_acknowledged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Broker() as broker:
        assert sent(confluent(broker), "disk", b"kept") == [None]
        with caplog.at_level(logging.CRITICAL), broker.faults.disk(full=True):
            producer = confluent(broker, **{"message.timeout.ms": 1500})
            assert [error is None for error in sent(producer, "disk", b"refused")] == [False]
            with pytest.raises(OSError, match="all log directories have failed"):
                broker.stop()
        broker.start()
        assert broker.topic("disk").values() == [b"kept"]


def test_tk_4_a_slow_disk_delays_and_loses_nothing(broker: Broker) -> None:
    producer = confluent(broker)
    assert sent(producer, "slow-disk", b"before") == [None]
    with broker.faults.disk(delay_ms=150):
        began_s = time.monotonic()
        assert sent(producer, "slow-disk", b"one") == [None]
        assert time.monotonic() - began_s >= 0.15
    assert broker.topic("slow-disk").values() == [b"before", b"one"]


def test_tk_4_the_clock_is_moved_and_stands_still(broker: Broker) -> None:
    stamped = {"message.timestamp.type": "LogAppendTime"}
    topic = broker.topic("clock", config=stamped)
    with broker.faults.clock(frozen=True, offset_ms=-86_400_000):
        first, second = topic.send(b"1"), topic.send(b"2")
    third = topic.send(b"3")
    times = [record.timestamp_ms for record in topic.records()]
    assert (first.offset, second.offset, third.offset) == (0, 1, 2)
    assert times[0] == times[1]
    assert times[2] - times[1] >= 86_400_000


def test_tk_4_what_can_do_nothing_is_refused(broker: Broker) -> None:
    for spoil, reason in (
        (lambda: broker.faults.disk(), "does nothing"),
        (lambda: broker.faults.disk(error="EOI"), "did you mean EIO?"),
        (lambda: broker.faults.disk(full=True, error="EIO"), "set only one of them"),
        (lambda: broker.faults.clock(), "does nothing"),
        (lambda: broker.faults.add(api="Produce", cut=True, broker=7), "the brokers are 0"),
        (lambda: broker.faults.disk(full=True, broker=7), "the brokers are 0"),
    ):
        with pytest.raises(ConfigError, match=reason):
            spoil()
