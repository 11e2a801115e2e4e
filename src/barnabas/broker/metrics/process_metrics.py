"""Measures the broker process's memory, CPU time, descriptors, event loop lag and GC pauses.

Every Prometheus client uses these `process_*` names, whereas Kafka's names describe a JVM. Nothing
is measured unless the broker serves metrics, because measuring the lag requires a timer and
measuring the pauses requires two calls per collection.
"""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from barnabas.broker.runtime.descriptors import of_this_process
from barnabas.clock import spent_ns
from barnabas.metrics import (
    QUANTILES,
    Durations,
    Family,
    Registry,
    Sample,
    counter,
    gauge,
    quantiles,
    summary,
)

_PROC = Path("/proc")
_LAG_EVERY_S = 0.25


class ProcessMetrics:
    """Collects process metrics on the broker's event loop, between calls of `start` and `stop`."""

    def __init__(self, metrics: Registry) -> None:
        self._lag = Durations()
        self._pauses = [Durations() for _ in range(3)]  # by generation
        self._pause_from_ns = 0
        self._due_ns = 0
        self._timer: asyncio.TimerHandle | None = None
        metrics.declare(self._own_families)
        metrics.declare(_process_families)

    def start(self) -> None:
        """Start measuring."""
        gc.callbacks.append(self._collected)
        self._wait()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            gc.callbacks.remove(self._collected)

    # --- the loop --------------------------------------------------------------------------------

    def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        self._due_ns = spent_ns() + round(_LAG_EVERY_S * 1e9)
        self._timer = loop.call_later(_LAG_EVERY_S, self._look)

    def _look(self) -> None:
        """Measure how late the event loop calls the timer."""
        self._lag.add(max(0, spent_ns() - self._due_ns))
        self._wait()

    # --- the collector ---------------------------------------------------------------------------

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        now_ns = spent_ns()
        if phase == "start":
            self._pause_from_ns = now_ns
        elif self._pause_from_ns:
            self._pauses[info["generation"]].add(now_ns - self._pause_from_ns)

    # --- families --------------------------------------------------------------------------------

    def _own_families(self) -> Iterator[Family]:
        yield summary(
            "barnabas_event_loop_lag_ms",
            "Lag of the event loop, measured by a timer that is due every 250 ms",
            list(_summary(self._lag)),
        )
        yield summary(
            "barnabas_gc_pause_ms",
            "Pauses of the process by Python's garbage collector",
            [
                sample
                for generation, pauses in enumerate(self._pauses)
                for sample in _summary(pauses, (("generation", str(generation)),))
            ],
        )


def _summary(durations: Durations, labels: tuple[tuple[str, str], ...] = ()) -> Iterator[Sample]:
    values = quantiles(durations.lately(spent_ns()))
    for (_, label), value in zip(QUANTILES, values, strict=True):
        yield Sample(value, (*labels, ("quantile", label)))
    yield Sample(durations.sum_ns / 1e6, labels, "_sum")
    yield Sample(sum(durations.counts), labels, "_count")


def _process_families() -> Iterator[Family]:
    """Yield the metrics that are available on this system. For example, macOS has no /proc."""
    spent = os.times()
    yield counter(
        "process_cpu_seconds_total",
        "Total user and system CPU time of the process",
        [Sample(spent.user + spent.system)],
    )
    found = of_this_process()
    if found.limit < 1 << 30:
        for name, sentence, value in (
            ("process_open_fds", "Open file descriptors", found.limit - found.left),
            ("process_max_fds", "Maximum number of open file descriptors", found.limit),
        ):
            yield gauge(name, sentence, [Sample(value)])
    with suppress(OSError, ValueError, IndexError):
        pages = (_PROC / "self/statm").read_text().split()
        page_bytes = os.sysconf("SC_PAGE_SIZE")
        for name, sentence, text in (
            ("process_virtual_memory_bytes", "Virtual memory size", pages[0]),
            ("process_resident_memory_bytes", "Resident memory size", pages[1]),
        ):
            yield gauge(name, sentence, [Sample(int(text) * page_bytes)])
    with suppress(OSError, ValueError, IndexError):
        yield gauge(
            "process_start_time_seconds",
            "Start time of the process, in seconds since the epoch",
            [Sample(_began_at_s())],
        )


def _began_at_s() -> float:
    # The name of the command is enclosed in parentheses and may contain any character.
    fields = (_PROC / "self/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    boot = next(
        line for line in (_PROC / "stat").read_text().splitlines() if line.startswith("btime ")
    )
    return int(boot.split()[1]) + ticks
