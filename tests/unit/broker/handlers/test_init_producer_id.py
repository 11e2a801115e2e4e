"""InitProducerId: ids that are never handed out twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas import Broker
from barnabas.errors import CoordinatorNotAvailable, InvalidRequest
from barnabas.protocol.api import INIT_PRODUCER_ID
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.raw_client import RawClient


def ask(client: RawClient, version: int = 2, transactional_id: str | None = None):  # type: ignore[no-untyped-def]
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=60_000
    )
    return client.call(INIT_PRODUCER_ID, version, request)


@pytest.mark.parametrize("version", range(INIT_PRODUCER_ID.max_version + 1))
def test_a_new_id_in_every_version(client: RawClient, version: int) -> None:
    """PR-6"""
    first, second = ask(client, version), ask(client, version)
    assert (first.error_code, first.producer_epoch) == (0, 0)
    assert second.producer_id > first.producer_id


def test_ids_go_on_over_blocks_and_restarts(tmp_path: Path) -> None:
    """A block is taken before its first id is used, so none comes twice."""
    seen: list[int] = []
    for _ in range(2):
        with Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
            seen += [ask(client).producer_id for _ in range(1002)]
    assert len(set(seen)) == len(seen)
    assert seen == sorted(seen)


def test_transactions_have_no_coordinator_yet(client: RawClient) -> None:
    assert ask(client, transactional_id="tx").error_code == CoordinatorNotAvailable.code
    assert ask(client, transactional_id="").error_code == InvalidRequest.code
