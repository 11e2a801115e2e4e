"""What `make run` shows while it sets up its environment (UX-1), and what runs which tests."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PIP: Final = """\
Obtaining file:///home/you/barnabas
  Checking if build backend supports build_editable: started
Collecting pyspark<4.4,>=4.2 (from pyspark[sql]<4.4,>=4.2->barnabas==0.1.0)
  Downloading pyspark-4.3.0.tar.gz (456.1 MB)
  Downloading pandas-2.3.3-cp311-cp311-manylinux_2_24_x86_64.manylinux_2_28_x86_64.whl (12.8 MB)
  Downloading https://mirror.example/a/b/numpy-2.4.6-cp311-cp311-musllinux_1_2.whl (16.9 MB)
  Downloading rich-15.0.0-py3-none-any.whl.metadata (18 kB)
  Downloading rich-15.0.0-py3-none-any.whl (310 kB)
  Using cached pyspark-4.3.0-py2.py3-none-any.whl
Requirement already satisfied: pip in ./.venv/lib/python3.11/site-packages (24.0)
  Building wheel for pyspark (pyproject.toml): started
  Building wheel for pyspark (pyproject.toml): finished with status 'done'
Installing collected packages: pyspark, pandas
Successfully installed pandas-2.3.3 pyspark-4.3.0
"""
SHOWN: Final = """\
  downloading pyspark-4.3.0.tar.gz, 456.1 MB
  downloading pandas-2.3.3.whl, 12.8 MB
  downloading numpy-2.4.6.whl, 16.9 MB
  taking pyspark-4.3.0.whl from the cache
  building pyspark
  installing
"""


def make(*words: str, given: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "--no-print-directory", *words],
        cwd=ROOT,
        input=given,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
    )


def pytest_lines(target: str) -> list[list[str]]:
    """The words of each call of pytest that this target would make."""
    done = make("-n", target, BARNABAS_QUICK="")
    assert done.returncode == 0, done.stderr
    calls = re.findall(r"-m pytest ([^;&\n]+)", done.stdout.replace("\\\n", " "))
    return [shlex.split(words) for words in calls]


def test_every_folder_of_tests_runs_once() -> None:
    """The quick ones first; which tests of a folder run is decided by their markers."""
    calls = [words for words in pytest_lines("test") if "not slow and not soak" in words]
    named = [word for words in calls for word in words if word.startswith("tests/")]
    folders = {path.relative_to(ROOT).parts[1] for path in (ROOT / "tests").glob("*/**/test_*.py")}
    assert len(named) == len(set(named))
    assert folders <= {Path(word).name for word in named}
    (quick,) = pytest_lines("quick")
    assert "not slow and not soak and not thorough" in quick
    assert quick[-3:] == ["tests/tidy", "tests/unit", "tests/property"]
    (slow,) = [words for words in pytest_lines("test-all") if "slow and not soak" in words]
    also = {word for word in slow if word.startswith("tests/")}
    assert folders <= {Path(word).name for word in also} | {Path(word).name for word in quick[-3:]}
    marked = {
        str(file.relative_to(ROOT))
        for folder in quick[-3:]
        for file in (ROOT / folder).rglob("test_*.py")
        if "mark.slow" in file.read_text()
    }
    assert marked <= also


def test_the_secured_suites_are_chosen_by_their_marker() -> None:
    """Whole and in part; a file that is named for the part would else run nothing."""
    (whole,) = [words for words in pytest_lines("soak") if "secured and not soak" in words]
    assert whole[-2:] == ["tests/conformance", "tests/integration"]
    (part,) = [words for words in pytest_lines("test-all") if "secured and not soak" in words]
    named = [ROOT / word for word in part if word.startswith("tests/")]
    assert len(named) > 2
    for file in named:
        is_marked = "pytest.mark.secured" in file.read_text() or file.parent.name == "conformance"
        assert is_marked, file


def test_ux_1_pips_lines_in_short() -> None:
    done = make("--eval", "show:\n\t@sed -n $(INSTALL_STEPS)", "show", given=PIP)
    assert done.stdout == SHOWN, done.stderr


def test_ux_1_an_installation_that_fails_says_the_size_first_and_ends_with_pips_words(
    tmp_path: Path,
) -> None:
    """A `python` in place of the environment's, whose pip has no network."""
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(
        '#!/bin/sh\n[ "$1" = -c ] && exit 1\ncase "$*" in *version*) exit 0;; esac\n'
        'echo "ERROR: no network"; exit 1\n'
    )
    python.chmod(0o755)
    done = make(f"{tmp_path}/run.stamp", f"VENV={tmp_path}")
    assert done.returncode != 0
    assert "some 650 MB, of which Spark is 450, are downloaded" in done.stdout
    assert "ERROR: no network" in done.stderr and not (tmp_path / "run.stamp").exists()
