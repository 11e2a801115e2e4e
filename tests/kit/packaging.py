"""What pip is given: a copy of the sources, in which it may leave what it builds."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.kit.foreign import CHECKOUT


def source_tree(directory: Path) -> Path:
    """A new directory with all that a package is made of."""
    tree = directory / "tree"
    tree.mkdir()
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(CHECKOUT / name, tree)
    shutil.copytree(CHECKOUT / "src", tree / "src", ignore=shutil.ignore_patterns("*.egg-info"))
    return tree


def succeed(directory: Path, *command: str | Path, stdin: str = "") -> str:
    """Run a program with nothing of this environment; its standard output."""
    ours = ("PYTHONPATH", "VIRTUAL_ENV", "PYSPARK_PYTHON")
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=directory,
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, f"{command}: {done.stdout[-4000:]}{done.stderr[-4000:]}"
    return done.stdout
