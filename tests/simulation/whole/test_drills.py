"""Faults that come alone: a disk that hangs, a follower that stands still, a new disk; and bugs
that only these, or clients that do not read or wait, find (ST-10, RE-8).
"""

from __future__ import annotations

import pytest

from simulation.options import Fault
from simulation.whole.plan import DRILLS, EMPTIED, Plan, draw
from simulation.whole.rules import RULE_OF_DRILL
from simulation.whole.run import run
from tests.simulation.whole.planted_worlds import FOUND_BY, WORLDS


@pytest.mark.slow
@pytest.mark.parametrize("second", [0, 1])
def test_drills_are_held_in_a_cluster_without_other_faults(second: int) -> None:
    drills = tuple(Fault(each, kind, 1, second, 400) for each, kind in enumerate(DRILLS))
    plan = Plan(second, faults_end_at_ms=2_000, drills=drills, has_two_log_dirs=bool(second))
    outcome = run(plan)
    assert outcome.broken == (), outcome.story
    assert all(outcome.judged[rule] for rule in RULE_OF_DRILL.values()), outcome.judged


def test_a_disk_is_replaced_among_other_faults_only_while_all_are_in_sync() -> None:
    plan = Plan(1, faults_end_at_ms=4_000, faults=(Fault(2_000, EMPTIED, 2, 0, 400),))
    outcome = run(plan)
    assert outcome.broken == (), outcome.story
    assert outcome.faults == {EMPTIED: 1}


@pytest.mark.slow
@pytest.mark.parametrize("kind", FOUND_BY)
def test_what_only_one_kind_of_fault_finds_is_found(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a plan that holds without the bug, and with it if it does without this kind."""
    plan = FOUND_BY[kind]
    assert run(plan).broken == ()
    WORLDS[kind](monkeypatch)
    assert run(plan._replace(faults=(), drills=())).broken == ()
    assert run(plan).broken != ()


def test_the_seeds_that_tests_name_have_no_drills() -> None:
    assert not any(draw(seed).drills for seed in range(1_000))
