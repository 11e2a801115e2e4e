"""InitProducerId: ids that are never handed out twice, and owners of transactional ids."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas import Broker
from barnabas.errors import (
    ConcurrentTransactions,
    InvalidProducerEpoch,
    InvalidRequest,
    InvalidTransactionTimeout,
    NotCoordinator,
    ProducerFenced,
)
from barnabas.protocol.api import INIT_PRODUCER_ID
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.kit.broker.transactional import TransactionalProducer, find_coordinator
from tests.kit.raw_client import RawClient
from tests.kit.waiting import wait_until


def ask(  # type: ignore[no-untyped-def]
    client: RawClient, version: int = 2, transactional_id: str | None = None, **fields: int
):
    request = InitProducerIdRequest(
        transactional_id=transactional_id, **{"transaction_timeout_ms": 60_000, **fields}
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


@pytest.mark.parametrize("version", range(INIT_PRODUCER_ID.max_version + 1))
def test_a_transactional_id_has_one_owner_after_the_other(client: RawClient, version: int) -> None:
    """PR-7: in every version, each with an epoch that fences the last."""
    name = f"owned-{version}"
    find_coordinator(client, name)
    first, second = (ask(client, version, name) for _ in range(2))
    assert (first.error_code, first.producer_epoch) == (0, 0)
    assert (second.producer_id, second.producer_epoch) == (first.producer_id, 1)


def test_an_open_transaction_is_aborted_first(client: RawClient, topic: str) -> None:
    """PR-7"""
    old = TransactionalProducer(client, "aborted-first").begun()
    assert old.add(topic, 0, 1) == [0, 0]
    new = TransactionalProducer(client, "aborted-first")
    assert new.init() == ConcurrentTransactions.code
    wait_until(lambda: new.status == "CompleteAbort")
    assert new.init() == 0
    assert (new.producer_id, new.epoch) == (old.producer_id, old.epoch + 2)
    assert old.end(True) == ProducerFenced.code


@pytest.mark.parametrize(("version", "error"), [(3, InvalidProducerEpoch), (4, ProducerFenced)])
def test_a_fenced_owner(client: RawClient, version: int, error: type[ProducerFenced]) -> None:
    name = f"fenced-{version}"
    find_coordinator(client, name)
    old = ask(client, version, name)
    ask(client, version, name)
    again = ask(
        client,
        version,
        name,
        producer_id=old.producer_id,
        producer_epoch=old.producer_epoch,
    )
    assert (again.error_code, again.producer_id, again.producer_epoch) == (error.code, -1, -1)


def test_what_cannot_be(client: RawClient) -> None:
    find_coordinator(client, "odd")
    assert ask(client, 4, "").error_code == InvalidRequest.code
    assert ask(client, 4, "odd", producer_id=3).error_code == InvalidRequest.code
    for timeout_ms in (0, 900_001):
        answer = ask(client, 4, "odd", transaction_timeout_ms=timeout_ms)
        assert answer.error_code == InvalidTransactionTimeout.code


def test_before_anybody_asked_for_a_coordinator(client: RawClient) -> None:
    with Broker() as broker, RawClient(broker.bootstrap_servers) as stranger:
        answer = ask(stranger, 4, "hasty")
    assert answer.error_code in (NotCoordinator.code, 15)
    assert answer.producer_id == -1


def test_new_transactional_ids_over_blocks_of_producer_ids(client: RawClient) -> None:
    """The block that is at hand ends while transactional ids need new ones."""
    for _ in range(1000):
        ask(client)
    find_coordinator(client, "block")
    owners = {ask(client, 4, f"block-{i}").producer_id for i in range(20)}
    assert len(owners) == 20
    assert -1 not in owners
    for _ in range(975):
        ask(client)
    owners |= {ask(client, 4, f"block-{i}").producer_id for i in range(20, 40)}
    assert len(owners) == 40
    assert -1 not in owners
