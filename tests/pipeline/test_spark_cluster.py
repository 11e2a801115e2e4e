"""SP-3, SP-4: queries on Spark clusters of several processes, whose executors are killed."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import deltalake
import pytest

from barnabas.client import NewTopic, SyncAdmin
from barnabas.client.offsets import LATEST
from barnabas.client.producer.batch import ProducerRecord
from barnabas.client.sync.producer import SyncProducer
from barnabas.testing.embedded.broker import Broker
from barnabas.types import TopicPartition
from barnabas_collector.registry import Registry
from barnabas_pipeline.behaviour.definition import BEHAVIOUR
from barnabas_pipeline.behaviour.figures import read_figures
from barnabas_pipeline.behaviour.generator import write_log
from barnabas_pipeline.collector import Collector
from barnabas_pipeline.snapshot import Snapshot
from tests.kit import foreign
from tests.kit.pipeline.table_batches import tables_in
from tests.kit.pipeline.topics import create, numbered
from tests.kit.processes.cluster_load import committed_values
from tests.kit.waiting import wait_until
from tests.pipeline.cluster_job import HOLD_AFTER
from tests.pipeline.independent import Found, compute
from tests.pipeline.spark_cluster import job, spark_cluster

pytestmark = [pytest.mark.slow, pytest.mark.foreign]

PARTITIONS = 2
ROWS = PARTITIONS * (HOLD_AFTER + 5_000)


@pytest.fixture
def servers() -> Iterator[str]:
    """A broker with the topic `in`, whose records are in both partitions, and an empty `out`."""
    foreign.require_java()
    with Broker() as broker:
        for topic in ("in", "out"):
            create(broker, topic, PARTITIONS)
        with SyncProducer(broker.bootstrap_servers) as producer:
            producer.send_many(
                ProducerRecord("in", value, partition=number % PARTITIONS)
                for number, value in enumerate(numbered(0, ROWS))
            )
            producer.flush()
        yield broker.bootstrap_servers


@contextlib.contextmanager
def copies(
    master: str, servers: str, directory: Path, module: str = "cluster_job"
) -> Iterator[subprocess.Popen[bytes]]:
    for name in ("topic", "table"):
        (directory / name).mkdir()
    with job(module, directory, master, servers, "in", "out") as running:
        yield running


def check(servers: str, directory: Path) -> None:
    expected = sorted(numbered(0, ROWS))
    assert sorted(committed_values(servers, "out", PARTITIONS)) == expected
    table = deltalake.DeltaTable(str(directory / "table" / "rows")).to_pyarrow_table()
    assert sorted(table["value"].to_pylist()) == expected


@pytest.mark.timeout(600)
def test_sp_3_executors_of_a_standalone_cluster_are_killed(servers: str, tmp_path: Path) -> None:
    """Each once in each query, when a part of their rows is written."""
    with (
        spark_cluster(tmp_path, workers=PARTITIONS) as cluster,
        copies(cluster.master, servers, tmp_path) as running,
    ):
        killed = 0
        for name in ("topic", "table"):
            place = tmp_path / name
            wait_until(lambda place=place: len([*place.glob("held-*")]) == PARTITIONS, 240)  # type: ignore[misc]
            for executor in cluster.executors():
                executor.kill()
                killed += 1
            (place / "go").touch()
        assert running.wait(300) == 0, (tmp_path / "job.log").read_text()[-3000:]
    assert killed == 2 * PARTITIONS
    check(servers, tmp_path)
    print(f"{ROWS} rows twice, {killed} executors killed")


@pytest.mark.soak  # it takes as much CPU time as the two other tests together
@pytest.mark.timeout(600)
def test_sp_3_tasks_that_run_twice_at_once(servers: str, tmp_path: Path) -> None:
    """By Spark's speculation: a task of each query is slow, and both of its attempts write."""
    with (
        spark_cluster(tmp_path, workers=PARTITIONS) as cluster,
        copies(cluster.master, servers, tmp_path, "speculation_job") as running,
    ):
        assert running.wait(300) == 0, (tmp_path / "job.log").read_text()[-3000:]
    for name in ("topic", "table"):
        assert (tmp_path / name / "both").exists(), f"no task of the {name} ran twice"
    assert staged(servers) > ROWS
    check(servers, tmp_path)
    print(f"{ROWS} rows twice, {staged(servers)} rows staged for the topic")


