"""A broker that keeps its metadata in two log directories, of which one is damaged at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from barnabas.cluster import journal
from barnabas.cluster.journal_copies import Copy, Merged, merge_without_loss
from simulation.whole.alone import DAMAGES, Outcome, Plan, draw, main, never_met, run, shrink
from tests.kit.effort import rounds
from tests.kit.second_run import fresh_seed

HELD = range(rounds(30, in_soak=400))


def _hold(seeds: Sequence[int]) -> list[Outcome]:
    outcomes = [run(draw(seed)) for seed in seeds]
    for outcome in outcomes:
        assert not outcome.broken, shrink(outcome).story
    return outcomes


@pytest.mark.slow
@pytest.mark.repeated
def test_seeds_hold_and_meet_every_end_and_damage() -> None:
    assert never_met(_hold(HELD)) == []


def test_fresh_seeds_hold() -> None:
    """Drawn for each run: a failing one prints its number, and is the same again from it."""
    first = 1_000_000 + fresh_seed()
    _hold(range(first, first + 3))


def _newest_alone(copies: Sequence[Copy]) -> Merged:
    """Nothing is taken from a copy that is not the newest."""
    return merge_without_loss([max(copies, key=lambda each: each.newest_zxid)])


def _first_alone(copies: Sequence[Copy]) -> Merged:
    """A new disk in the first place is a new cluster."""
    return merge_without_loss(copies[:1] if copies[0].is_absent else copies)


PLANTED: dict[str, Callable[[Sequence[Copy]], Merged]] = {
    "bit flip": _newest_alone,
    "emptied": _first_alone,
}


def _without(plan: Plan, kind: str) -> Plan:
    """With none of the damages by which this bug is found."""
    kinds = ("bit flip", "lost file") if kind == "bit flip" else (kind, "lost file")
    kept = (each._replace(damage="none") if each.damage in kinds else each for each in plan.rounds)
    return plan._replace(rounds=tuple(kept))


@pytest.mark.slow
@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_bug_is_found_by_its_damage_alone(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kind in DAMAGES
    monkeypatch.setattr(journal, "merge_without_loss", PLANTED[kind])
    found = next((seed for seed in range(30) if run(draw(seed)).broken), None)
    assert found is not None
    assert run(_without(draw(found), kind)).broken == ()


def test_a_run_is_a_function_of_its_seed() -> None:
    assert run(draw(2)).digest == run(draw(2)).digest


def test_the_command_says_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "2"]) == 0
    assert "1 seeds of one broker, 0 failed" in capsys.readouterr().out
