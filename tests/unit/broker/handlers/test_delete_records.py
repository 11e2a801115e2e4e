"""DeleteRecords: what goes, what is answered, and with which errors it is refused (ST-10)."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas import Broker
from barnabas.cluster.layout import GROUP_TOPIC
from barnabas.errors import (
    InvalidTopic,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    PolicyViolation,
    RequestTimedOut,
    UnknownTopicOrPartition,
)
from barnabas.protocol.api import CREATE_TOPICS, DELETE_RECORDS, FETCH
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.kit.broker.fetches import fetch_request, only, values
from tests.kit.broker.loops import inside
from tests.kit.broker.produces import fill
from tests.kit.broker.replicated import EPOCHS, Follower, Shared, meet, parts_of
from tests.kit.broker.topics import create, topic_id_of
from tests.kit.raw_client import PATIENCE_S, RawClient, batch

LATEST = DELETE_RECORDS.max_version


def ask(
    client: RawClient, topic: str, offset: int, version: int = LATEST, partition: int = 0
) -> DeleteRecordsPartitionResult:
    wanted = DeleteRecordsPartition(partition_index=partition, offset=offset)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=[wanted])], timeout_ms=60_000
    )
    (found,) = client.call(DELETE_RECORDS, version, request).topics
    assert found.name == topic
    assert found.partitions[0].partition_index == partition
    return found.partitions[0]


@pytest.mark.parametrize("version", range(LATEST + 1))
def test_what_is_below_the_offset_is_gone(client: RawClient, topic: str, version: int) -> None:
    fill(client, topic, batch(b"a", b"b", b"c"), batch(b"d"))
    answer = ask(client, topic, 3, version)
    assert (answer.error_code, answer.low_watermark) == (0, 3)
    found = only(client.call(FETCH, 11, fetch_request(topic, 3)))
    assert (found.log_start_offset, values(found)) == (3, [b"d"])
    refused = only(client.call(FETCH, 11, fetch_request(topic, 2)))
    assert refused.error_code == OffsetOutOfRange.code


def test_everything_up_to_the_high_watermark(client: RawClient, topic: str) -> None:
    fill(client, topic, batch(b"a", b"b", b"c"))
    assert ask(client, topic, -1).low_watermark == 3
    fill(client, topic, batch(b"d"))
    assert values(only(client.call(FETCH, 11, fetch_request(topic, 3)))) == [b"d"]


def test_what_is_gone_stays_gone(client: RawClient, topic: str) -> None:
    """A lower offset changes nothing, and that is no error."""
    fill(client, topic, batch(b"a", b"b", b"c"))
    ask(client, topic, 2)
    answer = ask(client, topic, 1)
    assert (answer.error_code, answer.low_watermark) == (0, 2)


@pytest.mark.parametrize("offset", [4, -2, 2**63 - 1])
def test_offsets_that_are_not_there(client: RawClient, topic: str, offset: int) -> None:
    fill(client, topic, batch(b"a", b"b", b"c"))
    answer = ask(client, topic, offset)
    assert (answer.error_code, answer.low_watermark) == (OffsetOutOfRange.code, -1)
    assert len(values(only(client.call(FETCH, 11, fetch_request(topic, 0))))) == 3


def test_partitions_that_are_not_there(client: RawClient, topic: str) -> None:
    assert ask(client, "no-such-topic", 0).error_code == UnknownTopicOrPartition.code
    assert ask(client, topic, 0, partition=9).error_code == UnknownTopicOrPartition.code


@pytest.mark.parametrize(
    ("policy", "error_code"),
    [("compact", PolicyViolation.code), ("compact,delete", 0), ("delete", 0)],
)
def test_a_log_that_is_only_compacted_deletes_nothing(
    client: RawClient, policy: str, error_code: int
) -> None:
    name = f"policy-{policy.replace(',', '-')}"
    configs = [CreatableTopicConfig(name="cleanup.policy", value=policy)]
    wanted = CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=configs)
    client.call(CREATE_TOPICS, 5, CreateTopicsRequest(topics=[wanted], timeout_ms=60_000))
    assert ask(client, name, -1).error_code == error_code


def test_internal_topics_are_not_a_users(client: RawClient) -> None:
    create(client, GROUP_TOPIC)
    assert ask(client, GROUP_TOPIC, 0).error_code == InvalidTopic.code


def test_the_log_start_survives_a_restart(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
        create(client, "t")
        fill(client, "t", batch(b"a", b"b", b"c"))
        ask(client, "t", 2)
    assert "t 0 2" in (tmp_path / "log-start-offset-checkpoint").read_text()
    with Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
        found = only(client.call(FETCH, 11, fetch_request("t", 2)))
        assert found.log_start_offset == 2
        refused = only(client.call(FETCH, 11, fetch_request("t", 1)))
        assert refused.error_code == OffsetOutOfRange.code


# --- with followers ------------------------------------------------------------------------------


@pytest.fixture
def shared(node: Broker, client: RawClient, topic: str) -> Shared:
    fill(client, topic, batch(b"a"), batch(b"b"), batch(b"c"))
    found = Shared(node, topic, topic_id_of(client, topic))
    found.change_role()
    return found


def _send(client: RawClient, topic: str, offset: int, timeout_ms: int = 5000) -> None:
    wanted = DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=[wanted])], timeout_ms=timeout_ms
    )
    client.send(DELETE_RECORDS, LATEST, request)


def _received(client: RawClient) -> tuple[int, int]:
    _, answer = client.receive(DELETE_RECORDS, LATEST)
    (found,) = answer.topics[0].partitions
    return found.error_code, found.low_watermark


def test_st_10_the_answer_waits_for_every_live_replica(
    node: Broker, client: RawClient, shared: Shared
) -> None:
    with RawClient(node.bootstrap_servers) as raw:
        follower = Follower(raw, shared)
        assert follower.fetch(3).high_watermark == 3
        _send(client, shared.name.topic, 2)
        while follower.fetch(3).log_start_offset < 2:
            pass
        client.socket.settimeout(0.1)
        with pytest.raises(TimeoutError):
            client.socket.recv(1)
        client.socket.settimeout(PATIENCE_S)
        follower.fetch(3, log_start_offset=2)
        assert _received(client) == (0, 2)


def test_st_10_who_is_dead_is_not_waited_for(
    node: Broker, client: RawClient, shared: Shared
) -> None:
    with RawClient(node.bootstrap_servers) as raw:
        Follower(raw, shared).fetch(3)
    _send(client, shared.name.topic, 2)
    inside(node, lambda: meet(parts_of(node), {0: EPOCHS[0]}))
    assert _received(client) == (0, 2)


def test_st_10_a_replica_that_does_not_follow_in_time(client: RawClient, shared: Shared) -> None:
    """The records are gone here, and the answer says that they are not everywhere."""
    _send(client, shared.name.topic, 2, timeout_ms=100)
    assert _received(client) == (RequestTimedOut.code, -1)
    assert shared.replica.log.log_start_offset == 2


def test_who_waits_for_replicas_learns_of_a_new_leader(client: RawClient, shared: Shared) -> None:
    _send(client, shared.name.topic, 2)
    while shared.replica.log.log_start_offset < 2:
        pass
    shared.change_role(leader=1)
    assert _received(client) == (NotLeaderOrFollower.code, -1)
