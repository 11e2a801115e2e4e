"""IncrementalAlterConfigs: single settings, obeyed when the answer is there."""

from __future__ import annotations

import pytest

from barnabas import Broker
from barnabas.errors import (
    InvalidConfig,
    InvalidRequest,
    KafkaError,
    MessageTooLarge,
    UnknownTopicOrPartition,
)
from barnabas.protocol.api import INCREMENTAL_ALTER_CONFIGS, PRODUCE
from barnabas.protocol.messages.incremental_alter_configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResourceResponse,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.kit.broker.configs import BROKER, TOPIC, value_of
from tests.kit.broker.topics import create
from tests.kit.raw_client import RawClient, batch
from tests.kit.waiting import wait_until

SET, DELETE, APPEND, SUBTRACT = range(4)

Operation = tuple[str, int, str | None]


def resource(kind: int, name: str, *operations: Operation) -> IncrementalAlterConfigsResource:
    return IncrementalAlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            IncrementalAlterableConfig(name=config, config_operation=operation, value=value)
            for config, operation, value in operations
        ],
    )


def alter(
    client: RawClient,
    kind: int,
    name: str,
    *operations: Operation,
    version: int = 1,
    validate_only: bool = False,
) -> IncrementalAlterConfigsResourceResponse:
    request = IncrementalAlterConfigsRequest(
        resources=[resource(kind, name, *operations)], validate_only=validate_only
    )
    (answer,) = client.call(INCREMENTAL_ALTER_CONFIGS, version, request).responses
    assert (answer.resource_type, answer.resource_name) == (kind, name)
    return answer


def produce(client: RawClient, topic: str, size: int) -> int:
    """The error code of one batch with a value of that size."""
    data = PartitionProduceData(index=0, records=batch(bytes(size)))
    request = ProduceRequest(
        acks=-1, timeout_ms=60_000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )
    answer = client.call(PRODUCE, 9, request)
    code: int = answer.responses[0].partition_responses[0].error_code
    return code


@pytest.mark.parametrize("version", [0, 1])
def test_a_topics_setting_in_every_version(client: RawClient, topic: str, version: int) -> None:
    """TP-4"""
    answer = alter(client, TOPIC, topic, ("retention.ms", SET, "5000"), version=version)
    assert (answer.error_code, answer.error_message) == (0, None)
    assert value_of(client, TOPIC, topic, "retention.ms") == ("5000", 1)
    assert alter(client, TOPIC, topic, ("retention.ms", DELETE, None)).error_code == 0
    assert value_of(client, TOPIC, topic, "retention.ms") == ("604800000", 5)


def test_what_is_not_there_is_deleted_as_in_kafka(client: RawClient, topic: str) -> None:
    """TP-4: a name that there is not as well, since Kafka 3.9 looks at none here."""
    for kind, name in ((TOPIC, topic), (BROKER, "0"), (BROKER, "")):
        for setting in ("no.such", "log.dirs", "flush.ms"):
            answer = alter(client, kind, name, (setting, DELETE, None))
            assert (answer.error_code, answer.error_message) == (0, None), (kind, name, setting)


def test_the_next_produce_finds_the_topics_limit_changed(client: RawClient, topic: str) -> None:
    assert produce(client, topic, 2000) == 0
    assert alter(client, TOPIC, topic, ("max.message.bytes", SET, "1000")).error_code == 0
    assert produce(client, topic, 2000) == MessageTooLarge.code
    assert alter(client, TOPIC, topic, ("max.message.bytes", DELETE, "")).error_code == 0
    assert produce(client, topic, 2000) == 0


def test_the_next_produce_finds_the_brokers_limit_changed(client: RawClient, topic: str) -> None:
    """A topic's own setting stays above it."""
    assert alter(client, BROKER, "", ("message.max.bytes", SET, "1000")).error_code == 0
    try:
        assert value_of(client, BROKER, "0", "message.max.bytes") == ("1000", 3)
        assert value_of(client, TOPIC, topic, "max.message.bytes") == ("1000", 3)
        assert produce(client, topic, 2000) == MessageTooLarge.code
        assert alter(client, TOPIC, topic, ("max.message.bytes", SET, "3000")).error_code == 0
        assert produce(client, topic, 2000) == 0
        assert alter(client, BROKER, "0", ("message.max.bytes", SET, "4000")).error_code == 0
        assert value_of(client, BROKER, "0", "message.max.bytes") == ("4000", 2)
    finally:
        for name in ("", "0"):
            assert alter(client, BROKER, name, ("message.max.bytes", DELETE, None)).error_code == 0
    assert value_of(client, BROKER, "0", "message.max.bytes") == ("1048588", 5)


def test_the_next_produce_finds_the_segment_size_changed(
    node: Broker, client: RawClient, topic: str
) -> None:
    """ST-2's size, changed: the segment that is over it is closed by the next batch."""
    for _ in range(2):
        assert produce(client, topic, 600) == 0
    assert alter(client, TOPIC, topic, ("segment.bytes", SET, "1000")).error_code == 0
    assert produce(client, topic, 100) == 0
    segments = sorted(path.name for path in (node.data_dir / f"{topic}-0").glob("*.log"))
    assert segments == [f"{0:020}.log", f"{2:020}.log"]


