"""SP-3: a driver that is killed at any step of a micro-batch; the table has every row once."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import deltalake
import pytest

from tests.kit.waiting import wait_until
from tests.pipeline.delta_job import ROWS, STEPS

KILLS = 10


def job(directory: Path, batches: int, step: str = "") -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.pipeline.delta_job", str(directory / "table")]
    return subprocess.Popen([*command, str(directory / "progress"), str(batches), step])


def numbers(directory: Path) -> list[int]:
    table = deltalake.DeltaTable(str(directory / "table")).to_pyarrow_table()
    return sorted(table.column("number").to_pylist())


def test_sp_3_killed_at_each_step(tmp_path: Path) -> None:
    for batch, step in enumerate(STEPS):
        assert job(tmp_path, batch + 1, step).wait(60) == -signal.SIGKILL
    # Twice in one replay, and then to the end.
    for step in (STEPS[3], STEPS[3], ""):
        job(tmp_path, len(STEPS) + 1, step).wait(60)
    assert numbers(tmp_path) == list(range((len(STEPS) + 1) * ROWS))


@pytest.mark.slow
def test_sp_3_killed_at_any_moment(tmp_path: Path) -> None:
    moments = random.Random(20261123)
    for _ in range(KILLS):
        running = job(tmp_path, 10_000)
        wait_until((tmp_path / "progress").exists)  # the first one: a busy machine starts slowly
        time.sleep(0.5 + moments.random())
        running.kill()
        running.wait(60)
    batches = int((tmp_path / "progress").read_text()) + 3
    assert job(tmp_path, batches).wait(60) == 0
    assert numbers(tmp_path) == list(range(batches * ROWS))
    print(f"{KILLS} kills, {batches} batches committed once each")
