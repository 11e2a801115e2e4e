"""The command line of a simulator: runs seeds, and reports what failed and why, and what never
occurred.

A failing seed is reduced and its story is printed. If something never occurs over enough seeds,
that is a failure, too.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, Protocol, Self, TypeVar


class Outcome(Protocol):
    """The outcome of a seed."""

    @property
    def digest(self) -> str: ...

    @property
    def story(self) -> str:
        """The story of the run, empty if all was well."""
        ...

    def _replace(self, *, story: str) -> Self: ...


Ran = TypeVar("Ran", bound=Outcome)


class Simulator(NamedTuple, Generic[Ran]):
    """Describes a simulator for the command line."""

    prog: str
    run: Callable[[int], Ran]
    shrink: Callable[[Ran], Ran]
    summary: Callable[[Sequence[Ran]], str]
    never_met: Callable[[Sequence[Ran]], list[str]]


def run_seeds(simulator: Simulator[Ran], arguments: Sequence[str] | None) -> int:
    """Run the seeds and return the exit code: 0 if every seed held."""
    parser = argparse.ArgumentParser(prog=simulator.prog)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="so many, one after the other")
    parser.add_argument("--digest", action="store_true", help="print the digest of each story")
    parser.add_argument("--whole", action="store_true", help="do not make failing runs smaller")
    given = parser.parse_args(arguments)
    outcomes, failed = [], []
    for seed in range(given.seed, given.seed + given.seeds):
        outcome = simulator.run(seed)
        # Thousands of stories take too much memory.
        outcomes.append(outcome._replace(story=""))
        if given.digest:
            _say(f"{seed} {outcome.digest}")
        if outcome.story:
            failed.append(seed)
            _say((outcome if given.whole else simulator.shrink(outcome)).story)
    _say(simulator.summary(outcomes))
    lacking = simulator.never_met(outcomes)
    if lacking:
        _say(f"never met: {', '.join(lacking)}")
    if failed:
        _say(f"failed: {', '.join(map(str, failed))}; again: --seed {failed[0]}")
    return 1 if failed or lacking else 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
