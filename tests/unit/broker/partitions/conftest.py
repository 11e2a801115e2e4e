"""A broker whose cleaner is driven by the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas import Broker
from tests.kit.broker.cleaned import Cleaned
from tests.kit.raw_client import RawClient


@pytest.fixture
def cleaned(tmp_path: Path) -> Iterator[Cleaned]:
    config = {"log.cleaner.enable": "false"}
    with Broker(tmp_path, config=config) as broker, RawClient(broker.bootstrap_servers) as client:
        yield Cleaned(broker, client)
