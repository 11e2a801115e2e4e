"""Implements the exactly-once sink: the driver commits each micro-batch in one transaction.

    tasks      rows -> staging topic; the offsets of its batches go to the driver  (staging.py)
    driver     InitProducerId -> token -> rows to their targets, and the next token -> EndTxn

The transaction is open only while the driver copies rows. No transaction is open while tasks run,
so retries, speculation and the number of tasks do not matter. When a micro-batch is replayed, its
own token is found and nothing is written (token.py). Consume the topic with
`isolation.level=read_committed`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple
from uuid import uuid4

import pyarrow as pa  # type: ignore[import-untyped]  # ships neither stubs nor py.typed
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from barnabas.client.admin.admin import Admin
from barnabas.client.consumer.committed import OffsetAndMetadata
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.producer.producer import Producer
from barnabas.errors import BarnabasError, ConfigError, InvalidTransactionTimeout
from barnabas.types import TopicPartition
from pyspark_barnabas import staging
from pyspark_barnabas.options import SinkOptions
from pyspark_barnabas.properties import properties_of_clients
from pyspark_barnabas.rows import columns_to_write
from pyspark_barnabas.stager import create_staging_topic, stage, stage_job
from pyspark_barnabas.staging import StagedBatch
from pyspark_barnabas.token import Token, is_committed

_log = logging.getLogger(__name__)

_TIMEOUT_MS = 60_000  # for a response to a fetch
# A deletion waits half a second for the followers' next fetches, so delete once per several small
# micro-batches.
_CLEARED_EVERY = 8  # micro-batches
_MANY_ROWS = 100_000
# The rows have been acknowledged, so a fetch that waited for more would only delay the next step.
_READ_AT_ONCE = {"auto.offset.reset": "none", "fetch.max.wait.ms": 10}
_TIMEOUT_NAME = "transaction.timeout.ms"
_TRANSACTION_TIMEOUT_MS = 900_000  # `transaction.max.timeout.ms` of brokers, by default


class RowsStaged(WriterCommitMessage):
    """The places of the rows that a task has staged, and the task's query."""

    def __init__(self, query: str, batches: Sequence[StagedBatch]) -> None:
        self.query = query
        self.batches = list(batches)


class ExactlyOnceWriter(DataSourceArrowWriter):
    """Implements `df.write.format("barnabas").option("exactlyOnce", "true").mode("append")`, with
    one transaction per job. A job that runs again writes its rows again."""

    def __init__(self, options: SinkOptions, schema: StructType, overwrite: bool) -> None:
        self._columns = columns_to_write(schema, options.topic, overwrite=overwrite)
        self._options = options
        # The driver creates this object, and Spark sends it pickled to the tasks.
        self._job = f"job-{uuid4()}"
        self._topic = staging.staging_topic(transactional_id_of(options, self._job))
        asyncio.run(create_staging_topic(options, self._topic))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> RowsStaged:
        batches = asyncio.run(stage_job(self._options, self._columns, self._topic, iterator))
        return RowsStaged(self._job, batches)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        staged = [each for each in messages if isinstance(each, RowsStaged)]
        batches = [batch for each in staged for batch in each.batches]
        if batches:
            asyncio.run(commit_job(self._options, self._job, batches))
        else:
            asyncio.run(drop_staging_topic(self._options, self._topic))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        asyncio.run(drop_staging_topic(self._options, self._topic))


class ExactlyOnceStreamWriter(DataSourceStreamArrowWriter):
    """Implements `df.writeStream.format("barnabas").option("exactlyOnce", "true")`."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        self._columns = columns_to_write(schema, options.topic)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> RowsStaged:
        context = TaskContext.get()
        query = context.getLocalProperty("sql.streaming.queryId") if context else None
        if query is None:
            raise ConfigError("exactlyOnce: Spark did not name the query of this task")
        batches = asyncio.run(
            stage(self._options, self._columns, transactional_id_of(self._options, query), iterator)
        )
        return RowsStaged(query, batches)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        staged = [each for each in messages if isinstance(each, RowsStaged)]
        if staged:
            batches = [batch for each in staged for batch in each.batches]
            asyncio.run(commit(self._options, staged[0].query, batchId, batches))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Do nothing, because the staged rows are not in the target topic and are deleted after a
        later commit."""


