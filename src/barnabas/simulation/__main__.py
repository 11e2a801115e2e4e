"""`python -m barnabas.simulation --seed N [--seeds COUNT]`: runs seeds, tells what failed and why.

A seed that fails is made smaller and its story is printed. A rule that nothing was judged by is a
failure too, over as many seeds as should have met it.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from statistics import median

from barnabas.simulation.checkers import RULES
from barnabas.simulation.options import draw
from barnabas.simulation.run import Outcome, run
from barnabas.simulation.shrink import shrink

_SEEDS_FOR_EVERY_RULE = 50


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0 if every seed held."""
    parser = argparse.ArgumentParser(prog="python -m barnabas.simulation")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="so many, one after the other")
    parser.add_argument("--digest", action="store_true", help="print the digest of each story")
    parser.add_argument("--whole", action="store_true", help="do not make failing runs smaller")
    given = parser.parse_args(arguments)
    outcomes, failed = [], []
    for seed in range(given.seed, given.seed + given.seeds):
        outcome = run(draw(seed))
        outcomes.append(outcome._replace(story=""))
        if given.digest:
            _say(f"{seed} {outcome.digest}")
        if outcome.violation is not None:
            failed.append(seed)
            _say((outcome if given.whole else shrink(outcome)).story)
    _say(summary(outcomes))
    unjudged = unjudged_rules(outcomes)
    if unjudged:
        _say(f"nothing was judged by: {', '.join(unjudged)}")
    if failed:
        _say(f"failed: {', '.join(map(str, failed))}; again: --seed {failed[0]}")
    return 1 if failed or unjudged else 0


def summary(outcomes: Sequence[Outcome]) -> str:
    """What all of it amounted to."""
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
    """Rules that proved nothing, where there were seeds enough for each."""
    if len(outcomes) < _SEEDS_FOR_EVERY_RULE:
        return []
    return [name for name in RULES if not any(each.judged[name] for each in outcomes)]


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())
