"""Implements the stream reader, which decides the offsets of a micro-batch.

One instance serves a whole query. Spark calls it on the driver side, from a single process.
`latestOffset` asks the brokers and decides where the batch ends, and Spark writes the result to its
offset log before anything is read. This decision is final: `partitions` is a pure function of two
offsets, so a batch that is replayed after a crash reads the same rows. `offsets.py` describes how
the first offset is fixed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # ships neither stubs nor py.typed
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from barnabas.client.sync.producer import SyncConsumer
from barnabas.clock import Clock, SystemClock
from barnabas.types import TopicPartition
from pyspark_barnabas.connections import connect
from pyspark_barnabas.loss import Log, report_loss, resume
from pyspark_barnabas.offsets import Offsets, StreamOffset, shares
from pyspark_barnabas.options import SourceOptions
from pyspark_barnabas.reader import read_task, tasks
from pyspark_barnabas.schema import check_read_schema
from pyspark_barnabas.survey import Survey, require_all, resolve, survey


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Implements `spark.readStream`."""

    def __init__(
        self, options: SourceOptions, schema: StructType, clock: Clock | None = None
    ) -> None:
        check_read_schema(schema, options.include_headers, options.record_batches)
        self._options = options
        self._clock = clock or SystemClock()
        self._consumer: SyncConsumer | None = None
        self._target: Survey | None = None
        self._latest: Offsets | None = None
        self._last_batch_at_ms: int | None = None

    # ---- offsets ----

    def initialOffset(self) -> dict[str, Any]:
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:
        if self._options.min_offsets_per_trigger is not None:
            return ReadMinRows(self._options.min_offsets_per_trigger)
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._survey()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the end of the next batch, or `start` itself if no batch is needed."""
        # A run that ends by itself reads only the records that existed at its start.
        found = self._survey() if self._target is None else self._target
        self._latest = found.ends
        before = StreamOffset.from_json(start)
        begins = self._begins(before, found) if start else self._first(found)
        starts = {each: at for each, at in begins.items() if before.positions.get(each) != at}
        backlog = {each: found.ends[each] - at for each, at in begins.items()}
        # Do not delay new starts, because the checkpoint must contain them.
        if start and not starts and self._is_too_little(sum(backlog.values()), limit):
            backlog = {}
        granted = self._granted(backlog, limit)
        positions = {each: at + granted.get(each, 0) for each, at in begins.items()}
        # If the offset is unchanged, Spark plans no batch. If a topic was recreated, a batch is
        # needed even if there are no records, so that the topic's new id is stored in the
        # checkpoint.
        if start and not starts and positions == before.positions and not _recreated(before, found):
            return start
        self._last_batch_at_ms = self._clock.monotonic_ms()
        return StreamOffset(positions, starts, found.topic_ids).to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return None if self._latest is None else StreamOffset(self._latest, {}).to_json()

    # ---- reading ----

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        before, after = StreamOffset.from_json(start), StreamOffset.from_json(end)
        return tasks(self._options, before, after)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_task(self._options, partition)

    def stop(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    # ---- decisions ----

    def _survey(self) -> Survey:
        return survey(self._connected(), self._options)

    def _connected(self) -> SyncConsumer:
        if self._consumer is None:
            self._consumer = connect(self._options.client)
        return self._consumer

    def _first(self, found: Survey) -> Offsets:
        """Return the offsets at which the query starts.

        This runs only once, because Spark stores the result before anything is read.
        """
        require_all(found, self._options.subscription)
        begins = resolve(
            self._connected(),
            self._options.starting,
            found,
            fail_on_data_loss=self._options.fail_on_data_loss,
        )
        # Timestamps are resolved shortly after an AvailableNow run has pinned its end, so an offset
        # may be past it.
        return {each: min(at, found.ends[each]) for each, at in begins.items()}

    def _begins(self, before: StreamOffset, found: Survey) -> Offsets:
        """Return the start of the next batch in each existing partition.

        A partition that is missing from `before` was added later, so all its records are new.
        """
        gone = before.positions.keys() - found.ends.keys()
        if gone:
            listed = ", ".join(map(str, sorted(gone)))
            self._report(f"{listed}: deleted, or no longer subscribed, with records still to read")
        begins: dict[TopicPartition, int] = {}
        losses: dict[str, None] = {}  # each once; a topic's loss affects all its partitions
        for each in sorted(found.ends):
            log = _log_of(each, before, found)
            resumed = resume(each, before.positions.get(each, log.start), log)
            begins[each] = resumed.position
            if resumed.loss and each in before.positions:
                losses[resumed.loss] = None
        if losses:
            self._report("; ".join(losses))
        return begins

    def _report(self, text: str) -> None:
        report_loss(text, fail_on_data_loss=self._options.fail_on_data_loss)

    def _is_too_little(self, backlog: int, limit: ReadLimit) -> bool:
        """Return whether to wait for more records (`minOffsetsPerTrigger`), for at most
        `maxTriggerDelay`.

        A run that ends by itself does not wait, because the remaining records would then never be
        read.
        """
        if not isinstance(limit, ReadMinRows) or self._target is not None:
            return False
        if self._last_batch_at_ms is None:
            # A restarted query's timer starts when the query first looks for records.
            self._last_batch_at_ms = self._clock.monotonic_ms()
        waited_ms = self._clock.monotonic_ms() - self._last_batch_at_ms
        return backlog < limit.min_rows and waited_ms < self._options.max_trigger_delay_ms

    def _granted(self, backlog: Mapping[TopicPartition, int], limit: ReadLimit) -> Offsets:
        most = self._options.max_offsets_per_trigger
        if isinstance(limit, ReadMaxRows):
            most = limit.max_rows
        if isinstance(limit, ReadAllAvailable) or most is None:
            return backlog
        return shares(backlog, most)


def _recreated(before: StreamOffset, found: Survey) -> bool:
    return any(_is_same(topic, before, found) is False for topic in before.ids)


def _log_of(partition: TopicPartition, before: StreamOffset, found: Survey) -> Log:
    is_same = _is_same(partition.topic, before, found)
    return Log(found.beginnings[partition], found.ends[partition], is_same)


def _is_same(topic: str, before: StreamOffset, found: Survey) -> bool | None:
    """Return whether a topic has the same id as before, or None if it has no id now or had none
    before."""
    if topic not in before.ids or topic not in found.topic_ids:
        return None
    return before.ids[topic] == found.topic_ids[topic]
