"""PR-7, CO-6: transactions of librdkafka and of the Java client, in the version that came with
Kafka 3.9 and in the newest, as each other sees them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import barnabas
from barnabas.client import NewTopic, SyncAdmin
from barnabas.types import TopicPartition
from tests.conformance.transactional_clients import (
    CLIENTS,
    SESSION_MS,
    TransactionalClient,
    java_measure,
    java_newest,
)
from tests.kit.clients.clients import Refused
from tests.kit.waiting import wait_until

if TYPE_CHECKING:
    from barnabas.testing.embedded.broker import Broker

INVALID_PRODUCER_EPOCH, PRODUCER_FENCED = 47, 90
UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION = 25, 22
FENCED = (INVALID_PRODUCER_EPOCH, PRODUCER_FENCED)
PARTITIONS = 3

pytestmark = [pytest.mark.slow, pytest.mark.foreign, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """One that looks often for transactions that have taken too long."""
    config = {
        "group.initial.rebalance.delay.ms": "0",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    }
    with barnabas.Broker(config=config) as running:
        yield running


@pytest.fixture(scope="module", autouse=True)
def _processes() -> Iterator[None]:
    yield
    for client in (java_measure, java_newest):
        client.process.close()


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name)
def client(request: pytest.FixtureRequest) -> TransactionalClient:
    chosen: TransactionalClient = request.param
    return chosen


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest) -> str:
    """An empty topic of this test's own; its name serves as a transactional id, too."""
    name = "".join(each if each.isalnum() else "-" for each in request.node.name).strip("-")
    with SyncAdmin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(name, PARTITIONS)])
    return name


def filled(broker: Broker, client: TransactionalClient, topic: str, *values: bytes) -> str:
    """A topic beside that one, with these values in its first partition."""
    source = f"{topic}-source"
    with SyncAdmin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(source, 1)])
    client.init(broker.bootstrap_servers, "filler", source)
    client.begin("filler")
    client.send("filler", source, {0: list(values)})
    client.commit("filler")
    client.end("filler")
    return source


def offsets(broker: Broker, group: str, topic: str) -> int | None:
    """What the group has committed for the topic's first partition."""
    with SyncAdmin(broker.bootstrap_servers) as admin:
        committed = admin.list_group_offsets(group).get(TopicPartition(topic, 0))
    return None if committed is None else committed.offset


def test_pr_7_all_readers_see_exactly_what_was_committed(
    broker: Broker, client: TransactionalClient, topic: str
) -> None:
    servers = broker.bootstrap_servers
    client.init(servers, "producer", topic)
    expected: dict[int, list[bytes]] = {number: [] for number in range(PARTITIONS)}
    for turn in range(12):
        values = {
            number: [b"%d.%d" % (turn, one) for one in range(1 + turn % 4)]
            for number in range(PARTITIONS)
            if (turn + number) % 3
        }
        client.begin("producer")
        client.send("producer", topic, values)
        if turn % 3 == 1:
            client.abort("producer")
        else:
            client.commit("producer")
            for number, sent in values.items():
                expected[number] += sent
    client.end("producer")
    for reader in CLIENTS:
        assert reader.committed(servers, topic) == expected, reader.name
    count = sum(map(len, expected.values()))
    print(f"{count} records of committed transactions of {client.name}, seen by all alike")


def test_pr_7_an_open_transaction_holds_back_what_is_behind_it(
    broker: Broker, client: TransactionalClient, topic: str
) -> None:
    servers = broker.bootstrap_servers
    client.init(servers, "slow", f"{topic}-slow")
    client.init(servers, "quick", f"{topic}-quick")
    client.begin("slow")
    client.send("slow", topic, {0: [b"slow"]})
    client.begin("quick")
    client.send("quick", topic, {0: [b"quick"], 1: [b"elsewhere"]})
    client.commit("quick")
    for reader in CLIENTS:
        assert reader.committed(servers, topic) == {1: [b"elsewhere"]}, reader.name
    client.commit("slow")
    for reader in CLIENTS:
        seen = reader.committed(servers, topic)
        assert seen == {0: [b"slow", b"quick"], 1: [b"elsewhere"]}, reader.name
    client.end("slow")
    client.end("quick")


