"""Foreign clients create, describe, enlarge and delete topics, and ask for offsets and the cluster.

What a broker must answer to each is TP-1 to TP-5's and CO-7's business; here it is that clients of
every age understand it.
"""

from __future__ import annotations

import pytest

from tests.conformance.clients_in_use import (
    CHANGE_CONFIGS,
    CLIENTS,
    KNOW_TOPIC_IDS,
    LIBRARIES,
    SEE_DIRECTORIES,
)
from tests.kit.clients.clients import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    AdminClient,
    ChangesConfigs,
    Client,
    ClusterSeen,
    KnowsTopicIds,
    PartitionSeen,
    Promise,
    Refused,
    Resource,
    SeesDirectories,
    Sent,
)

pytestmark = pytest.mark.foreign

UNKNOWN_TOPIC_OR_PARTITION = 3
INVALID_TOPIC_EXCEPTION = 17
TOPIC_ALREADY_EXISTS = 36
INVALID_PARTITIONS = 37
INVALID_CONFIG = 40
UNKNOWN_TOPIC_ID = 100

T0_MS = 1_700_000_000_000
ACKNOWLEDGED = Promise(-1)

by_library = pytest.mark.parametrize("client", LIBRARIES, ids=lambda client: client.name)
by_client = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)


@by_library
def test_a_topic_is_created_as_asked_and_deleted(servers: str, client: AdminClient) -> None:
    """TP-1, TP-3, TP-4"""
    topic = f"created-by-{client.name}"
    client.create_topic(servers, topic, 3, {"retention.ms": "86400000"})
    assert topic in client.list_topics(servers)
    assert client.describe_topic(servers, topic) == [
        PartitionSeen(number, leader=0, replicas=(0,), isr=(0,)) for number in range(3)
    ]
    configs = client.describe_configs(servers, Resource("topic", topic))
    assert configs["retention.ms"].value == "86400000"
    assert configs["cleanup.policy"].value == "delete"
    client.delete_topic(servers, topic)
    assert topic not in client.list_topics(servers)


@by_library
def test_validation_alone_creates_nothing(servers: str, client: AdminClient) -> None:
    """TP-4: and refuses what creation would refuse."""
    topic = f"validated-by-{client.name}"
    client.create_topic(servers, topic, 3, {}, validate_only=True)
    assert topic not in client.list_topics(servers)
    assert code_of(client, servers, topic, 0) == INVALID_PARTITIONS
    assert topic not in client.list_topics(servers)


def code_of(client: AdminClient, servers: str, topic: str, partitions: int) -> int:
    with pytest.raises(Refused) as refused:
        client.create_topic(servers, topic, partitions, {}, validate_only=True)
    return refused.value.code


@by_library
def test_refusals_carry_the_codes_that_clients_know(servers: str, client: AdminClient) -> None:
    """TP-1, TP-3"""
    topic = f"twice-{client.name}"
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


@by_library
def test_partitions_are_added_and_used_and_never_taken_away(
    servers: str, client: AdminClient
) -> None:
    """TP-5"""
    topic = f"enlarged-by-{client.name}"
    client.create_topic(servers, topic, 1, {})
    client.create_partitions(servers, topic, 3)
    assert [one.partition for one in client.describe_topic(servers, topic)] == [0, 1, 2]
    sent = [Sent(number, b"key", b"%d" % number) for number in range(3)]
    client.produce(servers, topic, sent, codec="none", promise=ACKNOWLEDGED)
    seen = client.consume(servers, topic, 3, 3)
    assert [(one.partition, one.value) for one in seen] == [(0, b"0"), (1, b"1"), (2, b"2")]
    for total in (2, 3):
        with pytest.raises(Refused) as refused:
            client.create_partitions(servers, topic, total)
        assert refused.value.code == INVALID_PARTITIONS


