"""IN-6: the actions of `barnabas console --write` in front of a real Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.client.admin.admin import TOPIC, ConfigResource, NewTopic
from barnabas.client.offsets import EARLIEST
from barnabas.client.sync.producer import SyncAdmin, SyncProducer
from barnabas.console import shapes
from barnabas.types import TopicPartition
from benchmarks import brokers
from tests.kit.console_actions import apply, error_of, make, preview
from tests.kit.processes.web_console import WebConsole, web_console
from tests.kit.waiting import wait_until

pytestmark = [pytest.mark.foreign, pytest.mark.slow, pytest.mark.timeout(600)]

SETTINGS = {
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 1,
    "min.insync.replicas": 1,
    "auto.leader.rebalance.enable": "false",
    # A follower fetches one large record at a time, so a throttle applies from the second one.
    "replica.fetch.max.bytes": 10_000,
}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Two brokers of Kafka's, 0 and 1."""
    with brokers.kafka_cluster(tmp_path_factory.mktemp("kafka"), 2, SETTINGS) as kafka:
        yield kafka.servers


@pytest.fixture(scope="module")
def admin(servers: str) -> Iterator[SyncAdmin]:
    with SyncAdmin(servers) as running:
        yield running


@pytest.fixture(scope="module")
def console(servers: str) -> Iterator[WebConsole]:
    with web_console(servers, "--write") as running:
        yield running


@pytest.fixture(scope="module")
def orders(servers: str, admin: SyncAdmin) -> str:
    """A topic on broker 0 whose two partitions have ten records each."""
    admin.create_topics([NewTopic("orders", assignment={0: [0], 1: [0]})])
    with SyncProducer(servers) as producer:
        for number in range(20):
            producer.send("orders", b"%d" % number, partition=number % 2)
    return "orders"


def refused(console: WebConsole, name: str, status: int, **fields: Any) -> str:
    return error_of(console.post(f"/api/actions/{name}/preview", fields), status)


def test_a_topic_is_created_grows_and_is_deleted(console: WebConsole, admin: SyncAdmin) -> None:
    fields = {"topic": "made", "partitions": 1, "replication_factor": 1}
    make(console, "create-topic", **fields, configs={"retention.ms": "1000"})
    wait_until(lambda: "made" in admin.list_topics())
    assert "'made' already exists" in refused(console, "create-topic", 409, **fields)
    many = {**fields, "topic": "more", "replication_factor": 9}
    assert "INVALID_REPLICATION_FACTOR" in refused(console, "create-topic", 422, **many)
    grown = make(console, "add-partitions", topic="made", partitions=3)
    assert grown == [("partitions", "1", "3")]
    wait_until(lambda: len(admin.describe_topics(["made"])[0].partitions) == 3)
    made = make(console, "delete-topic", topic="made", confirm="made")
    assert made == [("topic made", "3 partitions, 1 replica of each", None)]
    wait_until(lambda: "made" not in admin.list_topics())


def test_configs_are_set_and_taken_back(console: WebConsole, admin: SyncAdmin, orders: str) -> None:
    def value() -> str | None:
        return admin.describe_configs(ConfigResource(TOPIC, orders), ["retention.ms"])[0].value

    where = {"of": "topic", "topic": orders}
    default = value()
    assert make(console, "alter-configs", **where, set={"retention.ms": "7000000"}) == [
        ("retention.ms", f"{default} (default)", "7000000 (dynamic topic)")
    ]
    wait_until(lambda: value() == "7000000")
    make(console, "alter-configs", **where, delete=["retention.ms"])
    wait_until(lambda: value() == default)
    told = refused(console, "alter-configs", 422, **where, set={"retention.ms": "soon"})
    assert "INVALID_CONFIG" in told
    (change,) = make(console, "alter-configs", of="all brokers", set={"log.cleaner.threads": "2"})
    assert change == ("log.cleaner.threads", None, "2 (dynamic default broker)")


def test_a_record_is_produced_and_records_are_deleted(
    console: WebConsole, admin: SyncAdmin, orders: str
) -> None:
    name = TopicPartition(orders, 1)
    text = {"form": "text", "text": "new"}
    found = preview(
        console, "produce-record", topic=orders, partition=1, key={"form": "null"}, value=text
    )
    told = apply(console, "produce-record", found["token"]).json["sentences"][0]
    assert told == "The record is at offset 10 of partition 1."
    fields = {"topic": orders, "confirm": orders, "partition": 1, "before": 4}
    assert make(console, "delete-records", **fields) == [(str(name), "starts at 0", "starts at 4")]
    assert admin.list_offsets({name: EARLIEST})[name].offset == 4


