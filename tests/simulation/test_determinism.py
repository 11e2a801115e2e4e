"""A seed is the whole story: nothing depends on hashes, addresses, or what ran before."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from simulation.__main__ import main
from simulation.options import draw
from simulation.run import run
from tests.kit.foreign import CHECKOUT


def _digests(hash_seed: str) -> str:
    command = [sys.executable, "-m", "simulation", "--seed", "20", "--seeds", "8"]
    environment = {
        **os.environ,
        "PYTHONHASHSEED": hash_seed,
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    result = subprocess.run(
        [*command, "--digest"],
        env=environment,
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return result.stdout


def test_other_hashes_give_the_same_bytes() -> None:
    assert _digests("1") == _digests("20261")


def test_a_run_leaves_nothing_behind() -> None:
    before = run(draw(5)).digest
    run(draw(6))
    assert run(draw(5)).digest == before


def test_options_are_drawn_from_the_seed_alone() -> None:
    assert draw(7) == draw(7)
    assert draw(7) != draw(8)


def test_the_command_says_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "1", "--seeds", "2"]) == 0
    assert "2 seeds, 0 failed" in capsys.readouterr().out
