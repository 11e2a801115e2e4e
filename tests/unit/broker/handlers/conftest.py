"""Brokers of a module's own: one whose groups do not wait for their first members, and one that
takes itself for a broker of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from barnabas import Broker
from barnabas.client import SyncAdmin
from tests.kit.broker.authorizers import authorized_by
from tests.kit.broker.cluster_calls import Member, cluster_member
from tests.kit.broker.group_calls import AT_ONCE, find_coordinator
from tests.kit.broker.secured import Secured, options, secured_broker, token
from tests.kit.raw_client import RawClient


@pytest.fixture(scope="module")
def group_node() -> Iterator[Broker]:
    with Broker(config=AT_ONCE) as broker:
        with RawClient(broker.bootstrap_servers) as client:
            find_coordinator(client)
        yield broker


@pytest.fixture(scope="module")
def peer() -> Iterator[Member]:
    """A broker of its own for requests of another controller."""
    with cluster_member() as one:
        yield one


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A broker with delegation tokens, and a listener where `alice` and others log in."""
    keys = tmp_path_factory.mktemp("keys")
    with secured_broker(keys, delegation_token_secret_key="planted-secret-key") as one:
        yield one


@pytest.fixture
def alice(secured: Secured) -> Iterator[SyncAdmin]:
    with SyncAdmin(secured.servers, **options("PLAIN")) as admin:
        yield admin


@pytest.fixture
def bob(secured: Secured) -> Iterator[SyncAdmin]:
    """Another user, who logs in by a signed token of a provider."""
    provider = {"sasl_oauth_token_provider": lambda: token("bob")}
    with SyncAdmin(secured.servers, **{**options("OAUTHBEARER"), **provider}) as admin:
        yield admin


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


@pytest.fixture
def offsets_topic(client: RawClient) -> None:
    """`__consumer_offsets`, which is created by the first request for a coordinator."""
    find_coordinator(client)


class Denying:
    """An authorizer that lets everything pass but for these names."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def allows(self, principal: object, address: str, needs: object, name: str) -> bool:
        return name not in self.names


@pytest.fixture
def deny(node: Broker) -> Iterator[object]:
    """Deny these names to everybody, until the test is over."""
    with ExitStack() as denied:

        def replace(*names: str) -> None:
            denied.enter_context(authorized_by(Denying(*names)))

        yield replace
