"""One broker for all tests of a module, and a raw connection to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas import Broker
from tests.kit.broker.replicated import Shared
from tests.kit.broker.topics import create, topic_id_of
from tests.kit.raw_client import RawClient


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
    name = _name_of(request)
    create(client, name)
    found = Shared(node, name, topic_id_of(client, name))
    found.change_role()
    return found


def _name_of(request: pytest.FixtureRequest) -> str:
    return "".join(c if c.isalnum() else "-" for c in request.node.name)[:200]
