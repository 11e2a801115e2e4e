"""LG-2: a sender receives its confirmation once the brokers acknowledge its log records."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

import pytest

from barnabas_collector.bundle import Bundle
from barnabas_collector.collector_metrics import CollectorMetrics
from barnabas_collector.inbox import Inbox
from barnabas_collector.otlp_messages import TOO_LARGE, Refusal
from barnabas_collector.otlp_receipts import BUSY, Receipts
from barnabas_collector.shipment import Shipment

pytest.importorskip("opentelemetry.proto", reason="needs opentelemetry-proto")

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
)


def body(resources: int = 1, text: str = "text") -> bytes:
    made = ExportLogsServiceRequest()
    for _ in range(resources):
        scope = made.resource_logs.add().scope_logs.add()
        scope.log_records.add().body.string_value = text
    return made.SerializeToString()


def run(
    work: Callable[[Receipts, Inbox], Coroutine[None, None, None]], patience_s: float = 0.0
) -> CollectorMetrics:
    metrics = CollectorMetrics()

    async def start() -> None:
        inbox = Inbox(most_bytes=10_000, redact=bytes.upper)
        shipment = Shipment("", "", "", "host", redact=bytes.upper, metrics=metrics)
        await work(Receipts(inbox, shipment, patience_s), inbox)

    asyncio.run(start())
    return metrics


async def accept(receipts: Receipts, given: bytes) -> None:
    await receipts.outcome(await receipts.accept(given, is_json=False, peer="10.0.0.1"))


def store(bundles: list[Bundle]) -> None:
    for bundle in bundles:
        assert bundle.awaited is not None
        bundle.awaited.on_stored()


def test_it_waits_for_all_records_of_a_request() -> None:
    async def work(receipts: Receipts, inbox: Inbox) -> None:
        waiting = asyncio.create_task(accept(receipts, body(2)))
        first, second = await inbox.take()
        assert b"TEXT" in first.texts[0]
        assert dict(first.origin.headers)["otlp.encoding"] == b"otlp_proto"
        store([first])
        await asyncio.sleep(0)
        assert not waiting.done()
        store([second])
        await asyncio.wait_for(waiting, 10)

    assert run(work, 60.0).otlp_records.value == 2


def test_a_request_without_log_records_is_stored_at_once() -> None:
    async def work(receipts: Receipts, inbox: Inbox) -> None:
        await accept(receipts, b"")
        assert inbox.is_empty

    run(work)


def test_the_same_request_takes_over_the_outcome_of_the_first_once() -> None:
    """Whether the brokers acknowledge it before the sender tries again or later."""

    async def work(receipts: Receipts, inbox: Inbox) -> None:
        for is_late in (False, True):
            with pytest.raises(Refusal) as caught:
                await accept(receipts, body())
            assert caught.value.reason == BUSY
            bundles = await inbox.take()
            if is_late:
                with pytest.raises(Refusal):
                    await accept(receipts, body())
            store(bundles)
            await accept(receipts, body())
            assert inbox.is_empty
        # It is another request with the same bytes.
        with pytest.raises(Refusal):
            await accept(receipts, body())
        assert not inbox.is_empty

    run(work)


def test_a_request_that_is_under_way_is_not_another_one_with_the_same_bytes() -> None:
    async def work(receipts: Receipts, inbox: Inbox) -> None:
        waiting = [asyncio.create_task(accept(receipts, body())) for _ in range(2)]
        bundles = await inbox.take()
        assert len(bundles) == 2
        store(bundles)
        await asyncio.gather(*waiting)

    run(work, 60.0)


def test_an_unsaid_answer_is_for_the_same_request() -> None:
    async def work(receipts: Receipts, inbox: Inbox) -> None:
        receipt = await receipts.accept(body(), is_json=False, peer="")
        store(await inbox.take())
        receipts.on_unsaid(receipt)
        await accept(receipts, body())
        assert inbox.is_empty

    run(work)


def test_what_the_brokers_refuse_is_refused() -> None:
    async def work(receipts: Receipts, inbox: Inbox) -> None:
        waiting = asyncio.create_task(accept(receipts, body()))
        (bundle,) = await inbox.take()
        assert bundle.awaited is not None
        bundle.awaited.on_refused(ValueError("too long"))
        with pytest.raises(Refusal, match="too long") as caught:
            await waiting
        assert caught.value.reason == TOO_LARGE

    run(work, 60.0)


def test_without_room_nothing_is_taken() -> None:
    async def work(receipts: Receipts, inbox: Inbox) -> None:
        receipts.check_room()
        large = body(text="x" * 200_000)
        waiting = asyncio.create_task(accept(receipts, large))
        bundles = await inbox.take()
        with pytest.raises(Refusal, match="too slow") as caught:
            receipts.check_room()
        assert caught.value.reason == BUSY
        with pytest.raises(Refusal, match="too slow"):
            await receipts.accept(body(), is_json=False, peer="")
        store(bundles)
        inbox.release(bundles)
        await waiting
        receipts.check_room()

    run(work, 60.0)


def test_a_refusal_is_logged_without_secrets_and_on_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def work(receipts: Receipts, inbox: Inbox) -> None:
        receipts.on_refused(Refusal("malformed", "not a number: \x1bsecret\n"), "10.0.0.1")

    assert run(work).otlp_refused == {"malformed": 1}
    (record,) = caplog.records
    assert record.getMessage() == (
        "1 OTLP request was refused: malformed, from 10.0.0.1: NOT A NUMBER: \\x1bSECRET\\n"
    )


def test_at_the_end_all_senders_are_told_to_keep_theirs() -> None:
    async def work(receipts: Receipts, inbox: Inbox) -> None:
        waiting = asyncio.create_task(accept(receipts, body()))
        await inbox.take()
        receipts.give_up()
        for each in (waiting, accept_later(receipts)):
            with pytest.raises(Refusal) as caught:
                await each
            assert caught.value.reason == BUSY

    async def accept_later(receipts: Receipts) -> None:
        await accept(receipts, body(text="another"))

    run(work, 60.0)
