"""The pipeline on a cluster whose leaders are killed: it goes on reading, and counts the same."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.client import SyncAdmin, TopicPartition
from barnabas.client.offsets import LATEST
from barnabas_pipeline.behaviour.generator import generate
from tests.kit.pipeline.table_batches import accounts_in
from tests.kit.processes.cluster_load import leader_of
from tests.kit.processes.local_cluster import LocalCluster, local_cluster
from tests.pipeline.independent import compute
from tests.pipeline.run_command import PATIENCE_S, Command, dead_letters, running_command

TOPIC = "web-access"

pytestmark = [pytest.mark.slow, pytest.mark.foreign]

LINES_AT_ONCE = 20
PAUSE_S = 0.05
SLOW_MACHINE_S = 600.0  # three batches of some seconds each, where there is nothing else to do


class WebServer:
    """Appends the lines of a log to a file, from a thread of its own, until it has to end."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._lines = generate(1_000_000, seed=11)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.written = 0
        self._write()

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.wait(PAUSE_S):
            self._write()

    def _write(self) -> None:
        with self._log.open("ab") as file:
            for _ in range(LINES_AT_ONCE):
                file.write(next(self._lines))
        self.written += LINES_AT_ONCE

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()


@contextlib.contextmanager
def busy(log: Path) -> Iterator[WebServer]:
    server = WebServer(log)
    try:
        yield server
    finally:
        server.stop()


@contextlib.contextmanager
def stage(directory: Path) -> Iterator[tuple[LocalCluster, Command]]:
    """A cluster by `barnabas cluster start`, and the pipeline's command for it."""
    with (
        local_cluster(directory) as cluster,
        running_command(directory / "out", directory / "access.log") as command,
    ):
        cluster.start("--override", "zookeeper.session.timeout.ms=2000")
        yield cluster, command


def kill_leader_of(partition: int, cluster: LocalCluster, command: Command) -> int:
    """Who that was; returns when more lines have come to the partition."""
    before = log_end(cluster.servers, partition)
    leader = leader_of(cluster.servers, TOPIC, partition)
    cluster.kill(f"broker-{leader}")
    command.until(lambda: log_end(cluster.servers, partition) > before)
    return leader


def log_end(servers: str, partition: int) -> int:
    """As the leader of that moment has it."""
    name = TopicPartition(TOPIC, partition)
    with SyncAdmin(servers) as admin:
        return admin.list_offsets({name: LATEST})[name].offset


@pytest.mark.timeout(1200)
def test_leaders_are_killed_while_the_pipeline_reads(tmp_path: Path) -> None:
    """SP-2, SP-4, RE-10: collector, streaming source and sink go on at the new leaders; every line
    is counted once. The first kill comes when a batch is planned and not yet read."""
    with stage(tmp_path) as (cluster, command), busy(command.log) as server:
        process = command.start("--service", "--bootstrap-servers", cluster.servers)

        tables = command.out / "tables"
        planned = command.out / "checkpoint" / "offsets"
        command.until((planned / "0").exists)
        server.start()
        first = kill_leader_of(0, cluster, command)
        cluster.cluster(f"start-broker {first}")
        command.until(lambda: cluster.isr_sizes(TOPIC) == {3})
        kill_leader_of(1, cluster, command)
        server.stop()
        wanted = server.written
        command.until(lambda: accounts_in(tables).read >= wanted, SLOW_MACHINE_S)
        assert (planned / "1").exists(), "read in more than one batch"
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, errors
        found = compute(command.log)
        assert f"lines       read {found.lines:,} = " in output
        assert output.splitlines()[-1].startswith("report")
        command.figures_agree(found)
        assert dead_letters(cluster.servers) == sorted(found.bad)
    print(f"{found.lines} lines counted once, though the leaders of two partitions were killed")


def test_a_second_cluster_is_refused(tmp_path: Path) -> None:
    """SP-4, UX-4: in one line, before anything is sent."""
    with stage(tmp_path) as (cluster, command):
        (command.out / "broker").mkdir(parents=True)
        command.log.write_bytes(b"")
        given = ("--bootstrap-servers", cluster.servers)
        _, errors = command.start(*given).communicate(timeout=PATIENCE_S)
        assert errors.startswith(f"barnabas: the tables in {command.out} were filled from a broker")
        (command.out / "broker").rmdir()
        (command.out / "cluster.id").write_text("another\n")
        _, errors = command.start(*given).communicate(timeout=PATIENCE_S)
        assert "were filled from the cluster another, but this is " in errors
        _, errors = command.start().communicate(timeout=PATIENCE_S)
        assert "were filled from the cluster another: give its addresses with " in errors
        with pytest.raises(AssertionError, match="web-access"):
            cluster.run(f"topics describe {TOPIC}")
