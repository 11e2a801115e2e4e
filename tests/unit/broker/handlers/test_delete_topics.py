"""DeleteTopics: by name and by id, without leftovers."""

from __future__ import annotations

import pytest

from barnabas import Broker
from barnabas.errors import (
    InvalidRequest,
    RequestTimedOut,
    TopicDeletionDisabled,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from barnabas.protocol.api import DELETE_TOPICS, FETCH
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.kit.broker.fetches import fetch_request, only
from tests.kit.broker.produces import fill
from tests.kit.broker.topics import create, exists, topic_id_of
from tests.kit.raw_client import RawClient, batch


def delete(client: RawClient, name: str | None, version: int, topic_id: bytes = bytes(16)) -> int:
    if version >= 6:
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=name, topic_id=topic_id)], timeout_ms=60_000
        )
    else:
        request = DeleteTopicsRequest(topic_names=[name], timeout_ms=60_000)
    return client.call(DELETE_TOPICS, version, request).responses[0].error_code


@pytest.mark.parametrize("version", range(DELETE_TOPICS.min_version, DELETE_TOPICS.max_version + 1))
def test_a_topic_is_gone_in_every_version(
    node: Broker, client: RawClient, topic: str, version: int
) -> None:
    """TP-4, ZK-4: metadata, directory and znodes."""
    fill(client, topic, batch(b"a"))
    assert (node.data_dir / f"{topic}-0").is_dir()
    assert delete(client, topic, version) == 0
    assert not exists(client, topic)
    assert not (node.data_dir / f"{topic}-0").exists()


def test_a_namesake_starts_empty(client: RawClient, topic: str) -> None:
    fill(client, topic, batch(b"old"))
    old_id = topic_id_of(client, topic)
    assert delete(client, topic, 5) == 0
    create(client, topic)
    assert topic_id_of(client, topic) != old_id
    partition = only(client.call(FETCH, 11, fetch_request(topic)))
    assert (partition.error_code, partition.high_watermark) == (0, 0)


def test_by_id(client: RawClient, topic: str) -> None:
    assert delete(client, None, 6, topic_id_of(client, topic)) == 0
    assert not exists(client, topic)
    assert delete(client, None, 6, b"\x05" * 16) == UnknownTopicId.code


def states(client: RawClient, *wanted: DeleteTopicState, timeout_ms: int = 5000):  # type: ignore[no-untyped-def]
    request = DeleteTopicsRequest(topics=list(wanted), timeout_ms=timeout_ms)
    return client.call(DELETE_TOPICS, 6, request).responses


def test_answers_say_what_was_asked(client: RawClient, topic: str) -> None:
    """An answer by id has the name, one by name no id; each topic has its own answer."""
    create(client, f"{topic}-2")
    topic_id = topic_id_of(client, topic)
    by_id, unknown, by_name, unknown_name = states(
        client,
        DeleteTopicState(topic_id=topic_id),
        DeleteTopicState(topic_id=b"\x07" * 16),
        DeleteTopicState(name=f"{topic}-2"),
        DeleteTopicState(name="no-such-topic"),
    )
    assert (by_id.name, by_id.topic_id, by_id.error_code) == (topic, topic_id, 0)
    assert (unknown.name, unknown.topic_id) == (None, b"\x07" * 16)
    assert unknown.error_code == UnknownTopicId.code
    assert (by_name.name, by_name.topic_id, by_name.error_code) == (f"{topic}-2", bytes(16), 0)
    assert unknown_name.error_code == UnknownTopicOrPartition.code
    assert not exists(client, topic)
    assert not exists(client, f"{topic}-2")


def test_name_and_id_together_spoil_the_whole_request(client: RawClient, topic: str) -> None:
    both = DeleteTopicState(name=topic, topic_id=topic_id_of(client, topic))
    results = states(client, both, DeleteTopicState(name=topic))
    assert [each.error_code for each in results] == [InvalidRequest.code] * 2
    assert exists(client, topic)


def test_the_same_topic_twice(client: RawClient, topic: str) -> None:
    results = states(
        client,
        DeleteTopicState(name=topic),
        DeleteTopicState(name=topic),
        DeleteTopicState(topic_id=topic_id_of(client, topic)),
    )
    assert [each.error_code for each in results] == [0, 0, 0]


def test_a_timeout_of_0_reports_what_is_refused_and_no_success(
    client: RawClient, topic: str
) -> None:
    begun, refused = states(
        client,
        DeleteTopicState(name=topic),
        DeleteTopicState(name="no-such-topic"),
        timeout_ms=0,
    )
    assert begun.error_code == RequestTimedOut.code
    assert refused.error_code == UnknownTopicOrPartition.code
    assert not exists(client, topic)


def test_an_unknown_topic(client: RawClient) -> None:
    assert delete(client, "no-such-topic", 5) == UnknownTopicOrPartition.code


def test_deletion_can_be_switched_off() -> None:
    config = {"delete.topic.enable": "false"}
    with Broker(config=config) as broker, RawClient(broker.bootstrap_servers) as client:
        create(client, "kept")
        assert delete(client, "kept", 5) == TopicDeletionDisabled.code
        assert delete(client, "no-such-topic", 5) == TopicDeletionDisabled.code
        assert delete(client, "kept", 2) == InvalidRequest.code, "older versions know no other"
        assert exists(client, "kept")
