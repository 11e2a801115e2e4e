"""Latencies: percentiles, merging, and the lines of Kafka's tool."""

from __future__ import annotations

from barnabas.cli.perf.latency import Latencies


def test_percentiles_are_those_of_the_records() -> None:
    latencies = Latencies()
    latencies.add([1 - number / 1000 for number in range(1000)], 1.0)  # 0 to 999 ms
    assert latencies.count == 1000
    assert 499.0 <= latencies.percentile_ms(0.5) <= 500.0
    assert 998.0 <= latencies.percentile_ms(0.999) <= 999.0
    assert round(latencies.max_ms) == 999
    assert round(latencies.average_ms, 1) == 499.5


def test_merged_windows_are_as_one() -> None:
    whole, first, second = Latencies(), Latencies(), Latencies()
    whole.add([0.0, 0.001, 0.002, 0.003], 0.004)
    first.add([0.0, 0.001], 0.004)
    second.add([0.002, 0.003], 0.004)
    first.merge(second)
    assert first.summary(100, 2.0) == whole.summary(100, 2.0)


def test_the_lines_are_those_of_kafkas_tool() -> None:
    latencies = Latencies()
    latencies.add([0.5] * 1000, 0.515625)
    assert latencies.line(1048576, 2.0) == (
        "1000 records sent, 500.0 records/sec (500.00 MB/sec), "
        "15.6 ms avg latency, 15.6 ms max latency."
    )
    assert latencies.summary(1048576, 2.0) == (
        "1000 records sent, 500.0 records/sec (500.00 MB/sec), 15.62 ms avg latency, "
        "15.62 ms max latency, 15.6 ms 50th, 15.6 ms 95th, 15.6 ms 99th, 15.6 ms 99.9th."
    )


def test_nothing_measured_is_zeros() -> None:
    assert Latencies().summary(100, 0.0).startswith("0 records sent, 0.0 records/sec (0.00 MB/sec)")
