"""What a producer is handed and cannot be sent: refused where it is handed over, by name (PR-1)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from barnabas.client import NewTopic, Producer, SyncAdmin, SyncProducer
from barnabas.client.errors import InvalidTopicName
from barnabas.client.producer.batch import ProducerRecord
from barnabas.errors import InvalidTopic
from tests.kit.pipeline.topics import read_all
from tests.kit.waiting import wait_until

if TYPE_CHECKING:
    from barnabas.testing.embedded.broker import Broker

pytestmark = pytest.mark.secured


def pairs() -> Iterator[tuple[str, bytes]]:
    yield "a", b"1"
    yield "b", b"2"


NO_RECORDS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"topic": 7}, TypeError, "topic"),
    ({"topic": b"bytes"}, TypeError, "topic"),
    ({"topic": ["list"]}, TypeError, "topic"),
    ({"topic": "x" * 250}, InvalidTopicName, "topic"),
    ({"topic": ".."}, InvalidTopicName, "topic"),
    ({"topic": "a b"}, InvalidTopic, "topic"),
    ({"topic": "lone\ud800"}, ValueError, "topic"),
    ({"value": "text"}, TypeError, "value"),
    ({"value": 1.5}, TypeError, "value"),
    ({"key": "text"}, TypeError, "key"),
    ({"key": 7}, TypeError, "key"),
    ({"partition": "0"}, TypeError, "partition"),
    ({"partition": 0.0}, TypeError, "partition"),
    ({"partition": True}, TypeError, "partition"),
    ({"partition": -1}, ValueError, "partition"),
    ({"partition": 2**31}, ValueError, "partition"),
    ({"timestamp_ms": 1.5}, TypeError, "timestamp_ms"),
    ({"timestamp_ms": float("nan")}, TypeError, "timestamp_ms"),
    ({"timestamp_ms": 2**63}, ValueError, "timestamp_ms"),
    ({"timestamp_ms": 10**5000}, ValueError, "timestamp_ms"),
    ({"timestamp_ms": -1}, ValueError, "timestamp_ms"),
    ({"headers": "text"}, TypeError, "headers"),
    ({"headers": {"a": 1}}, TypeError, "headers"),
    ({"headers": {b"a": b"1"}}, TypeError, "headers"),
    ({"headers": [("a", 1)]}, TypeError, "headers"),
    ({"headers": [(b"a", b"1")]}, TypeError, "headers"),
    ({"headers": ["ab"]}, TypeError, "headers"),
    ({"headers": [("a", b"1", b"2")]}, TypeError, "headers"),
    ({"headers": [("\ud800", b"1")]}, ValueError, "headers"),
    ({"headers": [("a", "\udfff")]}, ValueError, "headers"),
    ({"headers": 7}, TypeError, "headers"),
]


@pytest.mark.parametrize(("arguments", "problem", "name"), NO_RECORDS)
def test_what_cannot_be_sent_is_refused_by_name_and_nothing_is_lost(
    broker: Broker, arguments: dict[str, Any], problem: type[Exception], name: str
) -> None:
    """PR-1, PR-8: alike by both producers, which go on."""
    given = {"topic": "typed", "value": b"v", **arguments}
    with SyncProducer(broker.bootstrap_servers) as producer:
        with pytest.raises(problem, match=f"^{name}: "):
            producer.send(**given)
        with pytest.raises(problem, match=f"^{name}: "):
            producer.send_many([ProducerRecord(**given)])
        assert producer.send("typed", b"after").result(60).offset >= 0

    async def work() -> None:
        async with Producer(broker.bootstrap_servers) as producer:
            with pytest.raises(problem, match=f"^{name}: "):
                await producer.send(**given)
            await (await producer.send("typed", b"after"))

    asyncio.run(work())


def test_headers_may_be_text_and_whatever_can_be_walked(broker: Broker) -> None:
    """PR-1: text is sent as UTF-8."""
    with SyncProducer(broker.bootstrap_servers) as producer:
        producer.send("headed", b"0", headers=[("grüße", "schön"), ("none", None)])
        producer.send("headed", b"1", headers=pairs())  # type: ignore[arg-type]
        producer.send("headed", b"2", headers=None)
        producer.send("headed", b"3", headers={"a": "1", "b": None})
        producer.flush()
    found = [record.headers for record in read_all(broker, "headed", 4)]
    assert found == [
        (("grüße", "schön".encode()), ("none", None)),
        (("a", b"1"), ("b", b"2")),
        (),
        (("a", b"1"), ("b", None)),
    ]


def test_what_may_change_is_copied_when_it_is_accepted(broker: Broker) -> None:
    """PR-1: a buffer that the caller fills again is not sent twice."""
    with SyncProducer(broker.bootstrap_servers, linger_ms=60_000) as producer:
        value, key = bytearray(b"value"), bytearray(b"key")
        producer.send("copied", value, key)
        producer.send("copied", memoryview(value)[1:3], headers=[("h", value)])
        value[:], key[:] = b"XXXXX", b"YYY"
    first, second = read_all(broker, "copied", 2)
    assert (first.key, first.value) == (b"key", b"value")
    assert (second.value, second.headers) == (b"al", (("h", b"value"),))


@pytest.mark.parametrize("chosen", ["text", 1.0, None, 99])
def test_a_partitioner_that_chooses_badly_is_the_records_outcome(
    broker: Broker, chosen: Any
) -> None:
    """PR-2, PR-8: whatever it raises; the next record is sent."""
    answers = iter([chosen, 0])

    def choose(*_: object) -> int:
        answer: int = next(answers)
        return answer

    with SyncProducer(broker.bootstrap_servers, partitioner=choose) as producer:
        failed, sent = producer.send("chosen", b"v"), producer.send("chosen", b"v")
        assert isinstance(failed.exception(60), TypeError | ValueError)
        assert sent.result(60).partition == 0


def test_what_a_partitioner_raises_is_the_records_outcome(broker: Broker) -> None:
    """PR-8: the drain of the sync producer lives on, whatever is thrown at it."""

    def choose(*_: object) -> int:
        raise KeyError("no such key")

    with SyncProducer(broker.bootstrap_servers, partitioner=choose) as producer:
        failed = producer.send("choosing", b"v")
        assert isinstance(failed.exception(60), KeyError)
        assert producer.send("choosing", b"v", partition=0).result(60).offset >= 0


# ---- callbacks ----


def in_time(work: Callable[[], None]) -> None:
    """Let `work` end, or fail instead of hanging."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), "it hangs"


