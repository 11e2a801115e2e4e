"""A wrong calendar at a start of a broker, and clients that do not read or do not wait."""

from __future__ import annotations

from simulation.whole.plan import GUESTS, draw
from simulation.whole.run import run

SEED = 9_100_051


def test_guests_and_a_wrong_calendar_at_a_start_break_nothing_st_6() -> None:
    """ST-6: what they do is part of the plan, and took hold."""
    outcome = run(draw(SEED))
    assert outcome.broken == (), outcome.story
    assert all(outcome.faults.get(kind) for kind in GUESTS), outcome.faults


def test_the_seeds_that_tests_name_have_none() -> None:
    drawn = {fault.kind for seed in range(1_000) for fault in draw(seed).faults}
    assert drawn.isdisjoint(GUESTS)
