"""What a client waits for is logged once per cause, and then now and then."""

from __future__ import annotations

from barnabas.client.retry_log import RetryLog
from barnabas.errors import CoordinatorLoadInProgress, CoordinatorNotAvailable


def test_one_cause_is_news_once_in_half_a_minute() -> None:
    log = RetryLog()
    news = [
        now_ms
        for now_ms in range(0, 70_000, 100)
        if log.is_news("k1", CoordinatorNotAvailable, now_ms)
    ]
    assert news == [0, 30_000, 60_000]


def test_another_cause_and_another_group_are_news_by_themselves() -> None:
    log = RetryLog()
    assert log.is_news("k1", CoordinatorNotAvailable, 0)
    assert log.is_news("k1", CoordinatorLoadInProgress, 1)
    assert log.is_news("k2", CoordinatorNotAvailable, 2)
    assert not log.is_news("k1", CoordinatorNotAvailable, 3)


def test_what_passes_within_the_patience_is_no_news() -> None:
    log = RetryLog(patience_ms=1_000)
    assert not log.is_news("k1", CoordinatorNotAvailable, 0)
    assert not log.is_news("k1", CoordinatorLoadInProgress, 999)
    log.over("k1")
    assert not log.is_news("k1", CoordinatorNotAvailable, 5_000)
    assert log.is_news("k1", CoordinatorNotAvailable, 6_000)


def test_what_comes_and_goes_is_news_no_more_often() -> None:
    log = RetryLog()
    assert log.is_news("k1", CoordinatorNotAvailable, 0)
    log.over("k1")
    assert not log.is_news("k1", CoordinatorNotAvailable, 29_999)
