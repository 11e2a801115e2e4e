"""Foreign clients create, list, describe and delete topics, and ask for offsets.

What a broker must answer to each is TP-1 to TP-4's and CO-7's business; here it is that clients of
every age understand it.
"""

from __future__ import annotations

import pytest

import barnabas
from tests.conformance.clients import AdminClient, Client, PartitionSeen, Refused, Sent
from tests.conformance.test_exchange import CLIENTS, LIBRARIES

pytestmark = pytest.mark.foreign

UNKNOWN_TOPIC_OR_PARTITION = 3
INVALID_TOPIC_EXCEPTION = 17
TOPIC_ALREADY_EXISTS = 36
INVALID_CONFIG = 40

by_library = pytest.mark.parametrize("client", LIBRARIES, ids=lambda client: client.name)
by_client = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)


@by_library
def test_a_topic_is_created_as_asked_and_deleted(
    broker: barnabas.Broker, client: AdminClient
) -> None:
    """TP-1, TP-3"""
    servers, topic = broker.bootstrap_servers, f"created-by-{client.name}"
    client.create_topic(servers, topic, 3, {"retention.ms": "86400000"})
    assert topic in client.list_topics(servers)
    assert client.describe_topic(servers, topic) == [
        PartitionSeen(number, leader=0, replicas=(0,), isr=(0,)) for number in range(3)
    ]
    assert client.topic_config(servers, topic, "retention.ms") == "86400000"
    assert client.topic_config(servers, topic, "cleanup.policy") == "delete"
    client.delete_topic(servers, topic)
    assert topic not in client.list_topics(servers)


@by_library
def test_refusals_carry_the_codes_that_clients_know(
    broker: barnabas.Broker, client: AdminClient
) -> None:
    """TP-1, TP-3"""
    servers, topic = broker.bootstrap_servers, f"twice-{client.name}"
    client.create_topic(servers, topic, 1, {})
    for name, configs, code in (
        (topic, {}, TOPIC_ALREADY_EXISTS),
        ("no/slash", {}, INVALID_TOPIC_EXCEPTION),
        (f"bad-{client.name}", {"retention.ms": "soon"}, INVALID_CONFIG),
    ):
        with pytest.raises(Refused) as refused:
            client.create_topic(servers, name, 1, configs)
        assert refused.value.code == code
    with pytest.raises(Refused) as refused:
        client.delete_topic(servers, f"never-{client.name}")
    assert refused.value.code == UNKNOWN_TOPIC_OR_PARTITION


@by_client
def test_every_client_sees_the_others_topics(broker: barnabas.Broker, client: Client) -> None:
    """TP-4"""
    servers, topic = broker.bootstrap_servers, f"seen-by-{client.name}"
    LIBRARIES[0].create_topic(servers, topic, 2, {})
    assert topic in client.list_topics(servers)
    assert client.describe_topic(servers, topic) == [
        PartitionSeen(0, 0, (0,), (0,)),
        PartitionSeen(1, 0, (0,), (0,)),
    ]


@by_library
def test_offsets_by_end_and_by_time(broker: barnabas.Broker, client: AdminClient) -> None:
    """CO-7: ListOffsets in the version that each client speaks."""
    servers, topic = broker.bootstrap_servers, f"offsets-{client.name}"
    client.create_topic(servers, topic, 1, {})
    assert client.bounds(servers, topic) == (0, 0)
    sent = [Sent(0, b"key", b"value")] * 5
    client.produce(servers, topic, sent, codec="none", acks=-1)
    assert client.bounds(servers, topic) == (0, 5)
    long_ago_ms, far_ahead_ms = 1_000_000, 32_503_680_000_000
    assert client.offset_at(servers, topic, long_ago_ms) == 0
    assert client.offset_at(servers, topic, far_ahead_ms) is None