def test_pr_7_a_producer_is_fenced_by_the_next_with_its_id(
    broker: Broker, client: TransactionalClient, topic: str
) -> None:
    """What it had open is aborted; it gets the error that it was fenced, and changes nothing."""
    servers = broker.bootstrap_servers
    client.init(servers, "first", topic)
    client.begin("first")
    client.send("first", topic, {0: [b"first"]})
    client.init(servers, "second", topic)
    client.begin("second")
    client.send("second", topic, {0: [b"second"]})
    with pytest.raises(Refused) as refused:
        client.commit("first")
    assert refused.value.code in FENCED
    client.commit("second")
    for reader in CLIENTS:
        assert reader.committed(servers, topic) == {0: [b"second"]}, reader.name
    client.end("first")
    client.end("second")


def test_pr_7_a_fenced_producer_writes_nothing(
    broker: Broker, client: TransactionalClient, topic: str
) -> None:
    """It had nothing open when it was fenced, and finds out when it writes."""
    servers = broker.bootstrap_servers
    client.init(servers, "first", topic)
    client.begin("first")
    client.send("first", topic, {0: [b"before"]})
    client.commit("first")
    client.init(servers, "second", topic)
    client.begin("first")
    with pytest.raises(Refused) as refused:
        client.send("first", topic, {0: [b"after"]})
        client.commit("first")
    assert refused.value.code in FENCED
    for reader in CLIENTS:
        assert reader.committed(servers, topic) == {0: [b"before"]}, reader.name
    client.end("first")
    client.end("second")


def test_pr_7_a_transaction_that_takes_too_long_is_aborted(
    broker: Broker, client: TransactionalClient, topic: str
) -> None:
    """By the coordinator, whose next epoch fences the producer."""
    servers = broker.bootstrap_servers
    client.init(servers, "late", topic, timeout_ms=5_000)  # enough for what is sent before
    client.begin("late")
    client.send("late", topic, {0: [b"late"]})
    with SyncAdmin(servers) as admin:
        wait_until(
            lambda: (
                {each.transactional_id: each.state for each in admin.list_transactions()}[topic]
                == "CompleteAbort"
            )
        )
    with pytest.raises(Refused) as refused:
        client.commit("late")
    assert refused.value.code in FENCED
    client.end("late")
    client.init(servers, "next", topic)
    client.begin("next")
    client.send("next", topic, {0: [b"next"]})
    client.commit("next")
    for reader in CLIENTS:
        assert reader.committed(servers, topic) == {0: [b"next"]}, reader.name
    client.end("next")


def test_co_6_offsets_are_part_of_the_transaction(
    broker: Broker, client: TransactionalClient, topic: str
) -> None:
    """Aborted with it, and what was read is read again; committed with it, and it is not."""
    servers, group = broker.bootstrap_servers, f"{topic}-group"
    inputs = [b"a", b"b", b"c", b"d", b"e"]
    source = filled(broker, client, topic, *inputs)
    for commits in (False, True):
        client.init(servers, "copier", topic)
        assert client.read("copier", group, source, len(inputs)) == inputs
        client.begin("copier")
        client.send("copier", topic, {0: [value.upper() for value in inputs]})
        client.send_offsets("copier")
        assert offsets(broker, group, source) is None, "pending"
        client.commit("copier") if commits else client.abort("copier")
        client.end("copier")
    assert offsets(broker, group, source) == len(inputs)
    for reader in CLIENTS:
        assert reader.committed(servers, topic) == {0: [b"A", b"B", b"C", b"D", b"E"]}, reader.name


def test_co_6_a_member_of_an_old_generation_commits_nothing(
    broker: Broker, client: TransactionalClient, topic: str
) -> None:
    """KIP-447: the group's metadata fence a member that no longer owns what it read."""
    servers, group = broker.bootstrap_servers, f"{topic}-group"
    source = filled(broker, client, topic, b"a", b"b")
    client.init(servers, "zombie", f"{topic}-zombie")
    client.read("zombie", group, source, 2, SESSION_MS)
    client.begin("zombie")
    client.send("zombie", topic, {0: [b"zombie"]})
    client.init(servers, "owner", f"{topic}-owner")
    client.read("owner", group, source, 2, SESSION_MS)
    client.begin("owner")
    client.send("owner", topic, {0: [b"owner"]})
    client.send_offsets("owner")
    client.commit("owner")
    with pytest.raises(Refused) as refused:
        client.send_offsets("zombie")
    assert refused.value.code in (UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION)
    client.abort("zombie")
    for reader in CLIENTS:
        assert reader.committed(servers, topic) == {0: [b"owner"]}, reader.name
    client.end("zombie")
    client.end("owner")
