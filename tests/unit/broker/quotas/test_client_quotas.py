"""Quotas in force: throttle times in answers, and connections that are not read meanwhile.

Waiting is never measured by a clock of the test: the rates are so low that what must wait would
wait for minutes, and what must not is answered.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas import Broker
from barnabas.broker.quotas.client_quotas import Limits
from barnabas.broker.quotas.entity import Entity
from barnabas.errors import ThrottlingQuotaExceeded
from barnabas.protocol.api import (
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    FETCH,
    METADATA,
    PRODUCE,
)
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.kit.broker.fetches import fetch_request, only, values
from tests.kit.broker.produces import fill, produce_request
from tests.kit.broker.quota_calls import RAW, Parts, set_quotas
from tests.kit.broker.tls_broker import TlsRawClient, python_context, secured, tls_address
from tests.kit.broker.topics import create
from tests.kit.certificates import Authority
from tests.kit.raw_client import RawClient, batch

A_MINUTE_MS = 60_000


def send_too_much(client: RawClient, topic: str, acks: int = -1) -> int:
    """The throttle time of 20 KB at once."""
    request = produce_request(topic, {0: batch(bytes(20_000))}, acks)
    throttle_ms: int = client.call(PRODUCE, 9, request).throttle_time_ms
    return throttle_ms


@pytest.mark.parametrize(
    "entity",
    [
        {"client-id": "raw"},
        {"client-id": None},
        {"user": "ANONYMOUS"},
        {"user": None},
        {"user": "ANONYMOUS", "client-id": None},
    ],
    ids=str,
)
def test_se_5_a_producer_above_its_rate_is_told_and_muted(entity: Parts) -> None:
    with Broker() as broker, RawClient(broker.bootstrap_servers) as client:
        create(client, "t", 1)
        fill(client, "t", batch(b"learnt"), batch(b"repeated"))
        set_quotas(client, entity, producer_byte_rate=100.0)
        throttle_ms = send_too_much(client, "t")
        assert throttle_ms > A_MINUTE_MS
        client.send(METADATA, 9, MetadataRequest(topics=[]))
        with RawClient(broker.bootstrap_servers) as other:  # of the same quota, not muted yet
            assert other.call(METADATA, 9, MetadataRequest(topics=[])).brokers
            assert send_too_much(other, "t") > throttle_ms
        client.socket.settimeout(0.3)
        with pytest.raises(TimeoutError):
            client.receive(METADATA, 9)


def test_se_5_a_consumer_above_its_rate_gets_nothing_until_it_may() -> None:
    with Broker() as broker, RawClient(broker.bootstrap_servers) as client:
        create(client, "t", 1)
        fill(client, "t", *[batch(bytes(1_000))] * 20)
        set_quotas(client, {"client-id": "raw"}, consumer_byte_rate=1_000.0)
        first = client.call(FETCH, 11, fetch_request("t"))
        assert first.throttle_time_ms == 0
        assert 1 < len(values(only(first))) < 10
        second = client.call(FETCH, 11, fetch_request("t"))
        assert second.throttle_time_ms > 0
        assert second.responses == []


def test_se_5_partitions_are_created_and_deleted_within_the_quota() -> None:
    with Broker() as broker, RawClient(broker.bootstrap_servers) as client:
        set_quotas(client, {"client-id": "raw"}, controller_mutation_rate=0.01)

        def create(*names: str) -> list[int]:
            wanted = [
                CreatableTopic(name=name, num_partitions=3, replication_factor=1) for name in names
            ]
            request = CreateTopicsRequest(topics=wanted, timeout_ms=60_000)
            return [each.error_code for each in client.call(CREATE_TOPICS, 6, request).topics]

        assert create("a", "b") == [0, ThrottlingQuotaExceeded.code]
    with Broker() as broker, RawClient(broker.bootstrap_servers) as client:
        set_quotas(client, {"client-id": "raw"}, controller_mutation_rate=10_000.0)
        assert create("a", "b") == [0, 0]
        growth = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name="a", count=5)], timeout_ms=60_000
        )
        (grown,) = client.call(CREATE_PARTITIONS, 3, growth).results
        deletion = DeleteTopicsRequest(topic_names=["a"], timeout_ms=60_000)
        (deleted,) = client.call(DELETE_TOPICS, 5, deletion).responses
        assert (grown.error_code, deleted.error_code) == (0, 0)


def test_se_5_topics_created_on_first_use_count_and_are_not_refused() -> None:
    """TP-6: what the client creates next has to wait."""
    with Broker() as broker, RawClient(broker.bootstrap_servers) as client:
        set_quotas(client, RAW, controller_mutation_rate=0.01)
        for name in ("a", "b"):
            request = MetadataRequest(
                topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True
            )
            found = client.call(METADATA, 9, request)
            assert (found.throttle_time_ms, found.topics[0].error_code) == (0, 0)
        wanted = CreatableTopic(name="c", num_partitions=1, replication_factor=1)
        created = client.call(CREATE_TOPICS, 6, CreateTopicsRequest(topics=[wanted]))
        assert created.topics[0].error_code == ThrottlingQuotaExceeded.code


def test_se_5_a_connection_with_tls_is_muted_as_well(tmp_path: Path) -> None:
    files = Authority.make(tmp_path / "ca").server()
    with Broker(config=secured(files)) as broker:
        client = TlsRawClient(tls_address(broker), python_context(files, has_certificate=False))
        with client:
            create(client, "t", 1)
            set_quotas(client, RAW, producer_byte_rate=100.0)
            assert send_too_much(client, "t") > A_MINUTE_MS
            client.send(METADATA, 9, MetadataRequest(topics=[]))
            client.socket.settimeout(0.3)
            with pytest.raises(TimeoutError):
                client.receive(METADATA, 9)


def test_se_5_a_quota_that_is_removed_is_not_obeyed_any_more() -> None:
    with Broker() as broker, RawClient(broker.bootstrap_servers) as client:
        create(client, "t", 1)
        set_quotas(client, {"client-id": "raw"}, producer_byte_rate=100.0)
        set_quotas(client, {"client-id": "raw"}, producer_byte_rate=None)
        assert send_too_much(client, "t") == 0


def test_se_5_a_produce_without_an_answer_is_muted_as_well() -> None:
    with Broker() as broker, RawClient(broker.bootstrap_servers) as client:
        create(client, "t", 1)
        set_quotas(client, {"client-id": "raw"}, producer_byte_rate=100.0)
        client.send(PRODUCE, 9, produce_request("t", {0: batch(bytes(20_000))}, 0))
        client.send(METADATA, 9, MetadataRequest(topics=[]))
        client.socket.settimeout(0.3)
        with pytest.raises(TimeoutError):
            client.receive(METADATA, 9)


def test_se_5_time_at_the_broker_is_counted_and_its_throttle_is_a_window_at_most() -> None:
    with Broker() as broker, RawClient(broker.bootstrap_servers) as client:
        create(client, "t", 1)
        fill(client, "t", batch(b"v"))
        set_quotas(client, {"user": None}, request_percentage=0.000001)
        produced = client.call(PRODUCE, 9, produce_request("t", {0: batch(b"v")}))
        assert produced.throttle_time_ms == 1_000
        # Kafka sends a client that is above its time an empty answer.
        fetched = client.call(FETCH, 11, fetch_request("t"))
        assert (fetched.throttle_time_ms, fetched.responses) == (1_000, [])


def test_se_5_brokers_are_exempt() -> None:
    with Broker() as broker, RawClient(broker.bootstrap_servers) as client:
        create(client, "t", 1)
        fill(client, "t", batch(bytes(5_000)))
        set_quotas(client, {"user": None}, consumer_byte_rate=1.0, request_percentage=0.000001)
        with RawClient(broker.bootstrap_servers) as follower:
            answer = follower.call(FETCH, 11, fetch_request("t", replica_id=1))
            assert answer.throttle_time_ms == 0
            assert len(answer.responses) == 1


# --- which limit holds for a client, and with whom it is shared ----------------------------------

ALL = "<default>"

PLACES = [
    (Entity("u", "c"), Entity("u", "c")),
    (Entity("u", ALL), Entity("u", "c")),
    (Entity("u"), Entity("u")),
    (Entity(ALL, "c"), Entity("u", "c")),
    (Entity(ALL, ALL), Entity("u", "c")),
    (Entity(ALL), Entity("u")),
    (Entity("", "c"), Entity("", "c")),
    (Entity("", ALL), Entity("", "c")),
]
"""Kafka's order, and by whom the limit is shared."""


@pytest.mark.parametrize("strongest", range(len(PLACES)))
def test_se_5_the_most_specific_place_wins(strongest: int) -> None:
    limits = Limits()
    for number, (place, _) in enumerate(PLACES):
        if number >= strongest:
            limits.set(place, float(number))
    assert limits.of("u", "c") == (PLACES[strongest][1], float(strongest))


def test_se_5_without_a_matching_place_there_is_no_limit() -> None:
    limits = Limits()
    for place in (Entity("v", "c"), Entity("v"), Entity("", "d"), Entity(ALL, "d")):
        limits.set(place, 1.0)
    assert limits.of("u", "c") is None
    limits.set(Entity("u"), 5.0)
    limits.set(Entity("u"), None)
    assert limits.of("u", "c") is None


def test_se_5_a_client_without_an_id_has_the_limits_of_its_user_alone() -> None:
    limits = Limits()
    limits.set(Entity("", ALL), 1.0)
    limits.set(Entity("u", ALL), 2.0)
    assert limits.of("u", "") is None
    limits.set(Entity(ALL), 3.0)
    assert limits.of("u", "") == (Entity("u"), 3.0)
