"""One running broker for all foreign clients, and the processes of those that have their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.clients_in_use import PROCESSES
from tests.kit.processes.broker_process import broker_process
from tests.kit.raw_client import NO_TIDYING


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder: foreign clients can do on secured brokers what they can."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.secured)


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where one broker listens, in a process of its own, as a user starts it.

    All tests share it, so they name their topics themselves and leave other topics alone. In the
    end it stops in order and has complained of nothing.
    """
    options = (f"{name}={value}" for name, value in NO_TIDYING.items())
    with broker_process(tmp_path_factory.mktemp("broker"), *options) as broker:
        yield broker.bootstrap_servers
        assert broker.stop() == 0
        said = broker.log.read_text()
        assert "Traceback" not in said and "ERROR" not in said, said


@pytest.fixture(scope="session", autouse=True)
def _processes() -> Iterator[None]:
    """Ends the clients' processes."""
    yield
    for client in PROCESSES:
        client.close()
