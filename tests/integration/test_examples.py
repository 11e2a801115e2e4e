"""Every program in `examples/` runs to its end and prints what it promises."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.foreign import CHECKOUT, require_java
from tests.kit.processes.pytest_process import run_pytest

EXAMPLES = CHECKOUT / "examples"


@pytest.mark.parametrize("name", ["embedded_broker.py", "any_client.py"])
def test_a_broker_inside_a_program(name: str, tmp_path: Path) -> None:
    printed = run(EXAMPLES / name, tmp_path)
    for greeting in ("hello", "bonjour", "ciao"):
        assert printed.count(greeting) == 1


def test_tk_4_an_application_is_tested_with_faults(tmp_path: Path) -> None:
    printed = run(EXAMPLES / "testing_faults.py", tmp_path)
    assert "refused three times, placed: ['tea']" in printed
    assert "in the topic, each once: ['tea', 'coffee']" in printed


@pytest.mark.parametrize(
    "name",
    [
        "testing_with_fixtures.py",
        "testing_confluent_kafka.py",
        "testing_aiokafka.py",
        "testing_kafka_python.py",
    ],
)
def test_tk_2_a_suite_of_tests(name: str, tmp_path: Path) -> None:
    assert " passed" in run_pytest(tmp_path, "--rootdir", str(tmp_path), str(EXAMPLES / name))


@pytest.mark.slow
def test_a_stream_goes_on_where_it_ended(tmp_path: Path) -> None:
    """SP-4"""
    require_java()
    printed = run(EXAMPLES / "spark_stream.py", tmp_path)
    for number in range(5):
        assert printed.count(f"number {number}") == 1


def test_every_example_is_run_and_listed() -> None:
    programs = {path.name for path in EXAMPLES.glob("*.py")}
    tests = Path(__file__).read_text(encoding="utf-8")
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [name for name in programs if name not in tests or name not in listed] == []


def run(program: Path, directory: Path) -> str:
    done = subprocess.run(
        [sys.executable, program],
        cwd=directory,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
