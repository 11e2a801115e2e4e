"""The live view of `barnabas pages serve`: what is in the topic is in the stream, each event once,
whatever becomes of the broker and of the topic."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import barnabas
from barnabas.client import NewTopic, SyncProducer
from barnabas.client.sync.producer import SyncAdmin
from barnabas_pipeline.pages.now_feed import USUAL, Cluster, Limits, NowFeed
from barnabas_pipeline.pages.shapes import Kind, Now
from tests.kit.pipeline import event_records
from tests.kit.pipeline.web_records import line
from tests.kit.processes.broker_process import broker_process
from tests.kit.processes.web_console import PATIENCE_S, pages_server
from tests.kit.shapes import misfits
from tests.kit.waiting import until

pytestmark = pytest.mark.slow

TOPIC = "events"
_ids = itertools.count()


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a pipeline for events, with one event."""
    found = tmp_path_factory.mktemp("out")
    event_records.take(found / "tables", 0, event_records.records([event_records.event("1")]))
    return found


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def event(**more: Any) -> bytes:
    made = {"id": f"event-{next(_ids):08}", "time": now_ms(), "name": "pageview", **more}
    return json.dumps(made).encode()


def send(servers: str, count: int, **more: Any) -> None:
    with SyncProducer(servers) as producer:
        for _ in range(count):
            producer.send(TOPIC, event(url="https://shop.example/basket", **more))


def await_now(found: Iterator[Now], condition: Callable[[Now], object]) -> Now:
    """Return the first state for which the condition holds. Fails after a minute."""
    ends_at_s = time.monotonic() + PATIENCE_S
    for each in found:
        if condition(each):
            return each
        assert time.monotonic() < ends_at_s, each
    raise AssertionError("the stream ended")


def test_events_are_in_the_stream(out: Path) -> None:
    with (
        barnabas.Broker() as broker,
        pages_server(out, "--bootstrap-server", broker.bootstrap_servers) as server,
    ):
        servers = broker.bootstrap_servers
        with server.follow("/api/now/stream") as found:
            # The topic does not exist yet.
            await_now(found, lambda each: "there is no topic 'events'" in each["problem"])
            send(servers, 20, visitor="visitor-a")
            send(servers, 1, visitor="visitor-b")
            now = await_now(found, lambda each: each["hits"] == 21)
            assert list(misfits(now, Now)) == []
            assert (now["problem"], now["online"], now["errors"]) == ("", 2, 0)
            assert {"label": "/basket", "count": 21} in now["lists"][0]["rows"]
            assert sum(each["hits"] for each in now["minutes"]) == 21
            with SyncProducer(servers) as producer:
                producer.send(TOPIC, b"\xff not an event")
                producer.send(TOPIC, event(name="error"), timestamp_ms=2**61)
            await_now(found, lambda each: (each["rejected"], each["errors"]) == (1, 1))
            # A second viewer sees the same.
            with server.follow("/api/now/stream") as others:
                await_now(others, lambda each: each["hits"] == 22)


def test_a_killed_broker_neither_loses_nor_repeats_an_event(out: Path, tmp_path: Path) -> None:
    with broker_process(tmp_path) as broker:
        servers = broker.bootstrap_servers
        send(servers, 50)
        with (
            pages_server(out, "--bootstrap-server", servers) as server,
            server.follow("/api/now/stream") as found,
        ):
            await_now(found, lambda each: each["hits"] == 50)
            for sent in (80, 110):
                broker.kill()
                await_now(found, lambda each: each["problem"])
                broker.start()
                send(servers, 30)
                now = await_now(found, lambda each, sent=sent: each["hits"] >= sent)  # type: ignore[misc]
                assert (now["hits"], now["problem"]) == (sent, "")


def test_of_a_topic_that_is_deleted_and_created_again_all_records_are_counted(out: Path) -> None:
    with (
        barnabas.Broker() as broker,
        pages_server(out, "--bootstrap-server", broker.bootstrap_servers) as server,
        SyncAdmin(broker.bootstrap_servers) as admin,
        server.follow("/api/now/stream") as found,
    ):
        servers = broker.bootstrap_servers
        admin.create_topics([NewTopic(TOPIC, 2)])
        send(servers, 10)
        await_now(found, lambda each: each["hits"] == 10)
        admin.delete_topics([TOPIC])
        await_now(found, lambda each: "there is no topic 'events'" in each["problem"])
        admin.create_topics([NewTopic(TOPIC, 1)])
        send(servers, 5)
        await_now(found, lambda each: each["hits"] == 15 and not each["problem"])
        admin.create_partitions(TOPIC, 3)
        send(servers, 40)
        await_now(found, lambda each: each["hits"] == 55)


