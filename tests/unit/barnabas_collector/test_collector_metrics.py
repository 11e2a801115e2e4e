"""LG-2: what a collector shows of itself."""

from __future__ import annotations

from barnabas.net.metrics_page import text
from barnabas_collector.collector_metrics import CollectorMetrics


def shown(metrics: CollectorMetrics) -> dict[str, str]:
    lines = [
        line
        for read in metrics.registry
        for line in text(read()).splitlines()
        if not line.startswith("#")
    ]
    return dict(line.removeprefix("barnabas_collector_").rsplit(" ", 1) for line in lines)


def test_what_was_read_and_sent_is_counted() -> None:
    metrics = CollectorMetrics()
    metrics.on_read(3, 30)
    metrics.on_sent(2, 20, 1)
    numbers = shown(metrics)
    assert (numbers["lines_read_total"], numbers["bytes_read_total"]) == ("3.0", "30.0")
    assert (numbers["lines_sent_total"], numbers["bytes_sent_total"]) == ("2.0", "20.0")
    assert numbers["lines_cut_total"] == numbers["ready"] == "1.0"
    assert "files" not in numbers, "no log is watched"


def test_it_is_ready_once_every_part_is() -> None:
    metrics = CollectorMetrics()
    metrics.on_waiting("files", "has not committed yet")
    metrics.on_waiting("syslog", "is not connected yet")
    metrics.on_ready("files")
    assert metrics.unready() == "syslog: is not connected yet"
    assert shown(metrics)["ready"] == "0.0"
    metrics.on_ready("syslog")
    assert metrics.unready() == "" and shown(metrics)["ready"] == "1.0"


def test_the_last_error_is_shown_and_counted() -> None:
    metrics = CollectorMetrics()
    metrics.on_retry("files", OSError("the disk\nis full" + "!" * 300))
    numbers = shown(metrics)
    (error,) = [each for each in numbers if each.startswith("last_error")]
    assert r"the disk\nis full!!!" in error and len(error) < 300
    assert numbers["retries_total"] == "1.0" and metrics.unready().startswith("files: the disk")
    metrics.on_ready("files")
    assert any(each.startswith("last_error") for each in shown(metrics))


def test_it_is_not_ready_while_nothing_is_delivered_for_long_though_something_waits() -> None:
    now_s = 100.0
    metrics = CollectorMetrics(lambda: now_s)
    metrics.on_pending("files")
    now_s = 109.9
    metrics.on_pending("files")
    assert metrics.unready() == ""
    now_s = 110.0
    assert metrics.unready() == "files: has delivered nothing for 10 s"
    assert shown(metrics)["ready"] == "0.0"
    metrics.on_ready("files")
    assert metrics.unready() == ""
    now_s = 500.0
    assert metrics.unready() == "", "nothing waits"


def test_refused_requests_are_counted_by_reason() -> None:
    metrics = CollectorMetrics()
    metrics.otlp_refused["busy"] += 2
    assert shown(metrics)['otlp_refused_total{reason="busy"}'] == "2.0"