def test_a_callback_that_raises_is_logged_and_concerns_no_other_callback(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """PR-8: by the async producer; batches of other partitions have their outcome."""
    with SyncAdmin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("raising", 3)])

    async def work() -> None:
        async with Producer(broker.bootstrap_servers, linger_ms=10_000) as producer:
            deliveries = []
            for n in range(6):
                delivery = await producer.send("raising", b"%d" % n, partition=n % 3, headers=())
                delivery.add_done_callback(lambda delivery: 1 / 0)
                deliveries.append(delivery)
            async with asyncio.timeout(60):
                await producer.flush()
                places = [
                    (each.partition, each.offset) for each in await asyncio.gather(*deliveries)
                ]
            assert places == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]

    asyncio.run(work())
    said = [each.getMessage() for each in caplog.records if "callback" in each.getMessage()]
    assert len(said) == 6
    assert sum("raising-2 at offset 1" in each for each in said) == 1


def test_a_delivery_says_what_it_is_of_and_how_it_went(broker: Broker) -> None:
    """PR-8"""
    with SyncProducer(broker.bootstrap_servers, linger_ms=60_000) as producer:
        delivery = producer.send("shown", b"v")
        producer.partitions_for("shown")
        wait_until(lambda: delivery.delivery is not None)
        assert repr(delivery) == "SyncDelivery(shown-0, without an offset, waiting)"
        assert repr(delivery.delivery) == "Delivery(shown-0, without an offset, waiting)"
        producer.flush()
        assert repr(delivery) == "SyncDelivery(shown-0 at offset 0, stored)"
        (many,) = producer.send_many([ProducerRecord("shown", b"v")])
        producer.flush()
        assert repr(many) == "Delivery(shown-0 at offset 1, stored)"


def test_a_callback_of_the_sync_producer_that_raises_is_logged(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """PR-8."""
    with SyncProducer(broker.bootstrap_servers) as producer:
        delivery = producer.send("raising-sync", b"v")
        delivery.add_done_callback(lambda delivery: 1 / 0)
        producer.flush()
    assert "raising-sync-0 at offset 0" in caplog.text


def test_callbacks_may_send_ask_and_flush(broker: Broker) -> None:
    """PR-8: each in a chain sends the next, with more in the way than the outbox takes."""
    seen: list[int] = []

    def work() -> None:
        with SyncProducer(broker.bootstrap_servers) as producer:

            def follow(delivery: Any) -> None:
                seen.append(delivery.result().offset)
                if len(seen) < 8:
                    sent = [producer.send("chain", b"x" * 300_000) for _ in range(8)]
                    assert sent[0].result(60).offset > seen[-1]
                    producer.flush()
                    sent[-1].add_done_callback(follow)

            producer.send("chain", b"first").add_done_callback(follow)
            while len(seen) < 8:
                producer.flush()

    in_time(work)
    assert seen == sorted(seen) and len(seen) == 8


def test_callbacks_of_a_partition_keep_the_order_of_its_records(broker: Broker) -> None:
    """PR-8: and close waits for them."""
    heard: list[int] = []
    with SyncProducer(broker.bootstrap_servers) as producer:
        for n in range(3_000):
            producer.send("ordered", b"%d" % n, partition=0).add_done_callback(
                lambda delivery: heard.append(delivery.result().offset)
            )
    assert heard == list(range(3_000))


def test_a_callback_may_close_its_producer(broker: Broker) -> None:
    producer = SyncProducer(broker.bootstrap_servers)
    closed = threading.Event()

    def close(delivery: Any) -> None:
        producer.close()
        closed.set()

    producer.send("closing", b"v").add_done_callback(close)
    assert closed.wait(60)


def test_a_callback_is_called_when_its_producer_is_closed_already(broker: Broker) -> None:
    """PR-8: the outcome is known."""
    heard: list[int] = []
    with SyncProducer(broker.bootstrap_servers) as producer:
        delivery = producer.send("closed-already", b"v")
    delivery.add_done_callback(lambda delivery: heard.append(delivery.result().offset))
    assert heard == [0]
