"""How many entries a request may have in all of its lists (UX-4)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas import Broker
from barnabas.errors import InvalidRequest
from barnabas.protocol.api import (
    API_VERSIONS,
    DELETE_GROUPS,
    ELECT_LEADERS,
    JOIN_GROUP,
    METADATA,
    PRODUCE,
    Api,
)
from barnabas.protocol.codec import Message, decoder, encode
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.wire import TooManyEntries
from tests.kit.raw_client import RawClient

MOST = 65_536


@pytest.fixture(scope="module")
def few() -> Iterator[Broker]:
    with Broker(config={"barnabas.request.max.entries": MOST}) as broker:
        yield broker


def bytes_of(message: Message, version: int) -> memoryview:
    return memoryview(b"".join(bytes(part) for part in encode(message, version)))  # type: ignore[arg-type]


def test_lists_within_lists_count_together() -> None:
    topics = [TopicPartitions(topic="t", partitions=[0] * 4) for _ in range(3)]
    data = bytes_of(ElectLeadersRequest(topic_partitions=topics), 2)
    decode = decoder(ElectLeadersRequest, 2)
    assert decode(data, 15)[0].topic_partitions == topics
    with pytest.raises(TooManyEntries, match="ElectLeadersRequest version 2 has more than 14 ent"):
        decode(data, 14)


def test_null_lists_give_nothing_back() -> None:
    """Each has a count of -1."""
    from barnabas.protocol.messages.describe_configs import (
        DescribeConfigsRequest,
        DescribeConfigsResource,
    )

    resources = [DescribeConfigsResource(resource_name="t", configuration_keys=None)] * 9
    data = bytes_of(DescribeConfigsRequest(resources=resources), 4)
    with pytest.raises(TooManyEntries):
        decoder(DescribeConfigsRequest, 4)(data, 8)


def test_unknown_tagged_fields_count_as_well() -> None:
    data = memoryview(b"\x01\x05" + b"\x7f\x00" * 5)  # no groups, and five of them
    decode = decoder(DeleteGroupsRequest, 2)
    assert decode(data, 5)[0] == DeleteGroupsRequest()
    with pytest.raises(TooManyEntries):
        decode(data, 4)


@pytest.mark.parametrize("version", [1, 2])
def test_a_request_with_too_many_gets_an_error_if_its_answer_has_one(
    few: Broker, version: int, caplog: pytest.LogCaptureFixture
) -> None:
    topics = [TopicPartitions(topic="t", partitions=[0] * MOST)]
    with RawClient(few.bootstrap_servers) as client:
        answer = client.call(ELECT_LEADERS, version, ElectLeadersRequest(topic_partitions=topics))
        assert answer.error_code == InvalidRequest.code
        assert client.call(API_VERSIONS, 0, ApiVersionsRequest()).error_code == 0
        port = client.socket.getsockname()[1]
        lines = [each for each in caplog.messages if "refused" in each]
        assert all(f":{port}: " in each for each in lines) and (lines or version > 0)


@pytest.mark.parametrize(
    ("api", "version", "request_"),
    [
        (DELETE_GROUPS, 2, DeleteGroupsRequest(groups_names=["g"] * (MOST + 1))),
        (METADATA, 12, MetadataRequest(topics=[MetadataRequestTopic(name="t")] * (MOST + 1))),
        (
            PRODUCE,
            9,
            ProduceRequest(
                acks=1,
                topic_data=[
                    TopicProduceData(name="t", partition_data=[PartitionProduceData()] * 8_000)
                ],
            ),
        ),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_else_its_connection_is_closed_and_the_log_says_why(
    few: Broker,
    api: Api,
    version: int,
    request_: Message,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with RawClient(few.bootstrap_servers) as client:
        client.send(api, version, request_)
        assert client.is_closed_by_peer()
    assert f"has more than {min(MOST, api.max_entries)} entries" in caplog.text


def test_what_is_a_handful_in_any_use_has_a_limit_of_its_own(few: Broker) -> None:
    protocols = [JoinGroupRequestProtocol(name=str(number)) for number in range(1_001)]
    request = JoinGroupRequest(group_id="g", protocol_type="consumer", protocols=protocols)
    with RawClient(few.bootstrap_servers) as client:
        assert client.call(JOIN_GROUP, 9, request).error_code == InvalidRequest.code
