"""What the tests wait with says what did not come."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from tests.kit.waiting import until, wait_until


def test_it_returns_once_it_holds() -> None:
    looks = iter([False, False, True])
    wait_until(lambda: next(looks))
    assert list(looks) == []
    again = iter([0, [], [1], 7])
    asyncio.run(until(lambda: next(again)))
    assert list(again) == [7]


def test_what_does_not_come_is_named() -> None:
    logged: list[str] = []
    with pytest.raises(
        AssertionError, match=r"not so after 0.05 s: .*lambda: logged == \[.news.\]"
    ):
        wait_until(lambda: logged == ["news"], 0.05)

    def is_logged() -> bool:
        return bool(logged)

    with pytest.raises(AssertionError, match=r"not so after 0.05 s: def is_logged\(\)"):
        asyncio.run(until(is_logged, 0.05))
    with pytest.raises(AssertionError, match=r"not so after 0 s: .*partial"):
        wait_until(partial(bool, logged), 0)


def test_a_condition_over_several_lines_is_named() -> None:
    logged: dict[str, int] = {}
    with pytest.raises(AssertionError, match=r"sorted\( logged"):
        wait_until(
            lambda: (
                sorted(
                    logged,
                )
                == ["a"]
            ),
            0,
        )
