"""Counters, and Prometheus' text."""

from __future__ import annotations

from barnabas.metrics import Counter, Family, Sample, text


def test_a_counter_grows() -> None:
    counter = Counter()
    counter.increment()
    counter.increment(4)
    assert counter.value == 5


def test_numbers_are_written_as_prometheus_text() -> None:
    """RE-14: numbers as the JMX exporter writes them, with a point."""
    lag = (("topic", "t"), ("partition", "0"))
    families = [
        Family("queue", "gauge", "What waits", [Sample(3)]),
        Family("errors_total", "counter", "What failed", [Sample(True)]),
        Family("lag", "gauge", "How far behind", [Sample(2.5, lag), Sample(1e15)]),
        Family("nothing", "gauge", "There is none", []),
    ]
    assert text(families) == (
        "# HELP queue What waits\n"
        "# TYPE queue gauge\n"
        "queue 3.0\n"
        "# HELP errors_total What failed\n"
        "# TYPE errors_total counter\n"
        "errors_total 1.0\n"
        "# HELP lag How far behind\n"
        "# TYPE lag gauge\n"
        'lag{topic="t",partition="0"} 2.5\n'
        "lag 1000000000000000.0\n"
        "# HELP nothing There is none\n"
        "# TYPE nothing gauge\n"
    )


def test_what_would_end_a_line_or_a_label_is_escaped() -> None:
    odd = (("path", 'C:\\"new"\nline'),)
    printed = text([Family("m", "gauge", 'a\\b\n"c"', [Sample(0, odd)])])
    assert printed == (
        '# HELP m a\\\\b\\n"c"\n# TYPE m gauge\nm{path="C:\\\\\\"new\\"\\nline"} 0.0\n'
    )
