"""What the tests of boards and alerts find wrong with an expression, and what they do not."""

from __future__ import annotations

import pytest

from tests.kit.promql import Exported, Unresolved

PAGE = """\
# TYPE size gauge
size{topic="t",partition="0"} 1.0
size{topic="t",partition="1"} 1.0
# TYPE sent_total counter
sent_total 1.0
sent_total{topic="t"} 1.0
# TYPE time_ms summary
time_ms{request="Produce",quantile="0.99"} 1.0
time_ms_sum{request="Produce"} 1.0
time_ms_count{request="Produce"} 1.0
"""
TARGET = {"job", "instance"}


@pytest.fixture
def exported() -> Exported:
    found = Exported()
    found.add("brokers", "127.0.0.1:9404", PAGE)
    return found


@pytest.mark.parametrize(
    ("expression", "labels"),
    [
        ("up", TARGET),
        ("size", TARGET | {"topic", "partition"}),
        ('rate(sent_total{topic=""}[5m])', TARGET),
        ('sum by (topic) (rate(sent_total{topic!=""}[5m]))', {"topic"}),
        ("sum without (partition) (size)", TARGET | {"topic"}),
        ("topk(3, size)", TARGET | {"topic", "partition"}),
        ("count(size) or vector(0)", set()),
        ("absent(size)", set()),
        ("time() - up > 5", TARGET),
        ("rate(time_ms_sum[5m]) / rate(time_ms_count[5m])", TARGET | {"request"}),
        ("up == 0 and on (job, instance) present_over_time(size[1d])", TARGET),
    ],
)
def test_an_expression_has_the_labels_of_its_samples(
    exported: Exported, expression: str, labels: set[str]
) -> None:
    assert exported.labels_of(expression) == labels


@pytest.mark.parametrize(
    ("expression", "missing"),
    [
        ("sizes", "nothing exports sizes"),
        ('size{broker="1"}', "no label"),
        ('time_ms{request="Fetch"}', "no sample of time_ms matches"),
        ("sum by (broker) (size)", "groups by"),
        ("size / up", "never match"),
        ("size and on (broker) up", "not on both sides"),
        ("sum(size", "sum"),
    ],
)
def test_what_is_not_exported_is_named(exported: Exported, expression: str, missing: str) -> None:
    with pytest.raises(Unresolved, match=missing):
        exported.labels_of(expression)
