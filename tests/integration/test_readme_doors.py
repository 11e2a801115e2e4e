"""Each door of the README in a fresh environment, made by the door's own install line (UX-8)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.kit.packaging import source_tree
from tests.kit.readme import Door, commands, doors, run, run_door, with_programs

pytestmark = pytest.mark.slow

PYTHON = Path(sys.base_prefix) / "bin"


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "door",
    # Spark's 400 MB are installed once for all tests of the wheel, which run that door, too.
    [pytest.param(door, id=door.name) for door in doors() if "spark" not in door.packages[0]],
)
def test_a_door_needs_no_more_than_its_install_line(door: Door, tmp_path: Path) -> None:
    clone = source_tree(tmp_path)
    home = {**with_programs(PYTHON), "HOME": str(tmp_path)}
    lines = [command for block in door.installs for command, _ in commands(block.text)]
    # In one shell, for the environment that the first line activates is that of the others.
    run(["bash", "-euo", "pipefail", "-c", "\n".join(lines)], clone, home)
    own = tmp_path / "own"
    own.mkdir()
    run_door(door, tmp_path / "barnabas-venv" / "bin", own)
