"""The examples of pages that explain run as they stand and print what the page shows."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import barnabas
from tests.kit.foreign import CHECKOUT, require_java

DEFAULT_ADDRESS = "localhost:9092"
TIMEOUT_SECONDS = 180
# What stands behind `$ barnabas`, and what it prints: up to the next line of that kind.
COMMAND = re.compile(r"^\$ barnabas (.*)\n((?:(?![$`]).*\n)*)", re.MULTILINE)
EXAMPLE = re.compile(r"^```python\n(.*?)^```\n\n^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_each_level_does_and_loses_what_the_page_says(tmp_path: Path) -> None:
    """GC-5, DL-1: at most once loses one, at least once repeats one, exactly once neither."""
    run_examples("delivery.md", 4, tmp_path)


@pytest.mark.slow
@pytest.mark.foreign
def test_spark_doubles_and_does_not_double_as_the_page_says(tmp_path: Path) -> None:
    """SP-3"""
    require_java()
    run_examples("exactly-once.md", 2, tmp_path)


@pytest.mark.skipif(shutil.which("logger") is None, reason="needs logger (util-linux)")
def test_lines_are_collected_as_the_page_says(tmp_path: Path) -> None:
    """SP-2"""
    run_examples("collecting.md", 3, tmp_path)


@pytest.mark.slow
@pytest.mark.foreign
def test_system_logs_are_worked_up_as_the_page_says(tmp_path: Path) -> None:
    """SP-2"""
    require_java()
    run_examples("system-logs.md", 1, tmp_path)


def run_examples(page: str, count: int, directory: Path) -> None:
    text = (CHECKOUT / "docs" / page).read_text(encoding="utf-8")
    examples = EXAMPLE.findall(text)
    assert len(examples) == text.count("```python\n") == count
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with barnabas.Broker(config={"group.initial.rebalance.delay.ms": "0"}) as broker:
        for code, expected in examples:
            done = subprocess.run(
                [sys.executable, "-c", code.replace(DEFAULT_ADDRESS, broker.bootstrap_servers)],
                cwd=directory,
                env=environment,
                capture_output=True,
                text=True,
                timeout=TIMEOUT_SECONDS,
            )
            assert (done.returncode, done.stdout) == (0, expected), done.stdout + done.stderr
        environment["BARNABAS_BOOTSTRAP_SERVER"] = broker.bootstrap_servers
        for line, expected in COMMAND.findall(text):
            done = subprocess.run(
                [sys.executable, "-m", "barnabas.cli.main", *shlex.split(line)],
                cwd=directory,
                env=environment,
                capture_output=True,
                text=True,
                timeout=TIMEOUT_SECONDS,
            )
            code = int("NOT exact" in expected)
            assert (done.returncode, done.stdout) == (code, expected), done.stdout + done.stderr
