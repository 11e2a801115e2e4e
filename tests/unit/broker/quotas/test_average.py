"""The average of throttle times."""

from __future__ import annotations

from barnabas.broker.quotas.average import Average
from barnabas.broker.quotas.rate import Windows


def test_se_5_an_average_is_of_the_last_windows() -> None:
    average = Average(Windows(kept=2, length_ms=1_000))
    assert average.value(0) == 0
    average.record(10, 0)
    average.record(20, 999)
    assert average.value(1_000) == 15
    average.record(60, 1_500)
    assert average.value(1_999) == 30
    assert average.value(2_000) == 60
    assert average.value(3_500) == 0
