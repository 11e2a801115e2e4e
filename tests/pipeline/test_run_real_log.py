"""A real site's log through broker and Spark, compared with an independent computation (SP-2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import polars as pl
import pytest

import barnabas
from barnabas.cli.main import main
from barnabas.client import NewTopic, SyncAdmin, SyncConsumer, TopicPartition
from barnabas_collector.registry import Registry
from barnabas_pipeline.behaviour.definition import BEHAVIOUR, Behaviour
from barnabas_pipeline.behaviour.figures import read_figures
from barnabas_pipeline.behaviour.sessions import derive
from barnabas_pipeline.collector import Collected, Collector
from barnabas_pipeline.job import Job
from barnabas_pipeline.snapshot import Snapshot
from tests.kit.pipeline.table_batches import ALL, snapshot_of
from tests.pipeline.independent import Found, Session, compute

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LETTERS = "dead-letters-of-real-log"
TOPIC = "real-log"


class Site(NamedTuple):
    """The job and what it works on."""

    job: Job
    log: Path
    workspace: Path

    def collect(self, registry: str) -> Collected:
        known = Registry(self.workspace / registry)
        with Collector(self.job.bootstrap_servers, TOPIC, known) as collector:
            return collector.collect(self.log)

    def run(self, spark: SparkSession) -> None:
        """Everything that is there by now (AvailableNow)."""
        self.job.start(spark).awaitTermination()

    def dead_letters(self) -> list[bytes | None]:
        servers = self.job.bootstrap_servers
        with SyncConsumer(servers, isolation_level="read_committed") as consumer:
            partition = TopicPartition(LETTERS, 0)
            end = consumer.end_offsets([partition])[partition]
            consumer.assign([partition])
            consumer.seek(partition, 0)
            values: list[bytes | None] = []
            while consumer.position(partition) < end:
                values.extend(record.value for record in consumer.poll(timeout_ms=1000))
        return values


@pytest.fixture(scope="module")
def site(
    broker: barnabas.Broker, shared: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    workspace = tmp_path_factory.mktemp("real")
    with SyncAdmin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(TOPIC, 3, 1), NewTopic(LETTERS, 1, 1)])
    job = Job(
        Behaviour(),
        bootstrap_servers=broker.bootstrap_servers,
        topic=TOPIC,
        dead_letter_topic=LETTERS,
        tables=workspace / "tables",
        checkpoint=workspace / "checkpoint",
        max_records_per_batch=6_000,
    )
    yield Site(job, shared / "data/web-access/apache_logs.log", workspace)


@pytest.fixture(scope="module")
def found(site: Site) -> Found:
    return compute(site.log)


def test_all_lines_are_accounted_for_and_the_numbers_agree_sp_2(
    spark: SparkSession, site: Site, found: Found
) -> None:
    """SP-2, SP-4: in two batches, with sessions that go on from one to the other."""
    assert site.collect("registry.json").lines == found.lines == 10_000
    site.run(spark)
    snapshot = snapshot_of(site.job.tables)
    assert snapshot.control is not None and snapshot.control.batch >= 1
    assert snapshot.control.newest_s is not None
    sessions = derive(snapshot.frame("sessions"), snapshot.control.newest_s)
    assert sessions.height == len(found.sessions)
    assert sessions.n_unique(["client", "agent"]) == found.visitors
    assert sessions["bounce"].sum() == found.bounces
    assert sessions["open"].sum() == found.open()
    columns = ["client", "hits", "pages", "length_seconds", "bytes", "entry", "exit"]
    rows = sessions.select(columns).fill_null("").iter_rows()
    assert Counter(rows) == Counter(described(session) for session in found.sessions)
    assert sums(snapshot, "statuses", "class", "hits") == found.status_classes
    pages = {
        path: views for path, views in sums(snapshot, "pages", "path", "views").items() if views
    }
    assert pages == found.page_views
    assert sums(snapshot, "referrers", "host", "hits") == found.referrer_hosts
    minutes = snapshot.frame("traffic")
    assert minutes["hits"].sum() == len(found.hits)
    assert minutes["bytes"].sum() == sum(hit.size_bytes for hit in found.hits)
    assert site.dead_letters() == found.bad


def test_a_second_run_adds_nothing_twice_sp_4(
    spark: SparkSession, site: Site, found: Found
) -> None:
    """SP-4: neither without new lines, nor when all of them are sent again."""
    before = contents(site)
    assert site.collect("registry.json") == Collected()
    site.run(spark)
    assert contents(site) == before
    assert site.collect("lost.json").lines == found.lines, "what if the registry is lost"
    site.run(spark)
    assert contents(site) == before
    assert site.dead_letters() == found.bad
    figures = read_figures(Snapshot(site.job.tables, BEHAVIOUR))
    assert figures.accounts == (2 * found.lines, len(found.hits), len(found.bad), found.lines)
    assert figures.accounts.balance
    assert figures.humans.visitors + figures.robots.visitors == found.visitors
    assert figures.humans.sessions + figures.robots.sessions == len(found.sessions)
    assert sum(m.human_hits + m.robot_hits for m in figures.timeline.moments) == len(found.hits)


def test_lg_5_a_report_without_spark_has_the_same_rows(
    spark: SparkSession, site: Site, tmp_path: Path
) -> None:
    """LG-5: in every table, whichever way they came; only places in a topic are missing."""
    if snapshot_of(site.job.tables).control is None:  # this test runs alone
        site.collect("registry.json")
        site.run(spark)
    page = tmp_path / "page.html"
    own = tmp_path / "tables"
    assert main(["report", str(site.log), "--tables", str(own), "--out", str(page)]) == 0
    mine, theirs = rows_anywhere(snapshot_of(own)), rows_anywhere(snapshot_of(site.job.tables))
    for name, rows in mine.items():
        # Two differences: pytest's own of thousands of rows takes an hour.
        assert not rows - theirs[name] and not theirs[name] - rows, name


def rows_anywhere(snapshot: Snapshot) -> dict[str, Counter[str]]:
    """The rows without what depends on the topic, its partitions, and how often it was sent."""
    places = ["topic", "partition", "offset", "entry_order", "exit_order", "headers"]
    found = {}
    for name in ALL:
        frame = snapshot.frame(name).drop(places, strict=False)
        if name == "files":
            frame = frame.group_by("file_id", "file").agg(pl.col("valid", "dead_letters").sum())
        found[name] = Counter(map(repr, frame.iter_rows()))
    return found


def described(session: Session) -> tuple[object, ...]:
    length_s = int((session.end - session.start).total_seconds())
    ends = (session.entry or "", session.exit or "")
    return (session.client, session.hits, session.pages, length_s, session.size_bytes, *ends)


def sums(snapshot: Snapshot, name: str, key: str, count: str) -> dict[str, int]:
    rows = snapshot.frame(name).group_by(key).agg(pl.col(count).sum())
    return dict(rows.select(key, count).iter_rows())


def contents(site: Site) -> dict[str, Counter[str]]:
    snapshot = snapshot_of(site.job.tables)
    return {
        name: Counter(map(repr, snapshot.frame(name).iter_rows()))
        for name in ALL
        if name != "files"
    }
