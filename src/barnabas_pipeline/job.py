"""Runs a pipeline's job, which streams collected lines into tables and dead letters.

The job consists of a single streaming query. Depending on its trigger, the query runs once over the
existing records, or indefinitely. Each micro-batch is one step of `state, batch -> state`
(step.py), so a run over old logs, a service, and a restart after `kill -9` all produce the same
tables.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from barnabas.client.config import of_every_client
from barnabas_pipeline.dead_letter_topic import DeadLetterTopic
from barnabas_pipeline.one_pass import RESULT, OnePass, unpack
from barnabas_pipeline.step import Query
from barnabas_pipeline.tables import Tables
from barnabas_pipeline.work import Definition


class Job(NamedTuple):
    """The definition of a job, with its source and its target."""

    definition: Definition
    bootstrap_servers: str
    topic: str
    dead_letter_topic: str
    tables: Path
    checkpoint: Path
    max_records_per_batch: int = 250_000
    client_options: Mapping[str, str] = {}
    """Options for all clients, such as security options, with Kafka's names."""

    def start(self, spark: SparkSession, *, every_seconds: float | None = None) -> StreamingQuery:
        """Start the query, which runs to the current end of the topic or, with `every_seconds`,
        indefinitely.

        Raises `ConfigError` if the tables were not written with this checkpoint, or a producer's
        error if the brokers cannot begin transactions.
        """
        tables = Tables(self.tables, self.definition.layout)
        tables.check_query(self._known_query(tables))
        DeadLetterTopic.prepare(self.bootstrap_servers, self._own_options())
        records = (
            spark.readStream.format("barnabas")
            .options(**{f"kafka.{name}": text for name, text in self.client_options.items()})
            .option("kafka.bootstrap.servers", self.bootstrap_servers)
            .option("subscribe", self.topic)
            .option("startingOffsets", "earliest")
            .option("kafka.isolation.level", "read_committed")
            .option("includeHeaders", "true")
            .option("recordBatches", "true")
            .option("maxOffsetsPerTrigger", self.max_records_per_batch)
            .load()
        )
        writer = (
            records.writeStream.queryName(f"{self.definition.name}-{self.topic}")
            .option("checkpointLocation", str(self.checkpoint))
            .foreachBatch(partial(self._process, tables))
        )
        if every_seconds is None:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{every_seconds} seconds").start()

    def _own_options(self) -> dict[str, str]:
        return of_every_client(self.client_options)

    def _known_query(self, tables: Tables) -> str | None:
        """Return the id of the checkpoint's query, or None if the query has not committed a batch
        yet.
        """
        metadata = self.checkpoint / "metadata"
        # Spark assigns a query its id before the first batch. The checkpoint of a run that stopped
        # before the end of that batch does not count, unless the tables have a state: Spark may
        # have been killed before it marked the batch as done.
        has_committed = any((self.checkpoint / "commits").glob("[0-9]*"))
        if not metadata.exists() or not (has_committed or tables.control()):
            return None
        return str(json.loads(metadata.read_text("utf-8"))["id"])

    def _process(self, tables: Tables, batch: DataFrame, number: int) -> None:
        # Spark exposes the id of a `foreachBatch` query only in this local property.
        query = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        assert query is not None
        letters = DeadLetterTopic(
            self.bootstrap_servers, self.dead_letter_topic, query, self._own_options()
        )

        def tasks(one_pass: OnePass) -> Iterator[tuple[str, bytes]]:
            return unpack(batch.mapInArrow(one_pass.run, RESULT).collect())

        Query(query, self.definition, tables, letters.send).take(number, tasks)