def transactional_id_of(options: SinkOptions, query: str) -> str:
    return options.transactional_id or f"barnabas-{query}"


async def commit(
    options: SinkOptions, query: str, batch: int, staged: Sequence[StagedBatch]
) -> bool:
    """Copy the staged rows in one transaction unless they have already been copied. Return whether
    this call copied them.

    Raises `NotExactlyOnce`, `StagingLost`, or `ProducerFenced` if a newer producer has the same id.
    """
    transactional_id = transactional_id_of(options, query)
    place = TopicPartition(staging.staging_topic(transactional_id), 0)
    wanted = Token(query, batch, sum(each.rows for each in staged))
    async with _connected(options, transactional_id) as clients:
        # A transaction's token is unknown until all its markers are written (KIP-447).
        committed = await clients.admin.list_group_offsets(
            transactional_id, [place], require_stable=True
        )
        found = Token.of(*committed[place][:2]) if place in committed else None
        if is_committed(found, wanted, transactional_id, options.exactly_once_begins):
            _log.info("batch %d of query %s is committed already", batch, query)
            return False
        clients.producer.begin_transaction()
        await staging.copy(clients.consumer, clients.producer, place.topic, staged, _TIMEOUT_MS)
        # As with consumers, the committed offset is the next offset to process, here the number of
        # the next micro-batch.
        token = OffsetAndMetadata(batch + 1, wanted.metadata)
        await clients.producer.send_offsets_to_transaction({place: token}, transactional_id)
        await clients.producer.commit_transaction()
        if batch % _CLEARED_EVERY == 0 or wanted.rows >= _MANY_ROWS:
            try:
                await staging.clear(clients.admin, place.topic, staged)
            except BarnabasError as error:
                # The rows are in their topics, and the rest of the staging topic expires.
                _log.warning("committed rows could not be deleted from %s: %s", place.topic, error)
        return True


async def commit_job(options: SinkOptions, job: str, staged: Sequence[StagedBatch]) -> None:
    """Copy the staged rows of a batch job in one transaction. Raises the same errors as
    `commit`."""
    transactional_id = transactional_id_of(options, job)
    topic = staging.staging_topic(transactional_id)
    async with _connected(options, transactional_id) as clients:
        clients.producer.begin_transaction()
        await staging.copy(clients.consumer, clients.producer, topic, staged, _TIMEOUT_MS)
        await clients.producer.commit_transaction()
        await _drop(clients.admin, topic)


async def drop_staging_topic(options: SinkOptions, topic: str) -> None:
    """Delete the staging topic of a batch job that failed or had no rows."""
    servers, properties = properties_of_clients(options.client)
    async with Admin(servers, **properties.common) as admin:
        await _drop(admin, topic)


async def _drop(admin: Admin, topic: str) -> None:
    try:
        await admin.delete_topics([topic])
    except BarnabasError as error:
        _log.warning("the staging topic %s could not be deleted: %s", topic, error)


class _Clients(NamedTuple):
    admin: Admin
    producer: Producer
    consumer: Consumer


@asynccontextmanager
async def _connected(options: SinkOptions, transactional_id: str) -> AsyncIterator[_Clients]:
    """Connect the driver's clients.

    Connecting fences any earlier producer with the same id and ends that producer's open
    transaction.
    """
    servers, properties = properties_of_clients(options.client)
    # Unless the user sets another timeout, use the longest that a broker accepts by default.
    lasting = {
        _TIMEOUT_NAME: _TRANSACTION_TIMEOUT_MS,
        **properties.producer,
        **staging.CREATES_NOTHING,
    }
    async with (
        Admin(servers, **properties.common) as admin,
        Producer(servers, transactional_id=transactional_id, **lasting) as producer,
        Consumer(
            servers, **{**_READ_AT_ONCE, **staging.CREATES_NOTHING, **properties.common}
        ) as consumer,
    ):
        try:
            # Do this before reading the token, because a running attempt is then fenced and cannot
            # commit between the read and this transaction.
            await producer.init_transactions()
        except InvalidTransactionTimeout:
            raise ConfigError(
                f"option kafka.{_TIMEOUT_NAME}={lasting[_TIMEOUT_NAME]}: more than the brokers "
                "allow (their transaction.max.timeout.ms)"
            ) from None
        yield _Clients(admin, producer, consumer)