def staged(servers: str) -> int:
    """How many rows tasks have ever put into the staging topic."""
    with SyncAdmin(servers) as admin:
        (topic,) = (name for name in admin.list_topics() if name.endswith("-staging"))
        (found,) = admin.describe_topics([topic])
        names = [TopicPartition(topic, number) for number in range(len(found.partitions))]
        ends = admin.list_offsets(dict.fromkeys(names, LATEST))
    return sum(each.offset for each in ends.values())


@pytest.mark.soak  # the standalone cluster above has the same parts, and more of them
@pytest.mark.timeout(600)
def test_sp_4_on_a_cluster_within_one_process_tree(servers: str, tmp_path: Path) -> None:
    """Executors apart from the driver, as `local-cluster` starts them."""
    with copies("local-cluster[2,1,1024]", servers, tmp_path) as running:
        for name in ("topic", "table"):
            (tmp_path / name / "go").touch()
        assert running.wait(300) == 0, (tmp_path / "job.log").read_text()[-3000:]
    check(servers, tmp_path)


@pytest.mark.timeout(600)
def test_sp_4_the_behaviour_job_whose_executors_are_killed(servers: str, tmp_path: Path) -> None:
    """SP-4, SP-3: a standalone cluster; each line is in one table once."""
    found = collected(servers, tmp_path, "lines", seed=3)
    tables = tmp_path / "lines" / "tables"
    with (
        spark_cluster(tmp_path, workers=PARTITIONS) as cluster,
        job("behaviour_job", tmp_path, cluster.master, servers, "lines", "dead") as running,
    ):
        for batch in (0, 2):
            wait_until(lambda batch=batch: _newest_batch(tables) >= batch, 240)  # type: ignore[misc]
            for executor in cluster.executors():
                executor.kill()
        assert running.wait(300) == 0, (tmp_path / "job.log").read_text()[-3000:]
    figures_agree(tables, found)
    assert sorted(committed_values(servers, "dead", 1)) == sorted(found.bad)


@pytest.mark.soak  # test_tables_killed.py has the same without a cluster
@pytest.mark.timeout(600)
def test_sp_4_two_behaviour_jobs_that_share_a_topic_of_dead_letters(
    servers: str, tmp_path: Path
) -> None:
    """SP-4, DL-1: at once, with executors apart from the driver; it is killed between batches."""
    topics = {name: collected(servers, tmp_path, name, seed) for seed, name in enumerate("ab", 4)}

    def have_begun() -> bool:
        return all(_newest_batch(tmp_path / name / "tables") >= 1 for name in topics)

    for is_last in (False, True):
        with job(
            "behaviour_job", tmp_path, "local-cluster[2,2,1024]", servers, "a,b", "dead"
        ) as running:
            if not is_last:
                wait_until(lambda: running.poll() is not None or have_begun(), 240)
                running.kill()
                assert running.wait() == -signal.SIGKILL, (tmp_path / "job.log").read_text()[-3000:]
                continue
            assert running.wait(300) == 0, (tmp_path / "job.log").read_text()[-3000:]
    for name, found in topics.items():
        figures_agree(tmp_path / name / "tables", found)
    bad = sorted(line for found in topics.values() for line in found.bad)
    assert sorted(committed_values(servers, "dead", 1)) == bad


def collected(servers: str, directory: Path, topic: str, seed: int) -> Found:
    """A log's lines in a topic; what they come to. The topic of dead letters is there, too."""
    log = directory / f"{topic}.log"
    write_log(log, lines=10_000, seed=seed)
    with SyncAdmin(servers) as admin:
        admin.create_topics([NewTopic(topic, PARTITIONS)])
        if "dead" not in admin.list_topics():
            admin.create_topics([NewTopic("dead", 1)])
    with Collector(servers, topic, Registry(directory / f"{topic}.json")) as collector:
        collector.collect(log)
    return compute(log)


def figures_agree(tables: Path, found: Found) -> None:
    figures = read_figures(Snapshot(tables, BEHAVIOUR))
    assert figures.accounts == (found.lines, len(found.hits), len(found.bad), 0)
    assert figures.humans.sessions + figures.robots.sessions == len(found.sessions)


def _newest_batch(tables: Path) -> int:
    control = tables_in(tables).control()
    return -1 if control is None else control.batch
