"""A Python for Spark's workers, without the archive on its path."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from pyspark_barnabas.workers import python_for_workers

ARCHIVES = Path(pyspark.__file__).parent / "python" / "lib"
PROGRAM = "import json, pyspark, sys; print(json.dumps([sys.path, pyspark.__file__, sys.argv]))"


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SPARK_HOME", raising=False)
    return tmp_path


@pytest.mark.thorough
def test_pyspark_comes_from_where_it_is_installed(places: Path) -> None:
    python = python_for_workers()
    assert python == str(places / "venv/share/barnabas/workers/python3")
    archives = sorted(str(each) for each in ARCHIVES.glob("*.zip"))
    assert len(archives) == 2
    own = [str(places / "with space"), "/a/*", str(places / "pyspark.zip")]
    path = os.pathsep.join([*archives, *own])

    def started(program: str) -> tuple[list[str], str, list[str]]:
        found = subprocess.run(
            [program, "-c", PROGRAM, "one word", "*"],
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
        )
        entries, origin, words = json.loads(found.stdout)
        return entries, origin, words

    entries, origin, words = started(python)
    assert origin == pyspark.__file__
    assert entries[1:4] == own and not set(archives) & set(entries)
    assert words == ["-c", "one word", "*"]
    assert "pyspark.zip" in started(sys.executable)[1]
    assert python_for_workers() == python, "it is there, and written once"


@pytest.mark.parametrize("why", ["another home", "not installed", "no place"])
def test_where_it_is_not_safe_there_is_no_script(
    places: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    if why == "another home":
        monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    elif why == "not installed":
        monkeypatch.setattr(pyspark, "__file__", "/opt/spark/python/pyspark/__init__.py")
    else:
        (places / "venv").write_text("no directory")
        (places / "cache").write_text("no directory")
    assert python_for_workers() == sys.executable
