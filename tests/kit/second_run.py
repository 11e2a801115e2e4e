"""Runs a test that failed once more, alone, after all others have ended.

A pytest that has a file's path in `BARNABAS_SECOND_RUN` does so; `.ci/run` sets it. A test that
passes then is flaky: the run passes, names it last, and keeps both outcomes in the file. A test
that fails twice fails the run.

What is no single test's failure is never run again and fails the run: a crashed worker, a module
that cannot be imported, an interruption, and an error after a test, since what is judged there was
often shared by many. The same holds for a run with more failures than chance explains.

Seeds that are drawn for a run are the same in its second runs (`fresh_seed`), and Hypothesis
repeats what it found, so that no finding of theirs passes for a flaky test.
"""

from __future__ import annotations

import fcntl
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

VARIABLE = "BARNABAS_SECOND_RUN"
MOST = 10
BUDGET_S = 900.0  # after so long no further test is run again

_SEED = "BARNABAS_FRESH_SEED"

# What a pytest in here must not take for its own.
_OF_THE_FIRST_RUN = (VARIABLE, "PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST")


def register(config: pytest.Config) -> None:
    """Take part in this run if the environment asks for it; never in a worker of a run."""
    os.environ.setdefault(_SEED, str(random.SystemRandom().randrange(1 << 30)))
    path = os.environ.get(VARIABLE)
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(SecondRun(config, Path(path)), "barnabas-second-run")


def fresh_seed() -> int:
    """A number that differs from run to run, and is one and the same within a run."""
    return int(os.environ[_SEED])


class SecondRun:
    """Collects what fails in a run, and judges it when the run has ended."""

    def __init__(self, config: pytest.Config, path: Path) -> None:
        self._config = config
        self._path = config.invocation_params.dir / path
        self._failures: dict[str, str] = {}  # node id: what the first run reported
        self._final: list[str] = []
        self._counted = 0
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._others = self._path.with_suffix(".lock").open("w")
        fcntl.flock(self._others, fcntl.LOCK_SH)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.failed:
            return
        self._counted += 1
        if report.when in ("setup", "call"):
            self._failures[report.nodeid] = report.longreprtext
        elif report.when == "teardown":
            self._final.append(f"error after {report.nodeid}")
        else:  # xdist reports a crash as a phase that no test has
            self._final.append(f"a worker crashed in {report.nodeid}")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._final.append(f"error while collecting {report.nodeid}")

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, error: object | None) -> None:
        if error:
            self._final.append(f"a worker crashed: {error}")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Iterator[None]:
        """Judge after everything else, pytest's own summary too, so that the verdict is last."""
        yield
        fcntl.flock(self._others, fcntl.LOCK_UN)
        if not self._failures or session.exitstatus != pytest.ExitCode.TESTS_FAILED:
            return
        terminal = self._config.get_terminal_writer()
        terminal.sep("=", "second run")
        for reason in self._reasons_against(session):
            terminal.line(f"not run again: {reason}", red=True)
            return
        flaky: list[str] = []
        failed: list[str] = []
        fcntl.flock(self._others, fcntl.LOCK_EX)  # the pytests beside this one have ended, too
        ends = time.monotonic() + BUDGET_S
        for nodeid, first in self._failures.items():
            output = self._run_alone(nodeid) if time.monotonic() < ends else "no time was left"
            has_passed = _has_passed(output)
            (flaky if has_passed else failed).append(nodeid)
            verdict = f"{'flaky' if has_passed else 'failed twice'}: {nodeid}"
            terminal.line(output)
            self._keep(f"{verdict}\n--- first run\n{first}\n--- second run, alone\n{output}\n")
        for nodeid in failed:
            terminal.line(f"failed twice: {nodeid}", red=True)
        for nodeid in flaky:
            terminal.line(f"flaky: {nodeid}", yellow=True)
        self._others.close()
        if not failed:
            session.exitstatus = pytest.ExitCode.OK

    def _reasons_against(self, session: pytest.Session) -> list[str]:
        reasons = list(self._final)
        if session.shouldfail or session.shouldstop:
            reasons.append("the run ended before its last test")
        if len(self._failures) > MOST:
            reasons.append(f"{len(self._failures)} tests failed; at most {MOST} can be flaky")
        if session.testsfailed != self._counted:
            reasons.append(f"{session.testsfailed} failures, but {self._counted} of tests")
        return reasons

    def _run_alone(self, nodeid: str) -> str:
        """What a pytest prints that runs this test and nothing else."""
        environment = {k: v for k, v in os.environ.items() if k not in _OF_THE_FIRST_RUN}
        # The first run has chosen the test; marks are no reason to leave it out here.
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-m", "", nodeid],
            cwd=self._config.rootpath,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        return f"{done.stdout.rstrip()}\npytest exits with {done.returncode}"

    def _keep(self, outcome: str) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(outcome)


def _has_passed(output: str) -> bool:
    """A second run that skips the test proves nothing."""
    *_, summary, exit_code = ["", *output.splitlines()]
    return exit_code == "pytest exits with 0" and re.search(r"\b1 passed\b", summary) is not None
