"""SP-3, DL-1: the pipeline's driver is killed, or its disk is full; each batch is there once."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.testing.embedded.broker import Broker
from tests.kit.pipeline.table_batches import contents, letters_in, tables_in, write
from tests.kit.pipeline.topics import create
from tests.pipeline.tables_job import MERGED_EVERY, PARTITIONS, STEPS, TOPIC

KILLS = 6
LIMITS = (1_000, 3_000, *range(5_000, 20_000, 500))

FULL = """
import resource, sys
from tests.pipeline import tables_job

tables_job.number_of_tasks = 4  # each one's file is smaller than the commit of all
limit = int(sys.argv.pop())
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
tables_job.main(*sys.argv[1:])
"""


@pytest.fixture
def servers() -> Iterator[str]:
    with Broker() as broker:
        create(broker, TOPIC)
        yield broker.bootstrap_servers


def job(servers: str, directory: Path, batches: int, step: str = "") -> subprocess.Popen[bytes]:
    directory.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "tests.pipeline.tables_job", servers, directory.name]
    return subprocess.Popen([*command, str(directory), str(batches), step])


def check(servers: str, directory: Path, batches: int) -> None:
    """As one process would have left it that was never killed."""
    untouched = directory.with_name("untouched")
    write(tables_in(untouched), range(batches), PARTITIONS)
    assert contents(directory / "tables") == contents(untouched)
    sent = Counter(
        value
        for value, headers in letters_in(servers, TOPIC)
        if headers["query"] == directory.name.encode()
    )
    assert sent == {
        b"bad %d in %d" % (batch, partition): 1
        for batch in range(batches)
        for partition in range(PARTITIONS)
    }


@pytest.mark.repeated
def test_sp_3_killed_at_each_step(servers: str, tmp_path: Path) -> None:
    """SP-3: each time in a batch behind which small files are merged. Of the tables every third,
    and each of them in `make soak`; test_tables.py has each cut without a process."""
    directory, batches = tmp_path / "query", 0
    for step in STEPS:
        batches += MERGED_EVERY
        assert job(servers, directory, batches, step).wait(60) == -signal.SIGKILL, step
    # Twice in one replay, and then to the end.
    batches += MERGED_EVERY
    for step in ("behind the dead letters", "behind all merges"):
        assert job(servers, directory, batches, step).wait(60) == -signal.SIGKILL, step
    assert job(servers, directory, batches + 1).wait(60) == 0
    check(servers, directory, batches + 1)


@pytest.mark.slow
def test_dl_1_two_queries_share_a_topic_of_dead_letters(servers: str, tmp_path: Path) -> None:
    """Both run at once, and are killed at any moment."""
    moments = random.Random(20261124)
    directories = [tmp_path / name for name in ("one", "another")]
    for _ in range(KILLS):
        running = [job(servers, directory, 10_000) for directory in directories]
        for each in running:
            time.sleep(0.8 + moments.random())
            each.kill()
            each.wait(60)
    ends = []
    for directory in directories:
        done = directory / "progress"
        ends.append((int(done.read_text()) if done.exists() else 0) + 3)
    running = [job(servers, *each) for each in zip(directories, ends, strict=True)]
    assert [each.wait(120) for each in running] == [0, 0]
    for directory, batches in zip(directories, ends, strict=True):
        check(servers, directory, batches)
        (tmp_path / "untouched").rename(tmp_path / f"untouched-{directory.name}")
    print(f"{2 * KILLS} kills, {ends} batches")


@pytest.mark.soak  # a session of Spark for each of the limits
def test_sp_3_a_disk_that_is_full(servers: str, tmp_path: Path) -> None:
    """A limit on the size of files: at first it stops a task's, then a commit's, then none."""
    directory = tmp_path / "query"
    directory.mkdir()
    refused = []
    for limit in LIMITS:
        command = [sys.executable, "-c", FULL, servers, directory.name, str(directory), "1", ""]
        result = subprocess.run([*command, str(limit)], capture_output=True, text=True)
        if result.returncode == 0:
            break
        last = result.stderr.rstrip().rpartition("\n")[2]
        assert "BarnabasError" in last, result.stderr
        assert "File too large" in last, result.stderr
        refused.append(last)
    assert any("cannot write" in each for each in refused), "by a task"
    assert any("cannot write" not in each for each in refused), "in a commit"
    assert job(servers, directory, 2).wait(60) == 0
    check(servers, directory, 2)
