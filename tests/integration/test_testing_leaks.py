"""A hundred tests with a broker each, in one process: what they leave, how long they take."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import test_kit
from tests.kit.processes.pytest_process import run_pytest

HUNDRED = """
import pytest

@pytest.mark.parametrize("number", range(100))
def test_first_record(number, barnabas_topic, barnabas_producer, barnabas_consumer):
    barnabas_producer.send(barnabas_topic.name, b"%d" % number)
    records = []
    while not records:
        records = barnabas_consumer.poll(1000)
    assert records[0].value == b"%d" % number
"""

CONFTEST = """
import gc
import os
import tempfile
import threading
from pathlib import Path

import psutil

FEW = 10  # the first ones also load what all of them need
before = {}
seen = []

def held():
    gc.collect()
    process = psutil.Process()
    return {
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "files": process.num_fds(),
        "directories": sorted(path.name for path in Path(tempfile.gettempdir()).iterdir()),
    }, process.memory_info().rss

def pytest_runtest_logfinish(nodeid):
    seen.append(nodeid)
    if len(seen) == FEW:
        before["held"], before["bytes"] = held()

def pytest_sessionfinish(session):
    after, size_bytes = held()
    print()
    print("left", "nothing" if after == before["held"] else (before["held"], after))
    print("grown_kb", (size_bytes - before["bytes"]) // 1024)
"""


def test_tk_6_the_benchmark_names_its_parts() -> None:
    """What they are on a quiet machine is no matter of a test."""
    figures = {figure.what: figure for figure in test_kit.measured(1)}
    assert figures[test_kit.BROKER].goal == 40
    assert figures[test_kit.TO_RECORD].goal == 150
    assert all(figure.reached > 0 for figure in figures.values())


@pytest.mark.slow
def test_tk_2_a_hundred_tests_leave_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TK-6: no thread, file, socket or directory, and at most 20 MB."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "test_hundred.py").write_text(HUNDRED)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    printed = run_pytest(tmp_path, "-s", "-p", "no:xdist")
    assert "100 passed" in printed
    assert "left nothing" in printed, printed
    (grown_kb,) = (line.split()[1] for line in printed.splitlines() if "grown_kb" in line)
    print(f"{grown_kb} kB more after a hundred tests")
    assert int(grown_kb) <= 20 * 1024
