"""Reduces a failing run while it still fails: fewer faults, which end earlier."""

from __future__ import annotations

from simulation.whole.plan import Plan
from simulation.whole.run import Outcome, run


def shrink(failed: Outcome, tries: int = 30) -> Outcome:
    """Return the smallest failing run found after at most `tries` runs."""
    assert failed.broken
    smallest = failed

    def still_fails(plan: Plan) -> bool:
        nonlocal smallest, tries
        if tries == 0:
            return False
        tries -= 1
        outcome = run(plan)
        if outcome.broken:
            smallest = outcome
        return bool(outcome.broken)

    for drill in failed.plan.drills:
        drills = tuple(each for each in smallest.plan.drills if each != drill)
        still_fails(smallest.plan._replace(drills=drills))
    # Leave out halves, quarters, ..., single faults.
    plan = smallest.plan
    size = max(1, len(plan.faults) // 2)
    while plan.faults and tries:
        start = 0
        while start < len(plan.faults) and tries:
            faults = plan.faults[:start] + plan.faults[start + size :]
            if still_fails(plan._replace(faults=faults)):
                plan = smallest.plan
            else:
                start += size
        if size == 1:
            break
        size //= 2
    last_ms = max((fault.at_ms for fault in plan.faults), default=1000)
    if last_ms + 1000 < plan.faults_end_at_ms:
        still_fails(plan._replace(faults_end_at_ms=last_ms + 1000))
    return smallest
