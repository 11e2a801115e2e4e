"""SP-4, SP-2: the job on system logs on Spark clusters of several processes that are killed."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.testing.embedded.broker import Broker
from barnabas_collector.log_paths import LogPaths
from barnabas_collector.shipment import Shipment
from barnabas_collector.shipper import ship
from barnabas_pipeline.logs.definition import LOGS
from barnabas_pipeline.logs.generator import write_logs
from barnabas_pipeline.snapshot import Snapshot
from barnabas_pipeline.tables import Tables
from tests.kit import foreign
from tests.kit.pipeline.topics import create
from tests.kit.processes.cluster_load import committed_values
from tests.kit.waiting import wait_until
from tests.pipeline.spark_cluster import job, spark_cluster

pytestmark = [pytest.mark.slow, pytest.mark.foreign, pytest.mark.timeout(600)]

PARTITIONS = 2
LINES = 12_000


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[str]:
    """A broker with every line of the generated logs as a record of `lines`."""
    foreign.require_java()
    write_logs(tmp_path / "logs", LINES, seed=6)
    with Broker() as broker:
        create(broker, "lines", PARTITIONS)
        create(broker, "dead", 1)
        shipment = Shipment(broker.bootstrap_servers, "lines", "test", "host")
        paths = LogPaths([str(tmp_path / "logs")])
        asyncio.run(ship(shipment, paths, asyncio.Event(), once=True))
        yield broker.bootstrap_servers


def newest_batch(directory: Path) -> int:
    control = Tables(directory / "tables", LOGS).control()
    return -1 if control is None else control.batch


def check(servers: str, directory: Path) -> None:
    """Each line once, and one text, number and beginning for each template."""
    snapshot = Snapshot(directory / "tables", LOGS)
    entries, letters = snapshot.frame("entries"), snapshot.frame("dead_letters")
    assert entries.height + letters.height == LINES
    assert entries.select("file_id", "line").n_unique() == entries.height
    assert sorted(committed_values(servers, "dead", 1)) == sorted(letters["value"])
    templates = snapshot.frame("templates")
    assert dict(entries.group_by("template").len().iter_rows()) == dict(
        templates.select("template", "lines").iter_rows()
    )
    assert templates["number"].n_unique() == templates["text"].n_unique() == templates.height


def test_sp_4_a_standalone_cluster_whose_executors_and_driver_are_killed(
    servers: str, tmp_path: Path
) -> None:
    place = tmp_path / "job"
    place.mkdir()
    with spark_cluster(tmp_path, workers=PARTITIONS) as cluster:
        arguments = (cluster.master, servers, "lines", "dead")
        with job("logs_job", place, *arguments) as running:
            wait_until(lambda: newest_batch(place) >= 0, 240)
            for executor in cluster.executors():
                executor.kill()
            wait_until(lambda: newest_batch(place) >= 1 or running.poll() is not None, 240)
            running.kill()
            assert running.wait() == -signal.SIGKILL, (place / "job.log").read_text()[-3000:]
        assert newest_batch(place) < LINES // 2_000, "killed before the end"
        with job("logs_job", place, *arguments) as running:
            assert running.wait(300) == 0, (place / "job.log").read_text()[-3000:]
    check(servers, place)
