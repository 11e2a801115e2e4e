"""SP-3: a query into a Delta table is killed beside its commits; every record is there once.

All of it at once: PySpark's process, Spark's JVM, which knows what is done, and Python's workers.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import deltalake
import pytest

from barnabas.client.producer.batch import ProducerRecord
from barnabas.testing.embedded.broker import Broker
from tests.kit import foreign
from tests.kit.pipeline.topics import create, numbered, send_records
from tests.kit.waiting import wait_until
from tests.pipeline.killed import kill_tree

SOURCE, PARTITIONS = "killed-in", 2
PER_BATCH = 40
SENT_PER_LIFE = 2 * PER_BATCH
LIVES = 6  # at most, until one ends where it is to
PATIENCE_S = 120


class Query:
    """The query as a process, again and again with one checkpoint, and what it leaves on disk."""

    def __init__(self, broker: Broker, directory: Path) -> None:
        self.table, self._checkpoint = directory / "table", directory / "checkpoint"
        self._command = [sys.executable, "-m", "tests.pipeline.delta_stream_job"]
        self._command += [broker.bootstrap_servers, SOURCE]
        self._command += [str(self.table), str(self._checkpoint), str(PER_BATCH)]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, start_new_session=True)

    def has_ended(self) -> bool:
        assert self._process is not None
        return self._process.poll() is not None

    def wait(self) -> int:
        assert self._process is not None
        return self._process.wait(180)

    def kill(self) -> None:
        assert self._process is not None
        if not self.has_ended():
            kill_tree(self._process.pid)
        assert self.wait() in (0, -signal.SIGKILL)

    def planned(self) -> int:
        """How many micro-batches Spark has begun, the one that runs included."""
        return _numbers(self._checkpoint / "offsets")

    def noted(self) -> int:
        """How many Spark knows to be done."""
        return _numbers(self._checkpoint / "commits")

    def committed(self) -> int:
        """How many commits the table's log has."""
        return len(self._commits())

    def files(self) -> int:
        """Of tasks, whether a commit names them or not."""
        return len([*self.table.glob("*.parquet")])

    def transactions(self) -> list[int]:
        """The micro-batches that the log names, commit by commit."""
        actions = [
            json.loads(line) for path in self._commits() for line in path.read_text().splitlines()
        ]
        query = json.loads((self._checkpoint / "metadata").read_text())["id"]
        found = [action["txn"] for action in actions if "txn" in action]
        return [each["version"] for each in found if each["appId"] == query]

    def _commits(self) -> list[Path]:
        return sorted((self.table / "_delta_log").glob("*.json"))


def _numbers(directory: Path) -> int:
    return len([*directory.glob("[0-9]*")])


def killed_before_a_commit(query: Query) -> bool:
    """When tasks have begun to write files; whether the table's log had not yet named them."""
    committed = query.committed()
    query.start()
    # What a batch that runs again writes is not meant.
    wait_until(lambda: query.planned() > committed, PATIENCE_S)
    files = query.files()
    wait_until(lambda: query.files() >= files + PARTITIONS or query.has_ended(), PATIENCE_S)
    query.kill()
    return query.committed() == committed


def killed_behind_a_commit(query: Query) -> bool:
    """When the table's log has it; whether Spark had not yet noted it."""
    committed = query.committed()
    query.start()
    wait_until(lambda: query.committed() > committed or query.has_ended(), PATIENCE_S)
    query.kill()
    return query.noted() < query.committed()


MOMENTS = (killed_before_a_commit, killed_behind_a_commit)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("rounds", [1, pytest.param(3, id="more", marks=pytest.mark.soak)])
def test_sp_3_a_driver_is_killed_beside_its_commits(
    broker: Broker, tmp_path: Path, rounds: int
) -> None:
    foreign.require_java()
    create(broker, SOURCE, PARTITIONS)
    query = Query(broker, tmp_path)
    sent = 0

    def send_more() -> None:
        nonlocal sent
        values = numbered(sent, sent + SENT_PER_LIFE)
        sent += SENT_PER_LIFE
        send_records(
            broker,
            [ProducerRecord(SOURCE, value, None, int(value) % PARTITIONS) for value in values],
        )

    lives = 0
    for moment in MOMENTS * rounds:
        for _ in range(LIVES):
            send_more()
            lives += 1
            if moment(query):
                break
        else:
            raise AssertionError(f"{LIVES} times not {moment.__name__}")
    send_more()
    query.start()
    assert query.wait() == 0
    rows = deltalake.DeltaTable(str(query.table)).to_pyarrow_table()["value"].to_pylist()
    assert sorted(rows) == sorted(numbered(0, sent))
    assert query.transactions() == list(range(query.planned()))
    print(f"{lives} kills, {query.planned()} micro-batches committed once each, {sent} rows")
