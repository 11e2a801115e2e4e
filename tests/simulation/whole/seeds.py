"""Seeds of whole brokers, and what they must amount to."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from simulation.whole.__main__ import never_met, summary
from simulation.whole.plan import draw
from simulation.whole.run import Outcome, run
from simulation.whole.shrink import shrink

HELD = range(72)
IN_EACH_RUN = HELD[:18]

MOST_TRIES = 12  # to make a failing run smaller, in a test


def hold(seeds: Iterable[int]) -> list[Outcome]:
    """Run them; fails with the story of the first one that breaks a rule."""
    outcomes = []
    for seed in seeds:
        outcome = run(draw(seed))
        assert not outcome.broken, shrink(outcome, tries=MOST_TRIES).story
        outcomes.append(outcome)
    return outcomes


def check_worth(outcomes: list[Outcome]) -> None:
    """That they have proved something: nothing unjudged, enough written, enough gone wrong."""
    text = summary(outcomes)
    assert never_met(outcomes) == [], text
    assert median(outcome.acknowledged for outcome in outcomes) >= 300, text
    assert median(sum(outcome.faults.values()) for outcome in outcomes) >= 5, text
