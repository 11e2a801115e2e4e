"""IN-6: one answer for all who ask between two looks."""

from __future__ import annotations

from barnabas.console.overview import AnswerCache


class _Counter:
    """Computes answers, each another one."""

    def __init__(self) -> None:
        self.computed = 0

    def __call__(self) -> bytes:
        self.computed += 1
        return b"%d" % self.computed


def test_all_who_ask_between_two_looks_share_one_computation() -> None:
    cache, compute, look = AnswerCache(2.0), _Counter(), object()
    assert [cache.get(look, 10.0 + tenth / 10, compute) for tenth in range(20)] == [b"1"] * 20
    assert cache.get(object(), 11.9, compute) == b"2"


def test_without_a_later_look_it_is_not_stale_beyond_the_interval() -> None:
    cache, compute, look = AnswerCache(2.0), _Counter(), object()
    assert cache.get(look, 10.0, compute) == b"1"
    assert cache.get(look, 12.0, compute) == b"2"
    assert cache.get(look, 13.9, compute) == b"2"


def test_a_change_through_the_console_is_shown_at_once() -> None:
    cache, compute, look = AnswerCache(2.0), _Counter(), object()
    cache.get(look, 10.0, compute)
    cache.forget()
    assert cache.get(look, 10.0, compute) == b"2"
