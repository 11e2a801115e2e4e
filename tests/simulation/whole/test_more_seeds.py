"""More seeds of whole brokers: a file of its own, so that two cores share them."""

from __future__ import annotations

import pytest

from tests.simulation.whole.seeds import HELD, hold


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_more_seeds_hold() -> None:
    hold(HELD[len(HELD) // 2 :])
