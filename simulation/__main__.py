"""`python -m simulation --seed N [--seeds COUNT]`: runs seeds, reports what failed and why.

A failing seed is reduced and its story is printed. A rule that had nothing to judge over enough
seeds is a failure, too.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from statistics import median

from simulation.command import Simulator, run_seeds
from simulation.options import draw
from simulation.rules import RULES
from simulation.run import Outcome, run
from simulation.shrink import shrink

_SEEDS_FOR_EVERY_RULE = 50


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the seeds and return the exit code: 0 if every seed held."""
    simulator = Simulator(
        "python -m simulation", lambda seed: run(draw(seed)), shrink, summary, unjudged_rules
    )
    return run_seeds(simulator, arguments)


def summary(outcomes: Sequence[Outcome]) -> str:
    """Return the totals of all runs."""
    judged: Counter[str] = Counter()
    for outcome in outcomes:
        judged.update(outcome.judged)
    lines = [f"{name:20} {judged[name]:>12,}" for name in RULES]
    return "\n".join(
        [
            *lines,
            f"{len(outcomes)} seeds, {sum(bool(each.violation) for each in outcomes)} failed; "
            f"each (median) {median(each.acknowledged for each in outcomes):.0f} writes "
            f"acknowledged, {median(each.promises for each in outcomes):.0f} of them by acks=all, "
            f"{median(each.faults for each in outcomes):.0f} faults, "
            f"{median(each.events for each in outcomes):.0f} events",
        ]
    )


def unjudged_rules(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the rules that proved nothing although there were enough seeds for each."""
    if len(outcomes) < _SEEDS_FOR_EVERY_RULE:
        return []
    return [name for name in RULES if not any(each.judged[name] for each in outcomes)]


if __name__ == "__main__":
    sys.exit(main())
