"""Reads a range of offsets as Arrow: the batch reader, and the tasks of a stream.

Rows are decoded per fetch, some 17,000 small ones at a time, since numpy's calls cost the same for
few; Spark gets them in record batches of at most 16,384, so that it can process one while the next
is written. The consumer has sent the next fetch by the time this one is decoded. Spark's own share
of the cost per row (the JVM's reading of Arrow and its projection) is by far the largest: ours is
about a quarter of it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa  # type: ignore[import-untyped]  # ships neither stubs nor py.typed
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from barnabas.client.errors import LogTruncated, NoOffsetForPartition
from barnabas.client.sync.producer import SyncConsumer
from barnabas.errors import BarnabasError, UnknownTopicOrPartition
from barnabas.records.columns import Columns, iterate_columns, microseconds
from barnabas.types import TopicPartition
from pyspark_barnabas.connections import connect, consumers_of_process
from pyspark_barnabas.loss import report_loss
from pyspark_barnabas.offsets import OffsetRange, StreamOffset, ranges_between, split
from pyspark_barnabas.options import SourceOptions
from pyspark_barnabas.schema import RECORD_BATCHES, arrow_schema, check_read_schema
from pyspark_barnabas.survey import ids_of, require_all, resolve, survey

_ROWS = 16_384


class ReadTimedOut(BarnabasError):
    """No record arrived within `kafkaConsumer.pollTimeoutMs`."""


class TopicReader(DataSourceReader):
    """`spark.read`: everything between two bounds, resolved once when the query is planned."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        check_read_schema(schema, options.include_headers, options.record_batches)
        self._options = options

    def partitions(self) -> list[InputPartition]:
        options = self._options
        with connect(options.client) as consumer:
            found = survey(consumer, options)
            require_all(found, options.subscription)
            lenient = {"fail_on_data_loss": options.fail_on_data_loss}
            starts = resolve(consumer, options.starting, found, **lenient)
            ends = resolve(consumer, options.ending, found, **lenient)
        return tasks(options, StreamOffset({}, {}), StreamOffset(ends, starts, found.topic_ids))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_task(self._options, partition)


def tasks(options: SourceOptions, start: StreamOffset, end: StreamOffset) -> list[InputPartition]:
    """The tasks between two offsets, one range each; sends no request."""
    ranges = ranges_between(start, end)
    pieces = split(ranges, options.min_partitions, options.max_records_per_partition)
    return [InputPartition(piece) for piece in pieces]


def read_task(options: SourceOptions, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """The rows of one of `tasks`."""
    wanted = partition.value
    if wanted is None:  # Spark's placeholder when there is nothing to read
        return
    for columns in read_range(consumers_of_process().get(options.client), options, wanted):
        batches = _record_batches(columns, wanted.topic_partition)
        yield from map(_packed, batches) if options.record_batches else batches


def read_range(
    consumer: SyncConsumer, options: SourceOptions, wanted: OffsetRange
) -> Iterator[Columns]:
    """All records of a range, in order. Offsets without a record inside the log are no loss.

    Raises `DataLoss` for records that no longer exist, with or without their topic, `ReadTimedOut`,
    `CorruptData`.
    """
    partition, position, end, _ = wanted
    # Looked up first: a fetch without a known leader waits for a backoff, which a task of one
    # small topic among many would do each time.
    if _is_deleted(consumer, options, wanted):
        return
    consumer.assign([partition])
    consumer.seek(partition, position)
    try:
        while position < end:
            try:
                answer = consumer.fetch_batches(options.poll_timeout_ms).get(partition)
            except NoOffsetForPartition as lost:
                position = _after_loss(consumer, options, wanted._replace(start=position), lost)
                consumer.seek(partition, position)
                continue
            if answer is None:
                if _is_deleted(consumer, options, wanted._replace(start=position)):
                    return
                raise ReadTimedOut(
                    f"no records of {partition} from offset {position} to {end} within"
                    f" {options.poll_timeout_ms} ms (kafkaConsumer.pollTimeoutMs)"
                )
            yield from iterate_columns(
                answer.records,
                range(position, end),
                aborted=answer.aborted,
                with_headers=options.include_headers,
            )
            position = answer.next_offset
    finally:
        consumer.assign([])


def _is_deleted(consumer: SyncConsumer, options: SourceOptions, wanted: OffsetRange) -> bool:
    """Whether the partition was deleted since the range was planned, even if another topic has its
    name now; if so, raises `DataLoss` unless the user chose to go on."""
    partition, position, end, topic_id = wanted
    try:
        if partition.partition in consumer.partitions_for(partition.topic):
            found = None if topic_id is None else ids_of(consumer, [partition.topic])
            if found is None or found.get(partition.topic) == topic_id:
                return False
    except UnknownTopicOrPartition:
        pass
    report_loss(
        f"offsets {position} to {end} of {partition} were to be read, but it was deleted",
        fail_on_data_loss=options.fail_on_data_loss,
    )
    return True


def _after_loss(
    consumer: SyncConsumer,
    options: SourceOptions,
    wanted: OffsetRange,
    lost: NoOffsetForPartition,
) -> int:
    """The offset to continue from if the range's start is outside of the log."""
    partition, position, end, _ = wanted
    if isinstance(lost, LogTruncated):
        # Rows before the loss were returned already; the present ones follow.
        report_loss(str(lost), fail_on_data_loss=options.fail_on_data_loss)
    log_start = consumer.beginning_offsets([partition])[partition]
    log_end = consumer.end_offsets([partition])[partition]
    if log_start <= position <= log_end:
        return position  # it is back, for instance after a change of leader
    report_loss(
        f"offsets {position} to {end} of {partition} were to be read, but its log now holds those"
        f" from {log_start} to {log_end}",
        fail_on_data_loss=options.fail_on_data_loss,
    )
    return min(log_start, end) if position < log_start else end


def _record_batches(columns: Columns, partition: TopicPartition) -> Iterator[pa.RecordBatch]:
    count = len(columns.offsets)
    schema = arrow_schema(columns.headers is not None)
    arrays = [
        columns.keys,
        columns.values,
        pa.repeat(partition.topic, count),
        pa.repeat(pa.scalar(partition.partition, pa.int32()), count),
        columns.offsets,
        microseconds(columns.timestamps),
        columns.timestamp_types,
    ]
    if columns.headers is not None:
        arrays.append(columns.headers.cast(schema.field("headers").type))
    rows = pa.RecordBatch.from_arrays(arrays, schema=schema)
    pieces = -(-count // _ROWS)
    for piece in range(pieces):
        start, end = count * piece // pieces, count * (piece + 1) // pieces
        yield rows.slice(start, end - start)


def _packed(rows: pa.RecordBatch) -> pa.RecordBatch:
    """One row that Spark carries as bytes: its JVM converts none of the cells in it, which is most
    of the cost of a row."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    return pa.RecordBatch.from_arrays(
        [pa.array([sink.getvalue().to_pybytes()], pa.binary())], schema=RECORD_BATCHES
    )
