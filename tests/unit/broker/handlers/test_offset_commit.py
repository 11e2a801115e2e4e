"""OffsetCommit: what a group has read is kept, and what may not be is refused (GC-3)."""

from __future__ import annotations

import pytest

from barnabas import Broker
from barnabas.errors import (
    GroupAuthorizationFailed,
    IllegalGeneration,
    OffsetMetadataTooLarge,
    TopicAuthorizationFailed,
    UnknownMemberId,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from barnabas.protocol.api import OFFSET_COMMIT, OFFSET_FETCH
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchTopic
from tests.kit.broker.group_calls import find_coordinator
from tests.kit.broker.offsets import commit, committed
from tests.kit.broker.topics import create
from tests.kit.raw_client import RawClient

pytestmark = pytest.mark.usefixtures("offsets_topic")


@pytest.mark.parametrize("version", range(1, OFFSET_COMMIT.max_version + 1))
def test_a_commit_in_every_version(client: RawClient, topic: str, version: int) -> None:
    offsets = {(topic, 0): version, (topic, 1): 100 + version}
    assert commit(client, "g", offsets, version) == dict.fromkeys(offsets, 0)
    assert committed(client, "g", topic, 1, 0) == [100 + version, version]


def test_offsets_in_zookeeper_are_refused(client: RawClient, topic: str) -> None:
    """Version 0, of the clients of Kafka 0.8.1."""
    assert commit(client, "g", {(topic, 0): 1}, 0) == {(topic, 0): UnsupportedVersion.code}


def test_groups_are_apart(client: RawClient, topic: str) -> None:
    commit(client, "one", {(topic, 0): 1})
    commit(client, "two", {(topic, 0): 2})
    commit(client, "", {(topic, 0): 3})
    assert [committed(client, name, topic, 0) for name in ("one", "two", "")] == [[1], [2], [3]]


def test_what_does_not_exist_is_refused_and_the_rest_is_kept(client: RawClient, topic: str) -> None:
    unknown = UnknownTopicOrPartition.code
    offsets = {(topic, 9): 4, ("no-such-topic", 0): 4, (topic, 1): 4, (topic, -1): 4}
    assert commit(client, "g", offsets) == {
        (topic, 1): 0,
        (topic, 9): unknown,
        (topic, -1): unknown,
        ("no-such-topic", 0): unknown,
    }
    assert committed(client, "g", topic, 0, 1, 9) == [-1, 4, -1]
    assert commit(client, "g", {("no-such-topic", 0): 1}) == {("no-such-topic", 0): unknown}
    assert commit(client, "g", {}) == {}


def test_what_the_caller_may_not(client: RawClient, topic: str, deny) -> None:  # type: ignore[no-untyped-def]
    """SE-1."""
    create(client, f"{topic}-hidden")
    deny(f"{topic}-hidden", "secret")
    hidden = (f"{topic}-hidden", 0)
    assert commit(client, "g", {hidden: 1, (topic, 0): 1}) == {
        hidden: TopicAuthorizationFailed.code,
        (topic, 0): 0,
    }
    refused = commit(client, "secret", {(topic, 0): 1})
    assert refused == {(topic, 0): GroupAuthorizationFailed.code}


def test_a_group_without_members_takes_no_members_commit(client: RawClient, topic: str) -> None:
    """GC-2: unknown generations and members."""
    place = (topic, 0)
    fields: dict[str, object] = {"generation_id_or_member_epoch": 1, "member_id": "m"}
    assert commit(client, "new", {place: 1}, **fields) == {place: IllegalGeneration.code}
    assert commit(client, "known", {place: 1}) == {place: 0}
    assert commit(client, "known", {place: 2}, **fields) == {place: UnknownMemberId.code}
    assert committed(client, "known", topic, 0) == [1]


def test_metadata_comes_back_and_has_a_limit(client: RawClient, topic: str) -> None:
    place = (topic, 0)
    assert commit(client, "g", {place: 1}, metadata="grüße") == {place: 0}
    wanted = [OffsetFetchTopic(name=topic, partition_indexes=[0])]
    request = OffsetFetchRequest(group_id="g", topics=wanted)
    answer = client.call(OFFSET_FETCH, 5, request)
    assert answer.topics[0].partitions[0].metadata == "grüße"
    too_large = {place: OffsetMetadataTooLarge.code}
    assert commit(client, "g", {place: 2}, metadata="m" * 4097) == too_large
    assert commit(client, "g", {place: 3}, metadata=None) == {place: 0}


def test_the_longest_names_can_be_stored(client: RawClient, topic: str) -> None:
    """UX-4."""
    group_id = "g" * 32_767
    assert commit(client, group_id, {(topic, 0): 5}) == {(topic, 0): 0}
    assert committed(client, group_id, topic, 0) == [5]


def test_offsets_survive_a_restart(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """GC-3: the partition is read again; a transaction's commit would not be there."""
    with Broker(data_dir=tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
        create(client, "t", 2)
        find_coordinator(client)
        for n in range(100):
            commit(client, f"group-{n}", {("t", 0): n, ("t", 1): 2 * n})
    with Broker(data_dir=tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
        for n in range(100):
            assert committed(client, f"group-{n}", "t", 0, 1) == [n, 2 * n]
