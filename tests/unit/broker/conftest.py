"""One broker for all tests of a module, and a raw connection to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from barnabas import Broker
from barnabas.protocol.api import CREATE_TOPICS
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.kit.raw_client import RawClient

if TYPE_CHECKING:
    from tests.kit.broker.replicated import Shared


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
    name = _name_of(request)
    create(client, name, 2)
    return name


@pytest.fixture
def replicated(node: Broker, client: RawClient, request: pytest.FixtureRequest) -> Shared:
    """A new topic of one partition, which broker 0 leads and broker 1 follows."""
    # Only here: these import tests, which import `create` from this file.
    from tests.kit.broker.replicated import Shared
    from tests.unit.broker.handlers.test_fetch import topic_id_of

    name = _name_of(request)
    create(client, name)
    found = Shared(node, name, topic_id_of(client, name))
    found.told()
    return found


def _name_of(request: pytest.FixtureRequest) -> str:
    return "".join(c if c.isalnum() else "-" for c in request.node.name)[:200]


def create(client: RawClient, name: str, partitions: int = 1) -> None:
    wanted = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    answer = client.call(CREATE_TOPICS, 5, CreateTopicsRequest(topics=[wanted], timeout_ms=60_000))
    assert answer.topics[0].error_code == 0, answer
