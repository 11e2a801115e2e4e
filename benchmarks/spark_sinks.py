"""What exactly once costs: our exactly-once sinks beside plain ones, on one broker, turn by turn.

    python -m benchmarks.spark_sinks [--records N] [--rounds N] [--cores N] [--batch-rows N]

A topic of two partitions (8 bytes of key, 100 of value) is copied into another topic, by the sink
that is at least once and by the one that is exactly once, and into a table, by Spark's own Parquet
sink and by the Delta sink: by a batch job, by a stream, and by a stream in micro-batches so small
that only what each of them costs is left. After a round that warms up the two sinks of a pair
alternate; a ratio is the median of the rounds' own. CPU seconds are of the broker, the driver, the
JVM and the Python workers together.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from pyspark.sql import SparkSession

import barnabas
from barnabas.client.admin.admin import NewTopic
from barnabas.client.sync.producer import SyncAdmin
from barnabas.testing.embedded.broker import Broker
from benchmarks.spark_source import TOPIC, Cost, fill, measured, options, session

TARGET_PARTITIONS = 4
SMALL_TOPIC = "small"
SMALL_ROWS = 1_000
SMALL_BATCHES = 20


class Sink(NamedTuple):
    """Where rows go; a table starts empty each time."""

    name: str
    format: str
    options: dict[str, str]
    is_table: bool


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=3, help="after the first (default 3)")
    parser.add_argument("--cores", type=int, default=2, help="Spark's local[N] (default 2)")
    parser.add_argument("--batch-rows", type=int, default=250_000, help="of a micro-batch")
    arguments = parser.parse_args()
    with barnabas.Broker() as broker:
        fill(broker, arguments.records)
        fill(broker, SMALL_ROWS * SMALL_BATCHES, SMALL_TOPIC)
        with SyncAdmin(broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(each, TARGET_PARTITIONS) for each in ("least", "once")])
        spark = session(arguments.cores)
        small = SMALL_ROWS * SMALL_BATCHES
        for pair in pairs(broker):
            report(
                f"batch job of {arguments.records:,} rows",
                pair,
                partial(write_batch, spark, broker),
                arguments.records,
                arguments.rounds,
            )
            for topic, records, rows in (
                (TOPIC, arguments.records, arguments.batch_rows),
                (SMALL_TOPIC, small, SMALL_ROWS),
            ):
                report(
                    f"stream in micro-batches of {rows:,} rows",
                    pair,
                    partial(write_stream, spark, broker, topic, rows),
                    records,
                    arguments.rounds,
                )
        spark.stop()


def pairs(broker: Broker) -> list[tuple[Sink, Sink]]:
    """The plain one first."""
    servers = {"kafka.bootstrap.servers": broker.bootstrap_servers}
    once = {**servers, "topic": "once", "exactlyOnce": "true"}
    return [
        (
            Sink("at least once", "barnabas", {**servers, "topic": "least"}, is_table=False),
            Sink("exactly once", "barnabas", once, is_table=False),
        ),
        (
            Sink("Parquet", "parquet", {}, is_table=True),
            Sink("Delta", "barnabas.delta", {}, is_table=True),
        ),
    ]


def write_batch(spark: SparkSession, broker: Broker, sink: Sink) -> None:
    frame = spark.read.format("barnabas").options(**options(broker)).load().select("key", "value")
    writer = frame.write.format(sink.format).mode("append").options(**sink.options)
    with tempfile.TemporaryDirectory() as directory:
        writer.save(*[directory] * sink.is_table)


def write_stream(
    spark: SparkSession, broker: Broker, topic: str, batch_rows: int, sink: Sink
) -> None:
    frame = spark.readStream.format("barnabas").options(**options(broker, topic))
    frame = frame.option("maxOffsetsPerTrigger", batch_rows)
    with tempfile.TemporaryDirectory() as checkpoint, tempfile.TemporaryDirectory() as directory:
        writer = frame.load().select("key", "value").writeStream.format(sink.format)
        writer = writer.options(**sink.options, checkpointLocation=checkpoint)
        writer.trigger(availableNow=True).start(*[directory] * sink.is_table).awaitTermination()


def report(
    title: str, pair: tuple[Sink, Sink], run: Callable[[Sink], None], records: int, rounds: int
) -> None:
    first, *rest = ([measured(partial(run, sink)) for sink in pair] for _ in range(1 + rounds))
    print(title)
    for at, sink in enumerate(pair):
        costs = [costs[at] for costs in rest]
        print(f"  {sink.name:14} first {rate(records, [first[at]])}   then {rate(records, costs)}")
    wall = statistics.median(plain.wall_s / once.wall_s for plain, once in rest)
    cpu = statistics.median(plain.cpu_s / once.cpu_s for plain, once in rest)
    print(f"  {pair[1].name} at {wall:.2f} of the rate, {cpu:.2f} by CPU time", flush=True)


def rate(records: int, costs: list[Cost]) -> str:
    wall_s = statistics.median(cost.wall_s for cost in costs)
    cpu_s = statistics.median(cost.cpu_s for cost in costs)
    return f"{wall_s:6.2f} s, {records / wall_s:9,.0f} rows/s, {cpu_s:6.2f} CPU seconds"


if __name__ == "__main__":
    main()
