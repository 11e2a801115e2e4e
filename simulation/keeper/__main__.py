"""`python -m simulation.keeper --seed N [--seeds COUNT]`: our ZooKeeper server and its clients."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

from simulation.command import Simulator, run_seeds
from simulation.keeper.checker import RULES
from simulation.keeper.run import FAULTS, Outcome, draw, run, shrink

_SEEDS_FOR_EVERY_RULE = 30


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the seeds and return the exit code: 0 if every seed held."""
    simulator = Simulator(
        "python -m simulation.keeper", lambda seed: run(draw(seed)), shrink, summary, never_met
    )
    return run_seeds(simulator, arguments)


def summary(outcomes: Sequence[Outcome]) -> str:
    """Return the totals of all runs."""
    done: Counter[str] = Counter()
    judged: Counter[str] = Counter()
    for outcome in outcomes:
        done.update(outcome.done)
        judged.update(outcome.judged)
    failed = sum(bool(each.broken) for each in outcomes)
    return "\n".join(
        [
            *(f"{rule:12} {judged[rule]:>10,}" for rule in RULES),
            ", ".join(f"{kind} {count:,}" for kind, count in sorted(done.items())),
            f"{len(outcomes)} seeds of a ZooKeeper server, {failed} failed",
        ]
    )


def never_met(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the rules that judged nothing and the faults that never occurred, if there were enough
    seeds for them."""
    if len(outcomes) < _SEEDS_FOR_EVERY_RULE:
        return []
    rules = [rule for rule in RULES if not any(each.judged.get(rule) for each in outcomes)]
    return rules + [kind for kind in FAULTS if not any(each.done.get(kind) for each in outcomes)]


if __name__ == "__main__":
    sys.exit(main())