@pytest.mark.parametrize("client", KNOW_TOPIC_IDS, ids=lambda client: client.name)
def test_a_topic_is_deleted_by_its_id(servers: str, client: KnowsTopicIds) -> None:
    """TP-4: and the same id names nothing afterwards."""
    topic = f"deleted-by-id-{client.name}"
    client.create_topic(servers, topic, 1, {})
    topic_id = client.topic_id(servers, topic)
    client.delete_topic_by_id(servers, topic_id)
    assert topic not in client.list_topics(servers)
    with pytest.raises(Refused) as refused:
        client.delete_topic_by_id(servers, topic_id)
    assert refused.value.code == UNKNOWN_TOPIC_ID


@by_client
def test_every_client_sees_the_others_topics(servers: str, client: Client) -> None:
    """TP-4"""
    topic = f"seen-by-{client.name}"
    LIBRARIES[0].create_topic(servers, topic, 2, {})
    assert topic in client.list_topics(servers)
    assert client.describe_topic(servers, topic) == [
        PartitionSeen(0, 0, (0,), (0,)),
        PartitionSeen(1, 0, (0,), (0,)),
    ]


@by_client
def test_what_is_sent_to_an_unknown_topic_creates_it(servers: str, client: Client) -> None:
    """TP-6: librdkafka, kafka-python, aiokafka and Java each ask for it in their own way."""
    topic = f"came-by-{client.name}"
    sent = [Sent(0, b"key", b"first")]
    client.produce(servers, topic, sent, codec="none", promise=ACKNOWLEDGED)
    assert [one.value for one in client.consume(servers, topic, 1, 1)] == [b"first"]


@by_library
def test_offsets_by_end_and_by_time(servers: str, client: AdminClient) -> None:
    """CO-7, ST-4: ListOffsets in the version that each client speaks."""
    topic = f"offsets-{client.name}"
    client.create_topic(servers, topic, 1, {})
    assert offsets(client, servers, topic, EARLIEST, LATEST) == [0, 0]
    sent = [Sent(0, b"key", b"value", (), T0_MS + 1000 * number) for number in range(5)]
    client.produce(servers, topic, sent, codec="none", promise=ACKNOWLEDGED)
    assert offsets(client, servers, topic, EARLIEST, LATEST) == [0, 5]
    long_ago_ms, far_ahead_ms = 1_000_000, T0_MS + 5000
    assert offsets(client, servers, topic, long_ago_ms, far_ahead_ms) == [0, None]
    assert offsets(client, servers, topic, T0_MS + 1000, T0_MS + 1001) == [1, 2]


@pytest.mark.parametrize("client", CHANGE_CONFIGS, ids=lambda client: client.name)
def test_the_offset_of_the_greatest_timestamp(servers: str, client: ChangesConfigs) -> None:
    """ST-4: KIP-734; records need not come in the order of their times."""
    topic = f"greatest-{client.name}"
    client.create_topic(servers, topic, 1, {})
    assert client.offset(servers, topic, MAX_TIMESTAMP) is None
    times = (1000, 4000, 2000)
    sent = [Sent(0, b"key", b"value", (), T0_MS + time) for time in times]
    client.produce(servers, topic, sent, codec="gzip", promise=ACKNOWLEDGED)
    assert client.offset(servers, topic, MAX_TIMESTAMP) == 1


def offsets(client: AdminClient, servers: str, topic: str, *specs: int) -> list[int | None]:
    return [client.offset(servers, topic, spec) for spec in specs]


@by_library
def test_the_cluster_is_one_broker_that_is_its_controller(
    servers: str, client: AdminClient
) -> None:
    """ZK-3"""
    assert client.describe_cluster(servers) == ClusterSeen(controller=0, brokers=(0,))


@pytest.mark.parametrize("client", SEE_DIRECTORIES, ids=lambda client: client.name)
def test_log_directories_tell_the_size_of_each_partition(
    servers: str, client: SeesDirectories
) -> None:
    """ST-10: DescribeLogDirs."""
    topic = f"sized-{client.name}"
    client.create_topic(servers, topic, 2, {})
    sent = [Sent(1, b"key", bytes(10_000), (), T0_MS)]
    client.produce(servers, topic, sent, codec="none", promise=ACKNOWLEDGED)
    sizes = client.log_sizes(servers)
    assert sizes[topic, 0] == 0
    assert 10_000 < sizes[topic, 1] < 10_200
