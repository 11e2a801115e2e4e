"""ZS-2: our ZooKeeper server in the simulator, with clients that judge it."""

from __future__ import annotations

import pytest

from simulation.keeper.__main__ import main, never_met
from simulation.keeper.run import draw, run, shrink
from tests.kit.effort import rounds
from tests.kit.second_run import fresh_seed
from tests.simulation.keeper_planted import PLANTED

HELD = range(rounds(60, in_soak=2_000))
MOST_SEEDS = 60


@pytest.mark.repeated
def test_zs_2_seeds_hold_and_meet_every_rule_and_fault() -> None:
    outcomes = []
    for seed in HELD:
        outcome = run(draw(seed))
        assert not outcome.broken, shrink(outcome).story
        outcomes.append(outcome)
    assert never_met(outcomes) == []


def test_zs_2_fresh_seeds_hold() -> None:
    """Drawn for each run: a failing one prints its number, and is the same again from it."""
    first = 1_000_000 + fresh_seed()
    for seed in range(first, first + 3):
        outcome = run(draw(seed))
        assert not outcome.broken, shrink(outcome).story


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTED[bug](monkeypatch)
    assert any(run(draw(seed)).broken for seed in range(MOST_SEEDS))


def test_a_run_is_a_function_of_its_seed() -> None:
    assert run(draw(3)).digest == run(draw(3)).digest


def test_the_command_says_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "2"]) == 0
    assert "1 seeds of a ZooKeeper server, 0 failed" in capsys.readouterr().out
