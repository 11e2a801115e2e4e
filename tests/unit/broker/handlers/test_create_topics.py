"""CreateTopics: partitions, replicas, configs, what is refused and with which error."""

from __future__ import annotations

import gc

import pytest

from barnabas import Broker
from barnabas.errors import (
    InvalidConfig,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    InvalidTopic,
    PolicyViolation,
    RequestTimedOut,
    TopicAlreadyExists,
    TopicAuthorizationFailed,
)
from barnabas.protocol.api import CREATE_TOPICS, METADATA
from barnabas.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.metadata import MetadataRequest
from tests.kit.broker.topics import exists
from tests.kit.raw_client import RawClient
from tests.kit.waiting import wait_until


def create(
    client: RawClient,
    name: str,
    partitions: int = 1,
    replicas: int = 1,
    version: int = 5,
    **fields: object,
) -> CreatableTopicResult:
    validate_only = bool(fields.pop("validate_only", False))
    wanted = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=replicas, **fields
    )
    request = CreateTopicsRequest(topics=[wanted], timeout_ms=60_000)
    if version >= 1:
        request.validate_only = validate_only
    return client.call(CREATE_TOPICS, version, request).topics[0]


@pytest.mark.parametrize("version", range(CREATE_TOPICS.min_version, CREATE_TOPICS.max_version + 1))
def test_a_topic_is_created_in_every_version(client: RawClient, version: int) -> None:
    """TP-1, TP-4"""
    result = create(client, f"made-by-{version}", 3, version=version)
    assert result.error_code == 0
    if version >= 5:
        assert (result.num_partitions, result.replication_factor) == (3, 1)
        assert {entry.name for entry in result.configs or []} >= {"segment.bytes", "retention.ms"}
    if version >= 7:
        assert result.topic_id != bytes(16)
    assert exists(client, f"made-by-{version}")


def test_defaults_of_the_broker(client: RawClient) -> None:
    """KIP-464: -1 takes num.partitions and default.replication.factor."""
    result = create(client, "by-default", -1, -1)
    assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 1, 1)


def test_what_is_refused(client: RawClient) -> None:
    """TP-1, TP-5"""
    assert create(client, "taken").error_code == 0
    assert create(client, "taken").error_code == TopicAlreadyExists.code
    assert create(client, "none", partitions=0).error_code == InvalidPartitions.code
    assert create(client, "two", replicas=2).error_code == InvalidReplicationFactor.code
    assert create(client, "zero", replicas=0).error_code == InvalidReplicationFactor.code
    for name in ("a b", "", ".", "x" * 250):
        assert create(client, name).error_code == InvalidTopic.code
    assert not exists(client, "none")


def test_configs(client: RawClient) -> None:
    good = [CreatableTopicConfig(name="segment.bytes", value="65536")]
    result = create(client, "with-config", configs=good)
    assert result.error_code == 0
    (entry,) = [each for each in result.configs or [] if each.name == "segment.bytes"]
    assert (entry.value, entry.config_source) == ("65536", 1)
    for name, value in [("segment.byte", "1"), ("segment.bytes", "many"), ("segment.bytes", "-1")]:
        bad = [CreatableTopicConfig(name=name, value=value)]
        refused = create(client, "with-bad-config", configs=bad)
        assert refused.error_code == InvalidConfig.code
        assert name in (refused.error_message or "")
    assert not exists(client, "with-bad-config")


def test_an_assignment(client: RawClient) -> None:
    def assigned(*rows: tuple[int, list[int]]) -> list[CreatableReplicaAssignment]:
        return [
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in rows
        ]

    ok = create(client, "assigned", -1, -1, assignments=assigned((0, [0]), (1, [0])))
    assert (ok.error_code, ok.num_partitions) == (0, 2)
    for rows in [((1, [0]),), ((0, [5]),), ((0, [0, 0]),), ((0, []),)]:
        refused = create(client, "badly-assigned", -1, -1, assignments=assigned(*rows))
        assert refused.error_code == InvalidReplicaAssignment.code, rows
    both = create(client, "both", 2, -1, assignments=assigned((0, [0])))
    assert both.error_code == InvalidRequest.code


def test_what_is_given_twice_over_or_without_a_value(client: RawClient) -> None:
    nothing = [CreatableTopicConfig(name="segment.bytes", value=None)]
    assert create(client, "null-config", configs=nothing).error_code == InvalidConfig.code
    row = [CreatableReplicaAssignment(partition_index=0, broker_ids=[0])]
    for partitions, replicas in ((1, -1), (-1, 1), (1, 1)):
        both = create(client, "both", partitions, replicas, assignments=row)
        assert both.error_code == InvalidRequest.code
        assert (both.num_partitions, both.replication_factor, both.configs) == (-1, -1, [])


