"""PR-7: transactions as blocks whose end has no answer in time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import barnabas
from barnabas.client import Producer, SyncProducer
from barnabas.client.errors import Unreachable
from barnabas.errors import CoordinatorLoadInProgress
from tests.kit.client_transactions import name
from tests.kit.waiting import until

pytestmark = pytest.mark.secured

IMPATIENT: dict[str, Any] = {"max_block_ms": 500, "request_timeout_ms": 300}

FAULTS: list[dict[str, Any]] = [
    {"error": "COORDINATOR_LOAD_IN_PROGRESS"},  # it is not carried out
    {"drop": True},  # it is, without an answer
]


@pytest.mark.parametrize("fault", FAULTS, ids=["refused", "unanswered"])
def test_pr_7_the_next_block_finishes_the_commit(
    broker: barnabas.Broker, fault: dict[str, Any]
) -> None:
    topic = name("blocks")
    servers = broker.bootstrap_servers
    with SyncProducer(servers, transactional_id=topic, **IMPATIENT) as producer:
        with (
            broker.faults.add(api="EndTxn", **fault),
            pytest.raises((CoordinatorLoadInProgress, Unreachable)) as caught,
            producer.transaction(),
        ):
            producer.send(topic, b"first")
        (note,) = caught.value.__notes__
        assert "do not send these records again" in note
        with producer.transaction():
            producer.send(topic, b"second")
    assert broker.topic(topic).values(isolation_level="read_committed") == [b"first", b"second"]


def test_pr_7_the_next_block_finishes_the_abort(broker: barnabas.Broker) -> None:
    topic = name("blocks")

    async def run() -> None:
        options = {"transactional_id": topic, **IMPATIENT}
        async with Producer(broker.bootstrap_servers, **options) as producer:
            refusing = broker.faults.add(api="EndTxn", error="COORDINATOR_LOAD_IN_PROGRESS")
            with refusing, pytest.raises(KeyError):
                async with producer.transaction():
                    await (await producer.send(topic, b"first"))
                    raise KeyError
            async with producer.transaction():
                await producer.send(topic, b"second")

    asyncio.run(run())
    assert broker.topic(topic).values(isolation_level="read_committed") == [b"second"]


def test_pr_7_a_block_cancelled_while_records_are_under_way_is_aborted(
    broker: barnabas.Broker,
) -> None:
    topic = name("blocks")

    async def run() -> None:
        async with Producer(broker.bootstrap_servers, transactional_id=topic) as producer:
            is_ending = asyncio.Event()

            async def block() -> None:
                async with producer.transaction():
                    await producer.send(topic, b"first")
                    is_ending.set()

            with broker.faults.add(api="Produce", error="NOT_ENOUGH_REPLICAS") as refusing:
                task = asyncio.create_task(block())
                await is_ending.wait()
                await until(lambda: refusing.hits > 0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            async with producer.transaction():
                await producer.send(topic, b"second")

    asyncio.run(run())
    assert broker.topic(topic).values(isolation_level="read_committed") == [b"second"]
