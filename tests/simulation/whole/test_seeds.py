"""Whole brokers and real clients under faults, from seeds (DL-2, ZK-5, PR-7, GC-3)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from simulation.whole.__main__ import main, never_met, unjudged
from simulation.whole.plan import draw
from simulation.whole.run import run
from simulation.whole.shrink import shrink
from tests.kit.foreign import CHECKOUT
from tests.simulation.whole.planted import FOUND_FIRST_BY, PLANTED
from tests.simulation.whole.planted_wider import FOUND_BY, WIDER, drawn
from tests.simulation.whole.seeds import HELD, IN_EACH_RUN, check_worth, hold


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_seeds_hold_and_prove_something() -> None:
    check_worth(hold(IN_EACH_RUN))


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_bug_is_found(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each within seeds that hold without it; the one that is known to find it is tried first."""
    PLANTED[kind](monkeypatch)
    seeds = sorted(HELD, key=lambda seed: seed != FOUND_FIRST_BY.get(kind, 0))
    found = next((each for seed in seeds if (each := run(draw(seed))).broken), None)
    assert found is not None
    assert f"seed {found.plan.seed}" in found.story


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "seed"), FOUND_BY.items())
def test_what_only_the_wider_world_finds_is_found(
    kind: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RE-8, ST-6, ST-7, ST-10, PR-6, PR-8: each by a seed that holds without it.

    Any change of the broker may change what happens in a seed, so the others are tried too.
    """
    plan = drawn(kind, seed)
    assert (seed in HELD and plan == draw(seed)) or not run(plan).broken
    WIDER[kind](monkeypatch)
    others = sorted(set(HELD) - {seed})
    assert any(run(drawn(kind, each)).broken for each in (seed, *others))


@pytest.mark.slow
def test_other_hashes_give_the_same_bytes() -> None:
    def digests(hash_seed: str) -> str:
        command = [sys.executable, "-m", "simulation.whole", "--seed", "3"]
        path = os.pathsep.join(sys.path)
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": path}
        result = subprocess.run(
            [*command, "--seeds", "2", "--digest"],
            env=environment,
            cwd=Path(CHECKOUT),
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
        return result.stdout

    assert digests("1") == digests("20261")


@pytest.mark.slow
def test_a_failing_run_shrinks_and_tells_its_story(monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTED["coordinator"](monkeypatch)
    failed = next(each for seed in range(100) if (each := run(draw(seed))).broken)
    smaller = shrink(failed, tries=8)
    assert len(smaller.plan.faults) < len(failed.plan.faults)
    assert "BROKEN: " in smaller.story and "faults:" in smaller.story
    assert run(smaller.plan).digest == smaller.digest


def test_the_command_says_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "2"]) == 0
    said = capsys.readouterr().out
    assert "1 seeds of whole brokers, 0 failed" in said
    assert "elections" in said


def test_what_was_never_met_is_reported() -> None:
    outcome = run(draw(2))
    blind = outcome._replace(
        judged={**outcome.judged, "once": 0},
        events={**outcome.events, "expiries": 0, "deaths in a turn": 0},
    )
    assert {"once", "expiries", "deaths in a turn"} <= set(unjudged([blind] * 30))
    assert never_met([blind]) == [], "one seed need not meet all of them"
