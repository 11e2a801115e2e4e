"""Provides fixtures for pytest: a broker, a cluster, a topic, a producer and a consumer.

    def test_orders(barnabas_producer, barnabas_topic):
        barnabas_producer.send(barnabas_topic.name, b"one")
        barnabas_topic.wait_for_records(1)

Each test that uses a broker gets a new one, which takes a few milliseconds. To share a broker
between tests, set the ini option `barnabas_scope`, or use a fixture with a scope in its name. Every
pytest-xdist worker has its own brokers. Nothing but pytest is imported before a fixture is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pytest

if TYPE_CHECKING:
    from barnabas.client.sync.producer import SyncConsumer, SyncProducer
    from barnabas.testing.embedded.broker import Broker
    from barnabas.testing.embedded.cluster import Cluster
    from barnabas.testing.embedded.topic import Topic

Scope: TypeAlias = Literal["function", "class", "module", "package", "session"]

_SCOPES: tuple[Scope, ...] = ("function", "class", "module", "package", "session")
_MARKER = (
    "barnabas(**arguments): arguments of the test's barnabas.Broker or barnabas.Cluster, such as "
    "config={...}, brokers=5 or process=True"
)
_NAME_LIMIT = 200


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "barnabas_scope",
        "the scope of the fixtures barnabas_broker and barnabas_cluster: function, class, module, "
        "package or session",
        default="function",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)
    # Report a misspelt scope at the start, rather than in the first test that uses a fixture.
    _scope("barnabas_broker", config)


def _scope(fixture_name: str, config: pytest.Config) -> Scope:
    given = config.getini("barnabas_scope")
    for scope in _SCOPES:
        if given == scope:
            return scope
    raise pytest.UsageError(f"barnabas_scope: {given!r} is not one of {', '.join(_SCOPES)}")


@pytest.fixture(scope="session")
def barnabas_config() -> Mapping[str, Any]:
    """Return the broker configs for every fixture. To change them, override this fixture in a
    conftest.py.
    """
    return {}


@pytest.fixture(scope=_scope)
def barnabas_broker(
    request: pytest.FixtureRequest, barnabas_config: Mapping[str, Any]
) -> Iterator[Broker]:
    """Provide a running `barnabas.Broker`, for each test or for the scope in `barnabas_scope`."""
    yield from _broker(request, barnabas_config)


@pytest.fixture(scope="module")
def barnabas_module_broker(
    request: pytest.FixtureRequest, barnabas_config: Mapping[str, Any]
) -> Iterator[Broker]:
    """Provide one broker for all tests in a module."""
    yield from _broker(request, barnabas_config)


@pytest.fixture(scope="session")
def barnabas_session_broker(
    request: pytest.FixtureRequest, barnabas_config: Mapping[str, Any]
) -> Iterator[Broker]:
    """Provide one broker for all tests."""
    yield from _broker(request, barnabas_config)


@pytest.fixture(scope=_scope)
def barnabas_cluster(
    request: pytest.FixtureRequest, barnabas_config: Mapping[str, Any]
) -> Iterator[Cluster]:
    """Provide a `barnabas.Cluster` of three brokers, for each test or for the scope in
    `barnabas_scope`."""
    yield from _cluster(request, barnabas_config)


@pytest.fixture(scope="module")
def barnabas_module_cluster(
    request: pytest.FixtureRequest, barnabas_config: Mapping[str, Any]
) -> Iterator[Cluster]:
    """Provide one cluster for all tests in a module."""
    yield from _cluster(request, barnabas_config)


@pytest.fixture(scope="session")
def barnabas_session_cluster(
    request: pytest.FixtureRequest, barnabas_config: Mapping[str, Any]
) -> Iterator[Cluster]:
    """Provide one cluster for all tests."""
    yield from _cluster(request, barnabas_config)


@pytest.fixture
def barnabas_topic(request: pytest.FixtureRequest, barnabas_broker: Broker) -> Topic:
    """Provide a topic with one partition. It is used by this test only and named after the test."""
    return barnabas_broker.topic(
        _topic_name(request.node.name, barnabas_broker.topics()), partitions=1
    )


@pytest.fixture
def barnabas_producer(barnabas_broker: Broker) -> Iterator[SyncProducer]:
    """Provide a `SyncProducer` for `barnabas_broker`."""
    with barnabas_broker.producer() as producer:
        yield producer


@pytest.fixture
def barnabas_consumer(barnabas_broker: Broker, barnabas_topic: Topic) -> Iterator[SyncConsumer]:
    """Provide a `SyncConsumer` that reads `barnabas_topic` from the first record on, in a group
    named after the topic.
    """
    topic = barnabas_topic.name
    with barnabas_broker.consumer(topic, group_id=topic) as consumer:
        yield consumer


def _topic_name(test: str, existing: Iterable[str]) -> str:
    """Return an unused topic name based on the test's name. Kafka rejects a name that differs from
    another only in . and _.
    """
    wanted = re.sub(r"[^a-zA-Z0-9._-]+", "-", test).strip("-.")[:_NAME_LIMIT] or "test"
    taken = {name.replace(".", "_") for name in existing}
    name, count = wanted, 1
    while name.replace(".", "_") in taken:
        count += 1
        name = f"{wanted}-{count}"
    return name


def _broker(request: pytest.FixtureRequest, config: Mapping[str, Any]) -> Iterator[Broker]:
    from barnabas.testing.embedded.broker import Broker

    with Broker(**_arguments(request, config)) as broker:
        yield broker


def _cluster(request: pytest.FixtureRequest, config: Mapping[str, Any]) -> Iterator[Cluster]:
    from barnabas.testing.embedded.cluster import Cluster

    with Cluster(**_arguments(request, config)) as cluster:
        yield cluster


def _arguments(request: pytest.FixtureRequest, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of the marker closest to the fixture's test, module or session."""
    marker = request.node.get_closest_marker("barnabas")
    if marker is not None and marker.args:
        raise ValueError(
            f"barnabas{marker.args!r}: this marker takes only keyword arguments, such as "
            "config={...}"
        )
    arguments = {} if marker is None else dict(marker.kwargs)
    # The marker's configs are merged into the fixture's, and take precedence.
    return {**arguments, "config": {**config, **(arguments.get("config") or {})}}
