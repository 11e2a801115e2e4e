"""Reads ranges of offsets as Arrow, for the batch reader and for the tasks of a stream.

The rows of a fetch are decoded together (about 17,000 if they are small), because a call to NumPy
takes almost as long for a few rows as for many. Spark receives record batches of at most 16,384
rows, and can process a batch while the next one is being written. By the time a fetch has been
decoded, the consumer has sent the next fetch request. Most of the cost per row is incurred in
Spark, whose JVM reads the Arrow data and projects the columns; our own cost is about a quarter of
this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

import pyarrow as pa  # type: ignore[import-untyped]  # ships neither stubs nor py.typed
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from barnabas.client.consumer.fetched import FetchedBytes
from barnabas.client.errors import LogTruncated, NoOffsetForPartition, Unreachable
from barnabas.client.sync.producer import SyncConsumer
from barnabas.errors import BarnabasError, KafkaError, UnknownTopicOrPartition
from barnabas.records.columns import Columns, iterate_columns, microseconds
from barnabas.types import TopicPartition
from pyspark_barnabas.connections import connect, consumers_of_process
from pyspark_barnabas.loss import Log, remainder, report_loss
from pyspark_barnabas.memory import settle_objects
from pyspark_barnabas.offsets import OffsetRange, StreamOffset, pack, ranges_between, split
from pyspark_barnabas.options import SourceOptions
from pyspark_barnabas.schema import RECORD_BATCHES, arrow_schema, check_read_schema
from pyspark_barnabas.survey import ids_of, require_all, resolve, survey

RECORDS_OF_ONE_TASK = 5_000
"""With packed rows, small ranges are combined into one task of up to this number of offsets,
because a task with few records costs almost as much as a task with many."""
_ROWS = 16_384
_LOOK_MS = 1_000  # how long to wait for a record before checking the log's end


class ReadTimedOut(BarnabasError):
    """No record arrived within `kafkaConsumer.pollTimeoutMs`."""


class TopicReader(DataSourceReader):
    """Implements `spark.read`, which reads the records between two bounds. The bounds are resolved
    only once, when the query is planned."""

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
    """Return the tasks that read the records between two offsets, without sending a request. The
    value of a task is a list of ranges in different partitions."""
    ranges = ranges_between(start, end)
    limits = options.min_partitions, options.max_records_per_partition
    # A user who sets the size or number of tasks gets exactly the connector's tasks.
    if options.record_batches and limits == (None, None):
        return [InputPartition(some) for some in pack(ranges, RECORDS_OF_ONE_TASK)]
    return [InputPartition([piece]) for piece in split(ranges, *limits)]


def read_task(options: SourceOptions, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """Yield the rows that a task returned by `tasks` must read."""
    wanted = partition.value
    if wanted is None:  # Spark's placeholder when there is nothing to read
        return
    for read, columns in read_ranges(consumers_of_process().get(options.client), options, wanted):
        batches = _record_batches(columns, read)
        yield from map(_in_one_row, batches) if options.record_batches else batches
    settle_objects("read")


def read_ranges(
    consumer: SyncConsumer, options: SourceOptions, ranges: Iterable[OffsetRange]
) -> Iterator[tuple[TopicPartition, Columns]]:
    """Yield all records in ranges of different partitions; the records of each range are in order.
    Offsets inside the log for which there is no record do not count as a loss.

    Raises `DataLoss` if records no longer exist, whether or not their topic exists. Also raises
    `ReadTimedOut` and `CorruptData`.
    """
    # Look up the leaders first, because a fetch without a known leader waits for a backoff. With
    # many small topics, this would happen in every task.
    left = _existing(consumer, options, {each.topic_partition: each for each in ranges})
    consumer.assign([*left])
    try:
        for partition, wanted in left.items():
            consumer.seek(partition, wanted.start)
        while left:
            for partition, answer in _fetched(consumer, options, left).items():
                wanted = left[partition]
                columns = iterate_columns(
                    answer.records,
                    range(wanted.start, wanted.end),
                    aborted=answer.aborted,
                    with_headers=options.include_headers,
                )
                yield from ((partition, each) for each in columns)
                left[partition] = wanted._replace(start=answer.next_offset)
            for partition in [each for each, wanted in left.items() if wanted.start >= wanted.end]:
                del left[partition]
                consumer.pause(partition)
    finally:
        # The next task in this process reuses the consumer, which must therefore stop fetching for
        # this task.
        consumer.assign([])


def _fetched(
    consumer: SyncConsumer, options: SourceOptions, left: dict[TopicPartition, OffsetRange]
) -> dict[TopicPartition, FetchedBytes]:
    """Return the next records of some of the ranges. If parts of the ranges no longer exist,
    shorten these ranges in `left` and return nothing.

    Raises `ReadTimedOut` or `DataLoss`.
    """
    # After a short wait, check that the records exist before waiting for the rest of the timeout.
    look_ms = min(_LOOK_MS, options.poll_timeout_ms)
    for timeout_ms in (look_ms, options.poll_timeout_ms - look_ms):
        try:
            if answers := consumer.fetch_batches(timeout_ms):
                return answers
            if all(_is_there(consumer, wanted) for wanted in left.values()):
                continue
        except NoOffsetForPartition as lost:
            if isinstance(lost, LogTruncated):
                # Rows before the loss have been returned; the existing rows follow.
                report_loss(str(lost), fail_on_data_loss=options.fail_on_data_loss)
        # Continue with the parts that still exist.
        for partition, wanted in left.items():
            left[partition] = _remainder(consumer, options, wanted)
            consumer.seek(partition, left[partition].start)
        return {}
    listed = ", ".join(
        f"{each} from offset {left[each].start} to {left[each].end}" for each in left
    )
    raise ReadTimedOut(
        f"no records of {listed} within {options.poll_timeout_ms} ms (kafkaConsumer.pollTimeoutMs)"
    )


def _is_there(consumer: SyncConsumer, wanted: OffsetRange) -> bool:
    """Return whether the whole range exists, or the leader of its partition is temporarily
    unavailable.
    """
    try:
        return (
            bool(_present(consumer, [wanted]))
            and not remainder(wanted, _log_of(consumer, wanted))[1]
        )
    except (Unreachable, KafkaError) as error:
        if isinstance(error, KafkaError) and not error.retriable:
            raise
        # If the leader is temporarily unavailable, the records are not lost.
        return True


def _existing(
    consumer: SyncConsumer, options: SourceOptions, ranges: dict[TopicPartition, OffsetRange]
) -> dict[TopicPartition, OffsetRange]:
    """Return the ranges whose partitions still exist. A partition that was deleted after its range
    was planned does not exist, even if another topic now has the same name. Raises `DataLoss` for a
    missing partition unless the user chose to continue."""
    present = _present(consumer, ranges.values())
    for partition, (_, position, end, _) in ranges.items():
        if partition not in present:
            report_loss(
                f"offsets {position} to {end} of {partition} cannot be read: the partition was "
                "deleted",
                fail_on_data_loss=options.fail_on_data_loss,
            )
    return {partition: ranges[partition] for partition in ranges if partition in present}


def _present(consumer: SyncConsumer, ranges: Iterable[OffsetRange]) -> set[TopicPartition]:
    """Return the partitions of the ranges that still exist."""
    found = []
    for wanted in ranges:
        with suppress(UnknownTopicOrPartition):
            partition = wanted.topic_partition
            if partition.partition in consumer.partitions_for(partition.topic):
                found.append(wanted)
    # Request all ids at once, and do so last, because a topic that was recreated in the meantime
    # has a different id.
    ids = ids_of(consumer, {each.topic_partition.topic for each in found if each.topic_id})
    return {
        each.topic_partition
        for each in found
        if each.topic_id is None or ids.get(each.topic_partition.topic) == each.topic_id
    }


def _remainder(consumer: SyncConsumer, options: SourceOptions, wanted: OffsetRange) -> OffsetRange:
    """Return the part of the range that exists. If part of the range is missing, raises `DataLoss`
    unless the user chose to continue. The whole range may exist again, for example after a leader
    change."""
    if not _existing(consumer, options, {wanted.topic_partition: wanted}):
        return wanted._replace(start=wanted.end)
    log = _log_of(consumer, wanted)
    left, loss = remainder(wanted, log)
    if loss:
        partition, position, end, _ = wanted
        report_loss(
            f"offsets {position} to {end} of {partition} cannot be read: its log has offsets from "
            f"{log.start} to {log.end}: {loss}",
            fail_on_data_loss=options.fail_on_data_loss,
        )
    return left


def _log_of(consumer: SyncConsumer, wanted: OffsetRange) -> Log:
    """Return the current log of a partition that was found by `_present`."""
    partition = wanted.topic_partition
    start = consumer.beginning_offsets([partition])[partition]
    end = consumer.end_offsets([partition])[partition]
    return Log(start, end, None if wanted.topic_id is None else True)


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
    # Make the pieces equal, because a short last piece would cost as much as a full one.
    pieces = -(-count // _ROWS)
    for piece in range(pieces):
        start, end = count * piece // pieces, count * (piece + 1) // pieces
        yield rows.slice(start, end - start)


def _in_one_row(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Pack rows into a single row, which Spark passes on as bytes. The JVM then need not convert
    individual cells, which accounts for most of the cost of a row."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    return pa.RecordBatch.from_arrays(
        [pa.array([sink.getvalue().to_pybytes()], pa.binary())], schema=RECORD_BATCHES
    )