def test_offsets_of_a_group_are_reset(console: WebConsole, admin: SyncAdmin, orders: str) -> None:
    name = TopicPartition(orders, 0)
    admin.alter_group_offsets("readers", {name: 5})
    assert make(console, "reset-offsets", group="readers", to="latest") == [(str(name), "5", "10")]
    assert admin.list_group_offsets("readers")[name].offset == 10
    assert "no group 'nope'" in refused(console, "reset-offsets", 404, group="nope", to="latest")


def test_the_preferred_leader_is_elected(console: WebConsole, admin: SyncAdmin) -> None:
    def leader() -> int:
        return admin.describe_topics(["led"])[0].partitions[0].leader

    admin.create_topics([NewTopic("led", assignment={0: [0, 1]})])
    wait_until(lambda: set(admin.describe_topics(["led"])[0].partitions[0].isr) == {0, 1})
    listed = [{"partition": 0, "brokers": [1, 0]}]
    assert make(console, "reassign-partitions", topic="led", replicas=listed) == [
        ("led-0", "0,1", "1,0")
    ]
    wait_until(lambda: admin.describe_topics(["led"])[0].partitions[0].replicas == (1, 0))
    assert leader() == 0
    assert make(console, "elect-leaders", of="topic", topic="led") == [
        ("led-0", "broker 0", "broker 1")
    ]
    wait_until(lambda: leader() == 1)


def test_partitions_are_reassigned_and_the_throttle_is_cleared(
    servers: str, console: WebConsole, admin: SyncAdmin
) -> None:
    name = TopicPartition("moving", 0)

    def replicas() -> tuple[int, ...]:
        return admin.describe_topics(["moving"])[0].partitions[0].replicas

    admin.create_topics([NewTopic("moving", assignment={0: [0]})])
    with SyncProducer(servers) as producer:
        for _ in range(4):
            producer.send("moving", b"x" * 50_000, partition=0)
    found = preview(console, "reassign-partitions", topic="moving", brokers=[1], bytes_per_s=1)
    assert [(each["before"], each["after"]) for each in found["changes"]] == [
        ("0", "1"),
        ("none", "1 byte/s"),
    ]
    assert found["changes"][0]["about"].startswith("adds 1, removes 0; copies 20")
    assert apply(console, "reassign-partitions", found["token"]).status == 200
    wait_until(lambda: console.ask("/api/topics/moving").status == 200)
    page: shapes.TopicPage = console.get("/api/topics/moving", shapes.TopicPage)
    assert page["moves"] == [{"partition": 0, "adding": [1], "removing": [0], "replicas": [1]}]
    told = refused(console, "reassign-partitions", 422, topic="moving", brokers=[1])
    assert "A partition reassignment is in progress for moving-0" in told
    assert make(console, "cancel-reassignment", topic="moving") == [
        ("moving-0", "1,0 (adds 1, removes 0)", "0")
    ]
    assert preview(console, "cancel-reassignment", topic="moving")["token"] == ""
    wait_until(lambda: replicas() == (0,))
    cleared = [each[0] for each in make(console, "clear-throttles", topic="moving")]
    assert "leader.replication.throttled.rate of broker 1" in cleared
    assert "follower.replication.throttled.replicas of topic moving" in cleared
    make(console, "reassign-partitions", topic="moving", brokers=[1])
    wait_until(lambda: replicas() == (1,) and not admin.list_partition_reassignments([name]))


@pytest.mark.parametrize("wanted", [[], [0, 0], [0, 9]])
def test_a_bad_assignment_is_refused_in_the_words_of_kafka(
    console: WebConsole, admin: SyncAdmin, orders: str, wanted: list[int]
) -> None:
    error = admin.alter_partition_reassignments({TopicPartition(orders, 0): wanted})[
        TopicPartition(orders, 0)
    ]
    assert error is not None
    replicas = [{"partition": 0, "brokers": wanted}]
    told = refused(console, "reassign-partitions", 422, topic=orders, replicas=replicas)
    assert f"({error.name})" in told
    # The words before any list, which Kafka prints as a Scala collection.
    assert str(error).partition(":")[0].rstrip(".") in told, error
