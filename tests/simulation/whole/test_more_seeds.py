"""More seeds of whole brokers."""

from __future__ import annotations

import pytest

from tests.kit.second_run import fresh_seed
from tests.simulation.whole.seeds import HELD, IN_EACH_RUN, check_worth, hold

_FIRST_FRESH = 1_000_000
_FRESH = 3


@pytest.mark.soak
@pytest.mark.timeout(1500)
def test_more_seeds_hold_and_prove_something() -> None:
    check_worth(hold(HELD[len(IN_EACH_RUN) :]))


def test_fresh_seeds_hold() -> None:
    """Drawn each time: a failing one prints its number, and is the same again from it."""
    first = _FIRST_FRESH + fresh_seed()
    hold(range(first, first + _FRESH))
