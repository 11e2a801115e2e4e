"""Each benchmark runs, at a size that measures nothing, and says what it is to say (ST-11 too)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import (
    authorization,
    client_latency,
    client_producer,
    compaction,
    disk,
    figures,
    groups,
    held_up,
    levels,
    partitions,
    pipelined,
    recovery,
    startup,
    tls,
    transactions,
    workloads,
)
from benchmarks.figures import Figure
from benchmarks.warm_memory import WarmMemory


def pipelined_figures() -> list[Figure]:
    with WarmMemory(wanted=False) as memory:
        return pipelined.measure(list(pipelined.CASES), 0.04, memory)


def workload_figures() -> list[Figure]:
    with WarmMemory(wanted=False) as memory:
        return workloads.measure_alone(0.001, memory)


@pytest.mark.parametrize(
    ("measure", "named"),
    [
        (lambda: startup.measure(1, 20, 20), ("ready", "idle partition", "idle connection")),
        (lambda: recovery.measure(1), ("recovery, 16 KiB batches",)),
        (
            lambda: held_up.measure(0.002),
            ("no rules: Fetch topics", "all denied: DeleteTopics", "clients at once"),
        ),
        (lambda: partitions.measure(10), ("made", "led in a new epoch", "deleted: longest turn")),
        (
            lambda: tls.measure(["ours on uvloop"], 2000, 1, 20),
            ("produce, TLS", "consume, TLS", "idle connection, TLS", "40 TLS connections"),
        ),
        (
            lambda: authorization.measure(100, 0.4),
            ("fresh decision", "kept decision", "produce, 100B, rate lost", "fetch, 1 MiB, more"),
        ),
        (lambda: disk.measure(1), ("sequential, random", "sendfile, read + send: CPU")),
        (
            lambda: groups.measure(100),
            ("100 members, a heartbeat each 3 s: broker", "OffsetCommit, pipelined", "a join of"),
        ),
        (lambda: transactions.measure(2, 0.1), ("transactions, 2 producers, one partition",)),
        (
            lambda: levels.measure_alone(0.005),
            (
                "one broker, acks=0, p50",
                "acks=all, flush.messages=1, p99",
                "100 records each, rate",
            ),
        ),
        (lambda: compaction.measure(4), ("compaction, four values a key", "produce while")),
        (pipelined_figures, ("100B pipelined, rate", "16K pipelined, of bare", "fetch of 1 MiB")),
        pytest.param(
            lambda: client_producer.measure(500, 1),
            ("send per record", "send : aiokafka", "send_columns, sizes differ"),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            lambda: client_latency.measure(0.02, 1),
            ("Producer, linger 0 ms, p99", "confluent-kafka, linger 5 ms, p50"),
            marks=pytest.mark.slow,
        ),
        (workload_figures, ("produce 1 KB lz4", "consume 100 B", "end to end at 10,000/s, p99")),
    ],
    ids=[
        "startup",
        "recovery",
        "held up",
        "partitions",
        "TLS",
        "authorization",
        "disk",
        "groups",
        "transactions",
        "levels",
        "compaction",
        "pipelined",
        "client producer",
        "client latency",
        "workloads",
    ],
)
def test_it_runs(measure: Callable[[], list[Figure]], named: tuple[str, ...]) -> None:
    found = measure()
    for name in named:
        assert any(name in figure.what for figure in found), name
    assert all(figure.reached >= 0 for figure in found)


@pytest.mark.slow
def test_levels_of_delivery_in_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    """DL-6: each level has a latency, on three brokers that replicate, and a row of the table."""
    rows = levels.together(0.005)
    levels.show(rows)
    shown = capsys.readouterr().out
    for name in (
        *(level.name for level in levels.LEVELS),
        *(f"{each.level.name}, {each.isolation}" for each in levels.READINGS),
    ):
        (row,) = (row for row in rows if row.level.endswith(name))
        assert 0 < row.latencies.at(0.5) <= row.latencies.at(0.99)
        assert row.per_second is None or row.per_second > 0
        assert name in shown


def test_distance_from_a_goal() -> None:
    assert Figure("cost", "us", 10, 5).off == 2
    assert Figure("rate", "1/s", 50, 100, at_most=False).off == 2
    assert Figure("rate", "1/s", 200, 100, at_most=False).is_reached
    assert not Figure("cost", "us", 5.1, 5).is_reached
    assert Figure("cost", "us", 5, other=10).ratio == 0.5


def test_figures_are_kept_as_json(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    figures.write_json(path, [Figure("cost", "us", 10, 5, other=40)])
    (row,) = json.loads(path.read_text())
    assert (row["what"], row["reached"], row["off"], row["ratio"]) == ("cost", 10, 2, 0.25)
