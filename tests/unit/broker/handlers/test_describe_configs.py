"""DescribeConfigs: value, source, type and a sentence for every config."""

from __future__ import annotations

import pytest

from barnabas.config import BROKER_KEYS, TOPIC_KEYS
from barnabas.errors import InvalidRequest, InvalidTopic, UnknownTopicOrPartition
from barnabas.protocol.api import CREATE_TOPICS, DESCRIBE_CONFIGS
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
)
from tests.kit.broker.configs import describe
from tests.kit.raw_client import RawClient

TOPIC, BROKER = 2, 4


@pytest.mark.parametrize(
    "version", range(DESCRIBE_CONFIGS.min_version, DESCRIBE_CONFIGS.max_version + 1)
)
def test_a_topics_configs_in_every_version(client: RawClient, topic: str, version: int) -> None:
    """UX-3: every config has its name, a type, a default and a sentence."""
    result = describe(client, TOPIC, topic, version=version)
    assert result.error_code == 0
    assert [entry.name for entry in result.configs] == list(TOPIC_KEYS)
    (entry,) = [each for each in result.configs if each.name == "retention.ms"]
    assert entry.value == "604800000"
    if version >= 1:
        assert entry.config_source == 5
    if version >= 3:
        assert entry.config_type == 5 and entry.documentation


def test_a_topics_own_setting(client: RawClient) -> None:
    config = CreatableTopicConfig(name="retention.ms", value="1000")
    wanted = CreatableTopic(
        name="own-retention", num_partitions=1, replication_factor=1, configs=[config]
    )
    client.call(CREATE_TOPICS, 5, CreateTopicsRequest(topics=[wanted], timeout_ms=60_000))
    (entry,) = describe(client, TOPIC, "own-retention", ["retention.ms"]).configs
    assert (entry.name, entry.value, entry.config_source) == ("retention.ms", "1000", 1)


def test_the_brokers_configs(client: RawClient) -> None:
    result = describe(client, BROKER, "0")
    entries = {entry.name: entry for entry in result.configs}
    assert set(entries) < set(BROKER_KEYS)
    assert entries["log.dirs"].config_source == 4
    assert entries["log.dirs"].read_only and not entries["log.segment.bytes"].read_only
    assert entries["num.partitions"].value == "1"


def test_no_secret_is_shown(client: RawClient) -> None:
    """SE-6"""
    secrets = [each for each in describe(client, BROKER, "0").configs if each.is_sensitive]
    assert secrets and all(each.value is None for each in secrets)


def test_what_is_not_there(client: RawClient) -> None:
    assert describe(client, TOPIC, "no-such").error_code == UnknownTopicOrPartition.code
    assert describe(client, BROKER, "7").error_code == InvalidRequest.code
    assert describe(client, 99, "x").error_code == InvalidRequest.code
    assert describe(client, TOPIC, "a b").error_code == InvalidTopic.code


def test_of_all_brokers_only_what_is_set_for_them(client: RawClient) -> None:
    """Kafka's empty broker name."""
    answer = describe(client, BROKER, "")
    assert (answer.error_code, answer.configs) == (0, [])


def test_no_names_are_all_names(client: RawClient) -> None:
    assert len(describe(client, BROKER, "0", []).configs) > 300


def test_synonyms_and_sentences_where_they_are_asked_for(client: RawClient) -> None:
    """KIP-226, KIP-569"""

    def entry(**asked: bool) -> DescribeConfigsResourceResult:
        resource = DescribeConfigsResource(
            resource_type=BROKER, resource_name="0", configuration_keys=["listeners"]
        )
        request = DescribeConfigsRequest(resources=[resource], **asked)
        (found,) = client.call(DESCRIBE_CONFIGS, 4, request).results[0].configs
        return found

    assert (entry().synonyms, entry().documentation) == ([], None)
    assert entry(include_documentation=True).documentation
    own, default = entry(include_synonyms=True).synonyms
    assert (own.name, own.source) == ("listeners", 4)
    assert (default.value, default.source) == ("PLAINTEXT://:9092", 5)


def test_a_resource_named_twice_is_described_once(client: RawClient, topic: str) -> None:
    """Kilobytes would come for each few bytes of the request."""
    named = [
        DescribeConfigsResource(resource_type=TOPIC, resource_name=topic, configuration_keys=keys)
        for keys in (None, None, ["retention.ms"], ["retention.ms"], None)
    ]
    request = DescribeConfigsRequest(resources=named)
    every, one = client.call(DESCRIBE_CONFIGS, 4, request).results
    assert len(every.configs) > 20
    assert [each.name for each in one.configs] == ["retention.ms"]