def test_names_that_would_be_one_in_metrics(client: RawClient) -> None:
    """TP-1: `.` and `_`, also within one request."""
    wanted = [
        CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        for name in ("x.y", "x_y", "x-y")
    ]
    answer = client.call(CREATE_TOPICS, 5, CreateTopicsRequest(topics=wanted, timeout_ms=60_000))
    assert [each.error_code for each in answer.topics] == [0, InvalidTopic.code, 0]
    assert "collides with 'x.y'" in (answer.topics[1].error_message or "")


def test_no_request_fills_the_disk(client: RawClient) -> None:
    refused = create(client, "too-many", 2_000_000_000)
    assert refused.error_code == PolicyViolation.code
    assert not exists(client, "too-many")


def test_krafts_own_topic_is_refused(client: RawClient) -> None:
    refused = create(client, "__cluster_metadata")
    assert refused.error_code == TopicAuthorizationFailed.code


def test_validation_answers_like_creation(client: RawClient) -> None:
    """But for the id, which nothing has yet (v7)."""
    config = [CreatableTopicConfig(name="retention.ms", value="5")]
    shown = create(client, "shown", 3, version=7, configs=config, validate_only=True)
    assert not exists(client, "shown")
    assert shown.topic_id == bytes(16)
    made = create(client, "shown", 3, version=7, configs=config)
    assert made.topic_id != bytes(16)
    shown.topic_id = made.topic_id
    assert shown == made


def test_a_timeout_of_0_reports_what_is_refused_and_no_success(client: RawClient) -> None:
    """What librdkafka's `operation.timeout` of 0 counts on."""
    wanted = [
        CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        for name in ("begun", "be gun")
    ]
    answer = client.call(CREATE_TOPICS, 5, CreateTopicsRequest(topics=wanted, timeout_ms=0))
    codes = [each.error_code for each in answer.topics]
    assert codes == [RequestTimedOut.code, InvalidTopic.code]
    assert exists(client, "begun")


def test_who_hangs_up_leaves_whole_topics(node: Broker, client: RawClient) -> None:
    """Half of a topic must not be left because of somebody's impatience."""
    names = {f"left-alone-{number}" for number in range(20)}
    with RawClient(node.bootstrap_servers) as impatient:
        for name in sorted(names):
            topic = CreatableTopic(name=name, num_partitions=3, replication_factor=1)
            request = CreateTopicsRequest(topics=[topic], timeout_ms=60_000)
            impatient.send(CREATE_TOPICS, 5, request)
    for name in names:  # those that the broker had not read yet
        assert create(client, name).error_code in (0, TopicAlreadyExists.code)

    def are_led() -> bool:
        topics = client.call(METADATA, 1, MetadataRequest(topics=None)).topics
        led = {
            topic.name
            for topic in topics
            if topic.name in names and all(part.leader_id == 0 for part in topic.partitions)
        }
        return led == names

    wait_until(are_led)


def test_validate_only_creates_nothing(client: RawClient) -> None:
    assert create(client, "only-validated", validate_only=True).error_code == 0
    assert not exists(client, "only-validated")
    refused = create(client, "only-validated", replicas=9, validate_only=True)
    assert refused.error_code == InvalidReplicationFactor.code


def test_a_topic_listed_twice_is_refused(client: RawClient) -> None:
    wanted = [CreatableTopic(name="twice", num_partitions=1, replication_factor=1)] * 2
    answer = client.call(CREATE_TOPICS, 5, CreateTopicsRequest(topics=wanted, timeout_ms=60_000))
    assert {result.error_code for result in answer.topics} == {InvalidRequest.code}
    assert not exists(client, "twice")


def test_a_setting_without_effect_is_warned_about(
    client: RawClient, caplog: pytest.LogCaptureFixture
) -> None:
    """UX-3"""
    config = CreatableTopicConfig(name="preallocate", value="true")
    assert create(client, "not-preallocated", configs=[config]).error_code == 0
    said = [record.getMessage() for record in caplog.records]
    assert any("not-preallocated" in line and "preallocate" in line for line in said), said


def test_too_many_topics_are_refused_and_nothing_is_left_of_them(client: RawClient) -> None:
    """A refused request goes with its last reference, not when the collector runs, for long."""
    topics = [CreatableTopic(name=f"n{number}") for number in range(10_001)]
    answer = client.call(CREATE_TOPICS, 7, CreateTopicsRequest(topics=topics, timeout_ms=1000))
    assert {topic.error_code for topic in answer.topics} == {PolicyViolation.code}
    assert len(answer.topics) == 10_001
    gc.collect()
    gc.disable()
    try:
        wrong = CreateTopicsRequest(
            topics=[
                CreatableTopic(name=f"a/{number}", num_partitions=1, replication_factor=1)
                for number in range(500)
            ],
            timeout_ms=1000,
        )
        answer = client.call(CREATE_TOPICS, 7, wrong)
        assert {topic.error_code for topic in answer.topics} == {InvalidTopic.code}
        assert sum(isinstance(each, InvalidTopic) for each in gc.get_objects()) < 100
    finally:
        gc.enable()
