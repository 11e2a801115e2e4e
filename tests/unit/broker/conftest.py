"""One broker for all tests of a module, and a raw connection to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas import Broker
from barnabas.protocol.api import CREATE_TOPICS
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.raw_client import RawClient


@pytest.fixture(scope="module")
def node() -> Iterator[Broker]:
    """A broker of this module's own, so that its topics are known."""
    with Broker() as broker:
        yield broker


@pytest.fixture
def client(node: Broker) -> Iterator[RawClient]:
    with RawClient(node.bootstrap_servers) as raw:
        yield raw


@pytest.fixture
def topic(client: RawClient, request: pytest.FixtureRequest) -> str:
    """A new topic with two partitions, named after the test."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)[:200]
    create(client, name, 2)
    return name


def create(client: RawClient, name: str, partitions: int = 1) -> None:
    wanted = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    answer = client.call(CREATE_TOPICS, 5, CreateTopicsRequest(topics=[wanted], timeout_ms=60_000))
    assert answer.topics[0].error_code == 0, answer
