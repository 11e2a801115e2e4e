"""ListTransactions: the ids that a broker coordinates, of all partitions together (KIP-664)."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas import Broker
from barnabas.protocol.api import LIST_TRANSACTIONS
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from tests.kit.broker.transactional import TransactionalProducer
from tests.kit.raw_client import RawClient


def ask(client: RawClient, version: int = 1, **filters: Any) -> Any:
    answer: Any = client.call(LIST_TRANSACTIONS, version, ListTransactionsRequest(**filters))
    assert answer.error_code == 0
    return answer


def listed(client: RawClient, **filters: Any) -> set[str]:
    return {state.transactional_id for state in ask(client, **filters).transaction_states}


@pytest.mark.parametrize("version", [0, 1])
def test_all_in_every_version(client: RawClient, version: int) -> None:
    names = {f"v{version}-{i}" for i in range(10)}
    owners = {name: TransactionalProducer(client, name).begun() for name in names}
    states = {state.transactional_id: state for state in ask(client, version).transaction_states}
    assert names <= states.keys()
    for name in names:
        assert states[name].transaction_state == "Empty"
        assert states[name].producer_id == owners[name].producer_id


def test_filters(client: RawClient, topic: str) -> None:
    idle = TransactionalProducer(client, f"{topic}-idle").begun()
    busy = TransactionalProducer(client, f"{topic}-busy").begun()
    busy.add(topic, 0)
    assert busy.name in listed(client, state_filters=["Ongoing"])
    assert idle.name not in listed(client, state_filters=["Ongoing"])
    assert listed(client, producer_id_filters=[idle.producer_id]) == {idle.name}
    assert busy.name not in listed(client, duration_filter=60_000)


def test_unknown_states_are_named(client: RawClient) -> None:
    answer = ask(client, state_filters=["Ongoing", "Nonsense", "Nonsense"])
    assert answer.unknown_state_filters == ["Nonsense"]


def test_before_the_first_transaction() -> None:
    with Broker() as broker, RawClient(broker.bootstrap_servers) as client:
        assert ask(client, state_filters=["x"]).transaction_states == []
