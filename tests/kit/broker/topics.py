"""Topics of a broker, made and looked up over a raw connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol.api import CREATE_TOPICS, METADATA
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.kit.raw_client import RawClient

if TYPE_CHECKING:
    pass


def create(client: RawClient, name: str, partitions: int = 1) -> None:
    wanted = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    answer = client.call(CREATE_TOPICS, 5, CreateTopicsRequest(topics=[wanted], timeout_ms=60_000))
    assert answer.topics[0].error_code == 0, answer


def topic_id_of(client: RawClient, topic: str) -> bytes:
    answer = client.call(METADATA, 12, MetadataRequest(topics=[MetadataRequestTopic(name=topic)]))
    topic_id: bytes = answer.topics[0].topic_id
    return topic_id


def exists(client: RawClient, name: str) -> bool:
    answer = client.call(METADATA, 1, MetadataRequest(topics=None))
    return name in [topic.name for topic in answer.topics]


def with_configs(client: RawClient, name: str, **configs: str) -> None:
    settings = [
        CreatableTopicConfig(name=key.replace("_", "."), value=text)
        for key, text in configs.items()
    ]
    wanted = CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=settings)
    answer = client.call(CREATE_TOPICS, 5, CreateTopicsRequest(topics=[wanted], timeout_ms=60_000))
    assert answer.topics[0].error_code == 0, answer
