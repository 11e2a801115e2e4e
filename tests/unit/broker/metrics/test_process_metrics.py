"""The process of a broker that serves metrics, measured by the broker itself."""

from __future__ import annotations

import asyncio
import gc
import os
import time

import psutil

from barnabas.broker.metrics.process_metrics import ProcessMetrics
from barnabas.metrics import Registry
from tests.kit.broker.following import run
from tests.kit.broker.metric_pages import page_of, samples
from tests.kit.waiting import until

LAG = "barnabas_event_loop_lag_ms"
PAUSES = "barnabas_gc_pause_ms"


def test_in_3_the_lag_of_the_loop_and_the_pauses_of_the_collector() -> None:
    async def test() -> None:
        registry = Registry()
        metrics = ProcessMetrics(registry)
        metrics.start()
        try:
            before = samples(page_of(registry))
            assert before[f"{LAG}_count"] == 0
            gc.collect()
            after = samples(page_of(registry))
            count = f'{PAUSES}_count{{generation="2"}}'
            assert after[count] == before[count] + 1
            assert after[f'{PAUSES}_sum{{generation="2"}}'] > 0
            await until(lambda: samples(page_of(registry))[f"{LAG}_count"] >= 1)
            so_far = samples(page_of(registry))[f"{LAG}_sum"]
            time.sleep(0.6)
            await until(lambda: samples(page_of(registry))[f"{LAG}_sum"] > so_far + 300)
        finally:
            metrics.stop()
        assert metrics not in [getattr(each, "__self__", None) for each in gc.callbacks]

    run(test)


def test_in_3_the_process_is_seen_as_others_see_it() -> None:
    registry = Registry()
    ProcessMetrics(registry)
    found = samples(page_of(registry))
    process = psutil.Process()
    assert abs(found["process_start_time_seconds"] - process.create_time()) < 2
    assert abs(found["process_resident_memory_bytes"] / process.memory_info().rss - 1) < 0.2
    assert found["process_virtual_memory_bytes"] > found["process_resident_memory_bytes"]
    spent = os.times()
    assert 0 < found["process_cpu_seconds_total"] <= spent.user + spent.system
    assert 0 < found["process_open_fds"] < found["process_max_fds"]


def test_a_broker_that_stops_measures_no_more() -> None:
    async def test() -> None:
        metrics = ProcessMetrics(Registry())
        metrics.stop()  # before it has begun
        metrics.start()
        metrics.stop()
        metrics.stop()
        assert len(asyncio.all_tasks()) == 1

    run(test)
