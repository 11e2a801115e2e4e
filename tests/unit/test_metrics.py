"""Counters, gauges and histograms."""

from __future__ import annotations

from barnabas.metrics import Counter, Gauge, Histogram


def test_a_counter_grows() -> None:
    counter = Counter()
    counter.increment()
    counter.increment(4)
    assert counter.value == 5


def test_a_gauge_is_read_when_it_is_asked_for() -> None:
    queue: list[int] = []
    gauge = Gauge(lambda: len(queue))
    queue.append(1)
    assert gauge.value == 1


def test_a_histogram_counts_values_into_ranges() -> None:
    histogram = Histogram([1, 10, 100])
    for value in (0.5, 1, 5, 100, 1000):
        histogram.observe(value)
    assert histogram.buckets == [2, 1, 1, 1]
    assert (histogram.count, histogram.total, histogram.largest) == (5, 1106.5, 1000)


def test_a_quantile_is_the_upper_end_of_its_range() -> None:
    histogram = Histogram([1, 10, 100])
    assert histogram.quantile(0.5) == 0
    for value in (1, 2, 3, 70):
        histogram.observe(value)
    assert histogram.quantile(0.25) == 1
    assert histogram.quantile(0.5) == 10
    assert histogram.quantile(1.0) == 70
    histogram.observe(5000)
    assert histogram.quantile(1.0) == 5000
