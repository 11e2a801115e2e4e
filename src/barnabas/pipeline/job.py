"""The user-behaviour job: a stream of collected lines into tables and dead letters.

One streaming query; whether it runs once over what is there or for ever is a trigger, the rest is
the same code. Each micro-batch is one step of `state, batch -> state` (tables.py), so a run over
history, a service and a restart after `kill -9` end with the same tables.
"""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from barnabas.pipeline import behaviour, traffic
from barnabas.pipeline.sessions import SILENCE_SECONDS, joined_sessions, single_hits
from barnabas.pipeline.tables import DAILY, Tables, Writing

_COUNTED = {
    "traffic": traffic.traffic,
    "pages": traffic.pages,
    "referrers": traffic.referrers,
    "statuses": traffic.statuses,
}


class Job(NamedTuple):
    """Where the job reads and where it writes."""

    bootstrap_servers: str
    topic: str
    dead_letter_topic: str
    tables: Path
    checkpoint: Path
    max_records_per_batch: int = 250_000

    def start(self, spark: SparkSession, *, every_seconds: float | None = None) -> StreamingQuery:
        """Start the query: to the end of the topic as it is now, or for ever (`every_seconds`).

        Raises `ConfigError` where tables and checkpoint do not belong together.
        """
        tables = Tables(self.tables)
        tables.check_query(self._known_query())
        records = (
            spark.readStream.format("barnabas")
            .option("kafka.bootstrap.servers", self.bootstrap_servers)
            .option("subscribe", self.topic)
            .option("startingOffsets", "earliest")
            .option("includeHeaders", "true")
            .option("maxOffsetsPerTrigger", self.max_records_per_batch)
            .load()
        )
        writer = (
            records.writeStream.queryName("behaviour")
            .option("checkpointLocation", str(self.checkpoint))
            .foreachBatch(self._process)
        )
        if every_seconds is None:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{every_seconds} seconds").start()

    def _known_query(self) -> str | None:
        """The id of the query that has committed batches, by this checkpoint; None before."""
        metadata = self.checkpoint / "metadata"
        has_committed = any((self.checkpoint / "commits").glob("[0-9]*"))
        if not metadata.exists() or not (has_committed or Tables(self.tables).manifest()):
            return None
        return str(json.loads(metadata.read_text("utf-8"))["id"])

    def _process(self, batch: DataFrame, number: int) -> None:
        tables = Tables(self.tables)
        writing = tables.begin(number)
        if writing is not None:
            query = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
            assert query is not None
            _Step(self, tables, writing, batch).take(query)

    def send_dead_letters(self, letters: DataFrame, *, is_replay: bool) -> None:
        """Write dead letters to their topic; in a replay only those that are not there yet."""
        if is_replay:
            there = (
                letters.sparkSession.read.format("barnabas")
                .option("kafka.bootstrap.servers", self.bootstrap_servers)
                .option("subscribe", self.dead_letter_topic)
                .option("includeHeaders", "true")
                .load()
            )
            sources = behaviour.dead_letter_sources(there)
            letters = letters.join(sources, ["topic", "partition", "offset"], "left_anti")
        (
            behaviour.dead_letter_records(letters)
            .write.format("barnabas")
            .option("kafka.bootstrap.servers", self.bootstrap_servers)
            .option("topic", self.dead_letter_topic)
            .mode("append")
            .save()
        )


class _Step:
    """One batch: from the state before it to the state after it."""

    def __init__(self, job: Job, tables: Tables, writing: Writing, batch: DataFrame) -> None:
        self._job = job
        self._tables = tables
        self._writing = writing
        self._batch = batch
        self._spark = batch.sparkSession

    def take(self, query: str) -> None:
        before = self._tables.manifest()
        newest_s = before.newest_s if before else None
        files = self._tables.read(self._spark, "files")
        lines = behaviour.classified(self._batch, files).persist()
        try:
            survey = self._survey(lines)
            counts = behaviour.file_counts(lines)
            self._writing.put("files", behaviour.added_files(files, counts))
            if survey.bad:
                letters = behaviour.dead_letters(lines)
                self._writing.append("dead_letters", letters)
                self._job.send_dead_letters(letters, is_replay=self._writing.is_replay)
            since = None
            if survey.oldest_s is not None and survey.newest_s is not None:
                since = _first_changed_day(survey.oldest_s, newest_s)
                newest_s = max(survey.newest_s, newest_s or survey.newest_s)
                hits = behaviour.events(lines)
                self._writing.append("events", hits)
                self._put_daily(hits, newest_s, since)
            self._writing.commit(query, newest_s, since)
        finally:
            lines.unpersist()

    def _survey(self, lines: DataFrame) -> _Survey:
        once = ~F.col("twice")
        is_valid = once & F.col("reason").isNull()
        time_s = F.when(is_valid, F.unix_seconds("time"))
        row = lines.agg(
            F.count_if(is_valid).alias("valid"),
            F.count_if(once & ~is_valid).alias("bad"),
            F.min(time_s).alias("oldest_s"),
            F.max(time_s).alias("newest_s"),
        ).first()
        assert row is not None
        return _Survey(**row.asDict())

    def _put_daily(self, events: DataFrame, newest_s: int, since: date) -> None:
        sessions = self._tables.read(self._spark, "sessions", since=since)
        self._writing.put("sessions", joined_sessions(sessions, single_hits(events), newest_s))
        for name, count in _COUNTED.items():
            before = self._tables.read(self._spark, name, since=since)
            self._writing.put(name, traffic.added(before, count(events), DAILY[name]))


class _Survey(NamedTuple):
    """A batch at a glance: its lines that count, and the times of its oldest and newest hit."""

    valid: int
    bad: int
    oldest_s: int | None
    newest_s: int | None


def _first_changed_day(oldest_s: int, newest_before_s: int | None) -> date:
    """The day from which on a batch can change a table.

    A hit joins a session whose end is less than the silence before it; and a session that was
    open before may be open no longer.
    """
    earliest_s = min(oldest_s, oldest_s if newest_before_s is None else newest_before_s)
    return datetime.fromtimestamp(earliest_s - SILENCE_SECONDS, UTC).date()
