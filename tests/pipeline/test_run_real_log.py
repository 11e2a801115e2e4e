"""A real site's log through broker and Spark, compared with an independent computation (SP-2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from pyspark.sql import functions as F

import barnabas
from barnabas.client import NewTopic, SyncAdmin, SyncConsumer, TopicPartition
from barnabas.pipeline.collector import Collected, Collector
from barnabas.pipeline.figures import read_figures
from barnabas.pipeline.job import Job
from barnabas.pipeline.registry import Registry
from barnabas.pipeline.tables import SCHEMAS, Tables
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
        with SyncConsumer(self.job.bootstrap_servers) as consumer:
            partition = TopicPartition(LETTERS, 0)
            end = consumer.end_offsets([partition])[partition]
            consumer.assign([partition])
            consumer.seek(partition, 0)
            values: list[bytes | None] = []
            while len(values) < end:
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
    tables = Tables(site.job.tables)
    manifest = tables.manifest()
    assert manifest is not None and manifest.batch >= 1
    sessions = tables.read(spark, "sessions").toPandas()
    assert len(sessions) == len(found.sessions)
    assert len(sessions[["client", "agent"]].drop_duplicates()) == found.visitors
    assert sessions["bounce"].sum() == found.bounces
    assert sessions["open"].sum() == found.open()
    columns = ["client", "hits", "pages", "length_seconds", "bytes", "entry", "exit"]
    rows = sessions[columns].fillna("").itertuples(index=False, name=None)
    assert Counter(rows) == Counter(described(session) for session in found.sessions)
    classes = tables.read(spark, "statuses").groupBy("class").sum("hits").collect()
    assert {row[0]: row[1] for row in classes} == found.status_classes
    pages = tables.read(spark, "pages").where("views > 0").groupBy("path").sum("views").collect()
    assert {row[0]: row[1] for row in pages} == found.page_views
    hosts = tables.read(spark, "referrers").groupBy("host").sum("hits").collect()
    assert {row[0]: row[1] for row in hosts} == found.referrer_hosts
    minutes = tables.read(spark, "traffic").groupBy().sum("hits", "bytes").collect()[0]
    assert minutes[0] == len(found.hits)
    assert minutes[1] == sum(hit.size_bytes for hit in found.hits)
    assert site.dead_letters() == found.bad


def test_a_second_run_adds_nothing_twice_sp_4(
    spark: SparkSession, site: Site, found: Found
) -> None:
    """SP-4: neither without new lines, nor when all of them are sent again."""
    before = contents(spark, site)
    assert site.collect("registry.json") == Collected()
    site.run(spark)
    assert contents(spark, site) == before
    assert site.collect("lost.json").lines == found.lines, "what if the registry is lost"
    site.run(spark)
    assert contents(spark, site) == before
    assert site.dead_letters() == found.bad
    # A batch that was cut off after its dead letters had been sent is taken again.
    letters = Tables(site.job.tables).read(spark, "dead_letters")
    site.job.send_dead_letters(letters, is_replay=True)
    assert site.dead_letters() == found.bad
    # Another job's, of the same partition and offset, is another one.
    others = letters.limit(1).withColumn("topic", F.lit("of another job"))
    site.job.send_dead_letters(others, is_replay=True)
    assert len(site.dead_letters()) == len(found.bad) + 1
    figures = read_figures(site.job.tables)
    assert figures.accounts == (2 * found.lines, len(found.hits), len(found.bad), found.lines)
    assert figures.accounts.balance
    assert figures.humans.visitors + figures.robots.visitors == found.visitors
    assert figures.humans.sessions + figures.robots.sessions == len(found.sessions)
    assert sum(m.human_hits + m.robot_hits for m in figures.timeline.moments) == len(found.hits)


def described(session: Session) -> tuple[object, ...]:
    length_s = int((session.end - session.start).total_seconds())
    ends = (session.entry or "", session.exit or "")
    return (session.client, session.hits, session.pages, length_s, session.size_bytes, *ends)


def contents(spark: SparkSession, site: Site) -> dict[str, Counter[str]]:
    tables = Tables(site.job.tables)
    return {
        name: Counter(str(row) for row in tables.read(spark, name).collect())
        for name in SCHEMAS
        if name != "files"
    }
