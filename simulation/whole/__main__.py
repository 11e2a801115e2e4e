"""`python -m simulation.whole --seed N [--seeds COUNT] [--keeper]`: whole brokers, from seeds.

A failing seed is reduced to fewer faults, and its story is printed. If a rule judges nothing, or an
event never occurs, over enough seeds, that is a failure, too.

With `--keeper`, the metadata store of each seed is our ZooKeeper server (`keeper_store`).
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from statistics import median

from simulation.command import Simulator, run_seeds
from simulation.whole.plan import draw, with_keeper
from simulation.whole.rules import RULE_OF_DRILL, RULES
from simulation.whole.run import EVENTS, Outcome, run
from simulation.whole.shrink import shrink

_SEEDS_FOR_EVERY_RULE = 20
_KEEPER = "--keeper"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the seeds and return the exit code: 0 if every seed held."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    has_keeper = _KEEPER in given
    simulator = Simulator(
        "python -m simulation.whole",
        lambda seed: run(with_keeper(draw(seed)) if has_keeper else draw(seed)),
        shrink,
        summary,
        never_met,
    )
    return run_seeds(simulator, [each for each in given if each != _KEEPER])


def summary(outcomes: Sequence[Outcome]) -> str:
    """Return the totals of all runs."""
    judged: Counter[str] = Counter()
    events: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    excused: Counter[str] = Counter()
    for outcome in outcomes:
        judged.update(outcome.judged)
        events.update(outcome.events)
        faults.update(outcome.faults)
        excused.update(outcome.excused)
    lines = [f"{rule:20} {judged[rule]:>12,}" for rule in RULES]
    lines.append(", ".join(f"{kind} {faults[kind]}" for kind in sorted(faults)))
    lines.append(", ".join(f"{events[kind]:,} {kind}" for kind in EVENTS))
    lines += [f"{count:,} times no event: {why}" for why, count in sorted(excused.items())]
    lines.append(
        f"{len(outcomes)} seeds of whole brokers, {sum(bool(each.broken) for each in outcomes)} "
        f"failed; each (median) {median(each.acknowledged for each in outcomes):.0f} writes "
        f"acknowledged by acks=all, {median(sum(each.faults.values()) for each in outcomes):.0f} "
        f"faults, {median(each.virtual_ms for each in outcomes) / 1000:.0f} s, "
        f"{median(each.steps for each in outcomes):,.0f} steps"
    )
    return "\n".join(lines)


def never_met(outcomes: Sequence[Outcome]) -> list[str]:
    """Return `unjudged`, if there were enough seeds for each rule.

    The first plan is run once more without its faults: where faults are frequent no leader lasts,
    and acks=1 promises something only where a leader lasts.
    """
    if len(outcomes) < _SEEDS_FOR_EVERY_RULE:
        return []
    calm = run(outcomes[0].plan._replace(faults=(), drills=()))
    assert not calm.broken, calm.story
    return unjudged([*outcomes, calm])


def unjudged(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the rules and events that never occurred."""
    drilled = {RULE_OF_DRILL[drill.kind] for each in outcomes for drill in each.plan.drills}
    idle = set(RULE_OF_DRILL.values()) - drilled
    rules = [
        rule
        for rule in RULES
        if rule not in idle and not any(each.judged[rule] for each in outcomes)
    ]
    return rules + [kind for kind in EVENTS if not any(each.events[kind] for each in outcomes)]


if __name__ == "__main__":
    sys.exit(main())
