"""A pytest of its own, with the fixtures of `barnabas.testing`, as anybody's suite runs."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

from tests.kit.foreign import CHECKOUT
from tests.kit.raw_client import PATIENCE_S

PLUGIN = "barnabas.testing.plugin"


def run_pytest(directory: Path, *options: str) -> str:
    """What it printed, which has to succeed. Settings of this checkout are not its."""
    sources = os.pathsep.join([str(CHECKOUT / "src"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "pytest", "-q", "-c", str(_settings(directory))]
    if all(point.value != PLUGIN for point in entry_points(group="pytest11")):
        command += ["-p", PLUGIN]  # where it is not installed, it is not found by itself
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", *options],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": sources, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _settings(directory: Path) -> Path:
    file = directory / "pytest.ini"
    file.write_text("[pytest]\naddopts = --strict-markers\n", encoding="utf-8")
    return file
