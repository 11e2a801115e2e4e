"""The brokers that our own clients are tried against, ours and the one that they copy; and commands
that are typed for a broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import barnabas
from benchmarks import brokers
from tests.kit.processes.chromium import chromium
from tests.kit.processes.command_line import InProcess, Shell
from tests.kit.processes.zookeeper_process import ZooKeeperProcess, zookeeper_process

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NO_WAITING = {"group.initial.rebalance.delay.ms": "0"}


@pytest.fixture(scope="session", params=["barnabas", pytest.param("kafka", marks=pytest.mark.slow)])
def servers(request: pytest.FixtureRequest) -> str:
    """Where a broker listens that coordinates groups and transactions: Barnabas or Kafka 3.9.

    All tests share it, so they name their topics, groups and transactional ids themselves.
    """
    found: str = request.getfixturevalue(f"{request.param}_servers")
    return found


@pytest.fixture(scope="session")
def barnabas_servers() -> Iterator[str]:
    config = {
        **NO_WAITING,
        "group.min.session.timeout.ms": "500",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    }
    with barnabas.Broker(config=config) as running:
        yield running.bootstrap_servers


@pytest.fixture(scope="session")
def kafka_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One for all files: it stays when they go back and forth between the two."""
    with brokers.kafka(tmp_path_factory.mktemp("kafka"), settings=NO_WAITING) as kafka:
        yield kafka.servers


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperProcess]:
    """A real ZooKeeper with an empty tree, one for each file."""
    with zookeeper_process(tmp_path_factory.mktemp("zookeeper")) as running:
        yield running


@pytest.fixture
def root(zookeeper: ZooKeeperProcess, tmp_path: Path) -> str:
    """A connect string with a chroot that no other test has."""
    return f"{zookeeper.connect}/{tmp_path.name}"


@pytest.fixture
def shell(broker: barnabas.Broker) -> Shell:
    return Shell(broker)


@pytest.fixture(name="barnabas")
def in_process(broker: barnabas.Broker, capfdbinary: pytest.CaptureFixture[bytes]) -> InProcess:
    return InProcess(broker, capfdbinary)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running
