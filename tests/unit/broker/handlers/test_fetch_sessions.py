"""Fetch sessions on the wire (KIP-227): an answer holds what changed, and everybody has a turn."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from barnabas import Broker
from barnabas.errors import (
    FetchSessionIdNotFound,
    FetchSessionTopicIdError,
    InvalidFetchSessionEpoch,
    UnknownTopicOrPartition,
)
from barnabas.protocol.api import DELETE_TOPICS, FETCH, PRODUCE
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)
from tests.kit.broker.fetches import values
from tests.kit.broker.group_calls import node_of
from tests.kit.broker.produces import produce_request
from tests.kit.broker.topics import create, topic_id_of
from tests.kit.raw_client import AN_HOUR_MS, PATIENCE_S, RawClient, batch
from tests.kit.waiting import wait_until

VERSIONS = [7, 11, 12, 13, FETCH.max_version]


class Reader:
    """A client with a session: asks for what moved, and keeps the id and the epoch."""

    def __init__(self, client: RawClient, topic: str, version: int = 11) -> None:
        self.client = client
        self.version = version
        self.name = {"topic_id": topic_id_of(client, topic)} if version >= 13 else {"topic": topic}
        self.session_id = self.epoch = 0
        self.limits = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20}

    def request(self, offsets: dict[int, int], forget: tuple[int, ...] = ()) -> FetchRequest:
        wanted = [
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
            for index, offset in offsets.items()
        ]
        return FetchRequest(
            replica_id=-1,
            session_id=self.session_id,
            session_epoch=self.epoch,
            topics=[FetchTopic(partitions=wanted, **self.name)] if wanted else [],
            forgotten_topics_data=[ForgottenTopic(partitions=list(forget), **self.name)]
            if forget
            else [],
            **self.limits,
        )

    def ask(self, offsets: dict[int, int], forget: tuple[int, ...] = ()) -> dict[int, list]:  # type: ignore[type-arg]
        """Values by partition, of the partitions that the answer has."""
        answer = self.client.call(FETCH, self.version, self.request(offsets, forget))
        return self.took(answer)

    def took(self, answer: FetchResponse) -> dict[int, list]:  # type: ignore[type-arg]
        assert answer.error_code == 0
        assert answer.session_id
        self.session_id = answer.session_id
        self.epoch += 1
        return {
            partition.partition_index: partition.error_code or values(partition)
            for topic in answer.responses
            for partition in topic.partitions
        }

    def error(self, **fields: int) -> int:
        """The error of a request that differs in these fields."""
        asked = self.request({})
        for name, value in fields.items():
            setattr(asked, name, value)
        return self.client.call(FETCH, self.version, asked).error_code


def fill(client: RawClient, topic: str, records: dict[int, bytes]) -> None:
    answer = client.call(PRODUCE, 9, produce_request(topic, records))
    assert all(not each.error_code for each in answer.responses[0].partition_responses)


@pytest.fixture
def producer(node: Broker) -> Iterator[RawClient]:
    with RawClient(node.bootstrap_servers) as raw:
        yield raw


@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_holds_what_changed(
    client: RawClient, producer: RawClient, topic: str, version: int
) -> None:
    reader = Reader(client, topic, version)
    assert reader.ask({0: 0, 1: 0}) == {0: [], 1: []}, "the first answer has everything"
    assert reader.ask({}) == {}
    fill(producer, topic, {1: batch(b"a")})
    assert reader.ask({}) == {1: [b"a"]}
    assert reader.ask({1: 1}) == {}
    fill(producer, topic, {0: batch(b"b"), 1: batch(b"c")})
    assert reader.ask({}) == {0: [b"b"], 1: [b"c"]}


def test_bytes_that_were_not_acknowledged_by_a_new_offset_come_again(
    client: RawClient, producer: RawClient, topic: str
) -> None:
    reader = Reader(client, topic)
    fill(producer, topic, {0: batch(b"a")})
    assert [reader.ask({0: 0}), reader.ask({}), reader.ask({})] == [{0: [b"a"]}] * 3
    assert reader.ask({0: 1}) == {}


def test_a_long_poll_waits_for_the_session_s_partitions(
    client: RawClient, producer: RawClient, topic: str
) -> None:
    """CO-1"""
    reader = Reader(client, topic)
    reader.ask({0: 0, 1: 0})
    reader.limits["max_wait_ms"] = AN_HOUR_MS
    client.send(FETCH, 11, reader.request({}))
    time.sleep(0.05)
    fill(producer, topic, {1: batch(b"now")})
    assert reader.took(client.receive(FETCH, 11)[1]) == {1: [b"now"]}


def test_a_poll_without_news_is_empty_when_its_time_is_over(client: RawClient, topic: str) -> None:
    reader = Reader(client, topic)
    reader.ask({0: 0})
    reader.limits["max_wait_ms"] = 150
    began = time.monotonic()
    assert reader.ask({}) == {}
    assert time.monotonic() - began >= 0.14


def test_every_partition_has_its_turn(client: RawClient, producer: RawClient) -> None:
    """One batch fits into an answer, and no partition ever runs dry."""
    create(client, "turns", 4)
    one = batch(bytes(1000))
    for _ in range(3):
        fill(producer, "turns", dict.fromkeys(range(4), one))
    reader = Reader(client, "turns")
    reader.limits["max_bytes"] = len(one)
    got = reader.ask(dict.fromkeys(range(4), 0))
    first = [index for index, found in got.items() if found]
    assert len(got) == 4, "the first answer names all"
    offsets = dict.fromkeys(range(4), 0)
    order = first
    for _ in range(11):
        offsets[order[-1]] += 1
        (index,) = reader.ask({order[-1]: offsets[order[-1]]})
        order.append(index)
    assert sorted(order[:4]) == sorted(order[4:8]) == sorted(order[8:]) == [0, 1, 2, 3]


def test_forgotten_partitions_are_silent(
    client: RawClient, producer: RawClient, topic: str
) -> None:
    reader = Reader(client, topic)
    reader.ask({0: 0, 1: 0})
    assert reader.ask({}, forget=(1,)) == {}
    fill(producer, topic, {0: batch(b"a"), 1: batch(b"b")})
    assert reader.ask({}) == {0: [b"a"]}


def test_errors_are_in_every_answer_until_they_are_gone(client: RawClient, topic: str) -> None:
    reader = Reader(client, topic)
    reader.limits["max_wait_ms"] = AN_HOUR_MS
    unknown = UnknownTopicOrPartition.code
    assert reader.ask({0: 0, 7: 0}) == {0: [], 7: unknown}
    assert reader.ask({}) == {7: unknown}
    reader.limits["max_wait_ms"] = 0
    assert reader.ask({}, forget=(7,)) == {}


def test_a_topic_that_comes_later_is_listened_to(client: RawClient, producer: RawClient) -> None:
    reader = Reader(client, "later")
    assert reader.ask({0: 0}) == {0: UnknownTopicOrPartition.code}
    create(producer, "later", 1)
    assert reader.ask({}) == {0: []}
    reader.limits["max_wait_ms"] = AN_HOUR_MS
    client.send(FETCH, 11, reader.request({}))
    time.sleep(0.05)
    fill(producer, "later", {0: batch(b"now")})
    assert reader.took(client.receive(FETCH, 11)[1]) == {0: [b"now"]}


def test_a_waiting_client_learns_of_a_deleted_topic(
    client: RawClient, producer: RawClient, topic: str
) -> None:
    reader = Reader(client, topic)
    reader.ask({0: 0, 1: 0})
    reader.limits["max_wait_ms"] = AN_HOUR_MS
    client.send(FETCH, 11, reader.request({}))
    time.sleep(0.05)
    producer.call(DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=[topic], timeout_ms=60_000))
    answered = reader.took(client.receive(FETCH, 11)[1])
    assert set(answered.values()) == {UnknownTopicOrPartition.code}


def test_ids_epochs_and_the_change_to_topic_ids_are_checked(client: RawClient, topic: str) -> None:
    reader = Reader(client, topic)
    assert reader.error(session_id=424242, session_epoch=1) == FetchSessionIdNotFound.code
    reader.ask({0: 0})
    assert reader.error(session_epoch=2) == InvalidFetchSessionEpoch.code
    reader.version = 13
    assert reader.error() == FetchSessionTopicIdError.code
    reader.version = 11
    assert reader.ask({}) == {}, "refusals leave the session as it was"


def test_a_full_request_ends_the_session_that_it_names(client: RawClient, topic: str) -> None:
    for epoch, begins in ((0, True), (-1, False)):
        reader = Reader(client, topic)
        reader.ask({0: 0})
        old = reader.session_id
        asked = reader.request({0: 0})
        asked.session_epoch = epoch
        answer = client.call(FETCH, 11, asked)
        assert bool(answer.session_id) is begins
        assert answer.session_id != old
        assert reader.error(session_id=old) == FetchSessionIdNotFound.code


def test_the_answer_to_a_request_that_was_overtaken_is_an_error(
    node: Broker, client: RawClient, topic: str
) -> None:
    """Two connections on one session: the first waits, the second has moved it on."""
    reader = Reader(client, topic)
    reader.ask({0: 0})
    reader.limits["max_wait_ms"] = AN_HOUR_MS
    (session,) = (
        each for each in node_of(node).fetch_sessions if each.session_id == reader.session_id
    )
    client.send(FETCH, 11, reader.request({}))
    wait_until(lambda: session.epoch > reader.epoch)
    reader.limits["max_wait_ms"] = 0
    reader.epoch += 1
    with RawClient(node.bootstrap_servers) as other:
        other.call(FETCH, 11, reader.request({}))
    assert client.receive(FETCH, 11)[1].error_code == InvalidFetchSessionEpoch.code


def test_without_slots_sessions_are_declined(topic: str) -> None:
    slots = {"max.incremental.fetch.session.cache.slots": "1"}
    with Broker(config=slots) as small, RawClient(small.bootstrap_servers) as raw:
        create(raw, "t")
        first, second = Reader(raw, "t"), Reader(raw, "t")
        first.ask({0: 0})
        assert raw.call(FETCH, 11, second.request({0: 0})).session_id == 0
        assert first.ask({}) == {}


def test_many_sessions_on_one_partition_all_hear_of_it(node: Broker, topic: str) -> None:
    got: list[dict[int, list]] = []  # type: ignore[type-arg]
    ready = threading.Barrier(9)

    def read() -> None:
        with RawClient(node.bootstrap_servers) as raw:
            reader = Reader(raw, topic)
            reader.ask({0: 0})
            reader.limits["max_wait_ms"] = AN_HOUR_MS
            raw.send(FETCH, 11, reader.request({}))
            ready.wait(PATIENCE_S)
            got.append(reader.took(raw.receive(FETCH, 11)[1]))

    readers = [threading.Thread(target=read) for _ in range(8)]
    for each in readers:
        each.start()
    ready.wait(PATIENCE_S)
    with RawClient(node.bootstrap_servers) as raw:
        fill(raw, topic, {0: batch(b"to all")})
    for each in readers:
        each.join(PATIENCE_S)
    assert got == [{0: [b"to all"]}] * 8