def test_retention_finds_its_time_changed() -> None:
    """ST-6"""
    config = {"log.retention.ms": "-1", "log.retention.check.interval.ms": "100"}
    with Broker(config=config) as broker, RawClient(broker.bootstrap_servers) as client:
        create(client, "kept")
        assert produce(client, "kept", 100) == 0
        first = broker.data_dir / "kept-0" / f"{0:020}.log"
        assert first.exists()
        assert alter(client, TOPIC, "kept", ("retention.ms", SET, "1000")).error_code == 0
        wait_until(lambda: not first.exists())


def test_lists_are_appended_to_and_subtracted_from(client: RawClient, topic: str) -> None:
    assert alter(client, TOPIC, topic, ("cleanup.policy", APPEND, "compact")).error_code == 0
    assert value_of(client, TOPIC, topic, "cleanup.policy") == ("delete,compact", 1)
    assert alter(client, TOPIC, topic, ("cleanup.policy", SUBTRACT, "delete")).error_code == 0
    assert value_of(client, TOPIC, topic, "cleanup.policy") == ("compact", 1)


def test_what_is_only_validated_changes_nothing(client: RawClient, topic: str) -> None:
    checked = alter(client, TOPIC, topic, ("retention.ms", SET, "5"), validate_only=True)
    assert checked.error_code == 0
    assert value_of(client, TOPIC, topic, "retention.ms") == ("604800000", 5)
    refused = alter(client, TOPIC, topic, ("retention.ms", SET, "x"), validate_only=True)
    assert refused.error_code == InvalidConfig.code


def test_all_of_a_resource_or_nothing(client: RawClient, topic: str) -> None:
    both = [("retention.ms", SET, "5"), ("segment.bytes", SET, "x")]
    assert alter(client, TOPIC, topic, *both).error_code == InvalidConfig.code
    assert value_of(client, TOPIC, topic, "retention.ms") == ("604800000", 5)


@pytest.mark.parametrize(
    ("kind", "name", "operation", "error", "said"),
    [
        (TOPIC, "none", ("flush.ms", SET, "1"), UnknownTopicOrPartition, "topic none"),
        (TOPIC, "", ("flush.ms", SET, "1"), InvalidRequest, "the topic name is missing"),
        (TOPIC, "{topic}", ("flush.mss", SET, "1"), InvalidConfig, "did you mean flush.ms"),
        (TOPIC, "none", ("flush.mss", DELETE, None), UnknownTopicOrPartition, "topic none"),
        (TOPIC, "{topic}", ("flush.ms", APPEND, "1"), InvalidConfig, "is not a list"),
        (TOPIC, "{topic}", ("flush.ms", SET, None), InvalidRequest, "null"),
        (TOPIC, "{topic}", ("flush.ms", 7, "1"), InvalidRequest, "operation 7"),
        (BROKER, "7", ("log.roll.ms", SET, "1"), InvalidRequest, "send the request to broker '7'"),
        (BROKER, "x", ("log.roll.ms", SET, "1"), InvalidRequest, "send the request to broker 'x'"),
        (BROKER, "0", ("num.partitions", SET, "1"), InvalidRequest, "properties file"),
        (BROKER, "", ("log.rol.ms", SET, "1"), InvalidConfig, "did you mean log.roll.ms"),
        (8, "0", ("kafka", SET, "INFO"), InvalidConfig, "Logger kafka does not exist"),
        (8, "7", ("barnabas", SET, "INFO"), InvalidRequest, "expected 0, but received '7'"),
        (16, "0", ("kafka", SET, "INFO"), InvalidRequest, "resource type 16"),
        (99, "x", ("a", SET, "b"), InvalidRequest, "resource type 99"),
    ],
)
def test_what_is_refused(
    client: RawClient,
    topic: str,
    kind: int,
    name: str,
    operation: Operation,
    error: type[KafkaError],
    said: str,
) -> None:
    """UX-3, UX-4"""
    answer = alter(client, kind, name.format(topic=topic), operation)
    assert answer.error_code == error.code, answer
    assert said in (answer.error_message or "")


def test_a_setting_or_a_resource_given_twice_is_refused(client: RawClient, topic: str) -> None:
    twice = [("flush.ms", SET, "1"), ("flush.ms", SET, "2")]
    assert alter(client, TOPIC, topic, *twice).error_code == InvalidRequest.code
    one = resource(TOPIC, topic, ("flush.ms", SET, "1"))
    other = resource(BROKER, "0", ("log.roll.ms", SET, "5"))
    request = IncrementalAlterConfigsRequest(resources=[one, other, one], validate_only=True)
    answers = client.call(INCREMENTAL_ALTER_CONFIGS, 1, request).responses
    assert [answer.error_code for answer in answers] == [
        InvalidRequest.code,
        0,
        InvalidRequest.code,
    ]
    assert value_of(client, TOPIC, topic, "flush.ms")[1] == 5