def test_without_a_cluster_there_is_no_live_view(out: Path) -> None:
    with pages_server(out) as server:
        answer = server.ask("/api/now/stream")
        assert answer.status == 404 and "--bootstrap-server" in answer.json["error"]


# ---- the feed by itself ----


async def shown(found: AsyncGenerator[Now | None, None], condition: Callable[[Now], object]) -> Now:
    async with asyncio.timeout(PATIENCE_S):
        async for each in found:
            if each is not None and condition(each):
                return each
    raise AssertionError("the feed ended")


def feed(broker: barnabas.Broker, limits: Limits = USUAL) -> NowFeed:
    return NowFeed("events", Cluster(broker.bootstrap_servers, {}, TOPIC), limits)


def test_it_reads_only_while_somebody_watches() -> None:
    async def run(broker: barnabas.Broker) -> None:
        before = set(asyncio.all_tasks())
        live = feed(broker, Limits(kept_s=0.0))
        for hits in (3, 6):
            await asyncio.to_thread(send, broker.bootstrap_servers, 3)
            found = live.watch()
            await shown(found, lambda each, hits=hits: each["hits"] == hits)  # type: ignore[misc]
            await found.aclose()
            await until(lambda: asyncio.all_tasks() == before)
        await live.close()

    with barnabas.Broker() as broker:
        asyncio.run(run(broker))


def test_records_of_aborted_transactions_are_not_counted() -> None:
    async def run(broker: barnabas.Broker) -> None:
        live = feed(broker)
        found = live.watch()
        await shown(found, lambda each: each["hits"] == 2)
        await live.close()

    with barnabas.Broker() as broker:
        with SyncProducer(broker.bootstrap_servers, transactional_id="shop") as producer:
            producer.init_transactions()
            for is_kept in (True, False, True):
                producer.begin_transaction()
                producer.send(TOPIC, event())
                producer.commit_transaction() if is_kept else producer.abort_transaction()
        asyncio.run(run(broker))


def test_older_records_are_skipped() -> None:
    """Those that arrived before, unseen; and those that arrive late, as such."""
    old_ms = now_ms() - 3_600_000

    async def run(broker: barnabas.Broker) -> None:
        live = feed(broker)
        found = live.watch()
        now = await shown(found, lambda each: each["hits"] == 1)
        assert now["older"] == 1
        await live.close()

    with barnabas.Broker() as broker:
        with SyncProducer(broker.bootstrap_servers) as producer:
            for _ in range(50):
                producer.send(TOPIC, event(time=old_ms), timestamp_ms=old_ms)
            producer.flush()
            producer.send(TOPIC, event(time=old_ms))
            producer.send(TOPIC, event())
        asyncio.run(run(broker))


def test_with_too_many_records_the_view_begins_later() -> None:
    async def run(broker: barnabas.Broker) -> None:
        live = feed(broker, Limits(most_records=100))
        found = live.watch()
        now = await shown(found, lambda each: each["hits"] >= 100)
        assert now["hits"] == 100
        assert now["note"] == (
            "Counting began with the last 15 minutes: the half hour has more than 100 records."
        )
        await live.close()

    with barnabas.Broker() as broker:
        with SyncProducer(broker.bootstrap_servers) as producer:
            for age_ms, count in ((20 * 60_000, 50), (0, 100)):
                for _ in range(count):
                    at_ms = now_ms() - age_ms
                    producer.send(TOPIC, event(time=at_ms), timestamp_ms=at_ms)
                producer.flush()
        asyncio.run(run(broker))


@pytest.mark.parametrize("kind", ["access", "logs"])
def test_logs_are_read_as_well(kind: Kind) -> None:
    clock = time.gmtime()
    hit = line(day=time.strftime("%d/%b/%Y", clock), clock=time.strftime("%H:%M:%S", clock))
    entry = time.strftime("%Y-%m-%dT%H:%M:%SZ gate sshd[7]: error: no route", clock).encode()
    value = hit if kind == "access" else entry

    async def run(broker: barnabas.Broker) -> None:
        live = NowFeed(kind, Cluster(broker.bootstrap_servers, {}, "lines"))
        found = live.watch()
        now = await shown(found, lambda each: each["hits"] == 7)
        assert now["online"] == (1 if kind == "access" else None)
        await live.close()

    with barnabas.Broker() as broker:
        with SyncProducer(broker.bootstrap_servers) as producer:
            for _ in range(7):
                producer.send("lines", value)
        asyncio.run(run(broker))
