"""A broker whose groups do not wait for their first members, for the tests of groups' APIs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas import Broker
from tests.raw_client import RawClient
from tests.unit.broker.handlers.group_calls import AT_ONCE, find_coordinator


@pytest.fixture(scope="module")
def group_node() -> Iterator[Broker]:
    with Broker(config=AT_ONCE) as broker:
        with RawClient(broker.bootstrap_servers) as client:
            find_coordinator(client)
        yield broker


@pytest.fixture
def member(group_node: Broker) -> Iterator[RawClient]:
    with RawClient(group_node.bootstrap_servers) as client:
        yield client


@pytest.fixture
def other(group_node: Broker) -> Iterator[RawClient]:
    with RawClient(group_node.bootstrap_servers) as client:
        yield client


@pytest.fixture
def group(request: pytest.FixtureRequest) -> str:
    """A group id of the test's own."""
    return str(request.node.name)
