"""What fails in CI is run once more, alone: each test here runs a pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.kit import second_run
from tests.kit.foreign import CHECKOUT
from tests.kit.raw_client import PATIENCE_S

CONFTEST = "from tests.kit.second_run import register as pytest_configure\n"

# Passes once its module has been run before.
FLAKY = """
import pathlib
import pytest

def has_run_before(name):
    mark = pathlib.Path(__file__).parent / name
    if mark.exists():
        return True
    mark.touch()
    return False
"""
ONE_FLAKY = """
def test_flaky():
    assert has_run_before("flaky"), "late"

def test_passes():
    pass
"""


@dataclass(frozen=True)
class Run:
    exit_code: int
    lines: list[str]
    kept: str


def _run(directory: Path, tests: str, *options: str, kept: Path | None = None) -> Run:
    directory.mkdir(exist_ok=True)
    (directory / "conftest.py").write_text(CONFTEST)
    (directory / "pytest.ini").write_text("[pytest]\nmarkers = some\n")
    (directory / "test_it.py").write_text(FLAKY + tests)
    kept = kept or directory / "kept" / "outcomes.txt"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "xdist", *options],
        cwd=directory,
        env={
            **{name: value for name, value in os.environ.items() if "SEED" not in name},
            "PYTHONPATH": os.pathsep.join([str(CHECKOUT), str(CHECKOUT / "src")]),
            "PYTEST_ADDOPTS": "",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # they take longer than the tests
            second_run.VARIABLE: str(kept),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return Run(done.returncode, done.stdout.splitlines(), kept.read_text() if kept.exists() else "")


@pytest.mark.parametrize("options", [["-m", "some"], ["-n", "2", "--dist", "loadfile"]])
def test_a_test_that_passes_alone_is_named_and_fails_nothing(
    tmp_path: Path, options: list[str]
) -> None:
    run = _run(tmp_path, f"pytestmark = pytest.mark.some\n{ONE_FLAKY}", *options)
    assert run.exit_code == pytest.ExitCode.OK, run.lines
    assert run.lines[-1] == "flaky: test_it.py::test_flaky"
    # Both outcomes are printed and kept.
    assert "1 failed, 1 passed" in "\n".join(run.lines)
    assert "1 passed" in run.kept and "AssertionError: late" in run.kept
    assert run.kept.startswith("flaky: test_it.py::test_flaky\n--- first run\n")


def test_a_seed_is_drawn_for_both_runs(tmp_path: Path) -> None:
    """Else a second one would hide what the first has found."""
    tests = """
def test_seed():
    from tests.kit.second_run import fresh_seed
    has_run_before(f"seed-{fresh_seed()}")
    assert has_run_before("once")
    assert len(list(pathlib.Path(__file__).parent.glob("seed-*"))) == 1
"""
    names = set()
    for _ in range(2):
        run = _run(tmp_path, tests)
        assert run.exit_code == pytest.ExitCode.OK, run.lines
        (seed,) = tmp_path.glob("seed-*")
        names.add(seed.name)
        seed.unlink()
        (tmp_path / "once").unlink()
    assert len(names) == 2


def test_a_second_run_waits_for_the_pytests_beside_it(tmp_path: Path) -> None:
    beside = """
def test_beside():
    running = pathlib.Path(__file__).parent.parent / "running"
    running.touch()
    while not running.with_name("failed").exists():
        time.sleep(0.01)
    time.sleep(0.5)
    running.unlink()
"""
    alone = """
def test_alone():
    running = pathlib.Path(__file__).parent.parent / "running"
    if not has_run_before("../failed.once"):
        while not running.exists():
            time.sleep(0.01)
        running.with_name("failed").touch()
        raise AssertionError
    assert not running.exists()
"""
    with ThreadPoolExecutor(2) as pool:
        runs = [
            pool.submit(_run, tmp_path / name, f"import time\n{tests}", kept=tmp_path / "kept.txt")
            for name, tests in (("beside", beside), ("alone", alone))
        ]
    other, run = (each.result() for each in runs)
    assert other.exit_code == pytest.ExitCode.OK, other.lines
    assert run.lines[-1] == "flaky: test_it.py::test_alone"


def test_a_test_that_fails_twice_fails_the_run(tmp_path: Path) -> None:
    tests = """
def test_broken():
    has_run_before("broken")
    raise AssertionError(pathlib.Path(__file__).with_name("broken").stat().st_size)
"""
    run = _run(tmp_path, ONE_FLAKY + tests)
    assert run.exit_code == pytest.ExitCode.TESTS_FAILED, run.lines
    assert run.lines[-2:] == [
        "failed twice: test_it.py::test_broken",
        "flaky: test_it.py::test_flaky",
    ]
    assert "failed twice: test_it.py::test_broken" in run.kept


def test_a_second_run_that_skips_proves_nothing(tmp_path: Path) -> None:
    tests = """
def test_skips():
    assert not has_run_before("skips") or pytest.skip("no longer")
    raise AssertionError
"""
    run = _run(tmp_path, tests)
    assert run.exit_code == pytest.ExitCode.TESTS_FAILED, run.lines
    assert run.lines[-1] == "failed twice: test_it.py::test_skips"


@pytest.mark.parametrize(
    ("tests", "options", "reason"),
    [
        pytest.param(
            "import os\ndef test_dies():\n    os._exit(3)\n",
            ["-n", "1"],
            "a worker crashed",
            id="crash",
        ),
        pytest.param(
            "@pytest.fixture\ndef judge():\n    yield\n    assert 0\n"
            "def test_judged(judge): pass\n",
            [],
            "error after test_it.py::test_judged",
            id="after-a-test",
        ),
        pytest.param(
            "@pytest.mark.parametrize('n', range(11))\ndef test_each(n): assert 0\n",
            [],
            "12 tests failed; at most 10 can be flaky",
            id="many",
        ),
        pytest.param(
            "def test_later(): pass\n", ["-x"], "the run ended before its last test", id="ended"
        ),
    ],
)
def test_what_is_no_single_test_fails_the_run(
    tmp_path: Path, tests: str, options: list[str], reason: str
) -> None:
    run = _run(tmp_path, ONE_FLAKY + tests, *options)
    assert run.exit_code == pytest.ExitCode.TESTS_FAILED, run.lines
    assert run.lines[-1].startswith(f"not run again: {reason}")
    assert run.kept == ""


@pytest.mark.parametrize(
    ("tests", "options", "exit_code"),
    [
        pytest.param("", [], pytest.ExitCode.NO_TESTS_COLLECTED, id="none"),
        pytest.param("import absent\n", [], pytest.ExitCode.INTERRUPTED, id="import"),
        pytest.param("import absent\n", ["-n", "1"], pytest.ExitCode.TESTS_FAILED, id="worker"),
        pytest.param("def test_stops(): pytest.exit('now')\n", [], 2, id="interruption"),
        pytest.param(f"{ONE_FLAKY}def test_stops(): raise KeyboardInterrupt\n", [], 2, id="ctrl-c"),
        pytest.param("def test_good(): pass\n", [], pytest.ExitCode.OK, id="good"),
    ],
)
def test_other_exit_codes_are_pytest_s_own(
    tmp_path: Path, tests: str, options: list[str], exit_code: int
) -> None:
    run = _run(tmp_path, tests, *options)
    assert run.exit_code == exit_code, run.lines
    assert not any("flaky" in line for line in run.lines[-2:])
