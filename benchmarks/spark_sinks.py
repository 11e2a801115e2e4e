"""The exactly-once topic sink beside the one that is at least once, on one broker, turn by turn.

    python -m benchmarks.spark_sinks [--records N] [--rounds N] [--cores N] [--batch-rows N]

A topic of two partitions (8 bytes of key, 100 of value) is copied into another, by a batch job and
by a stream, and by a stream in micro-batches so small that only what each of them costs is left.
After a round that warms up the two sinks alternate; a ratio is the median of the rounds' own.
CPU seconds are of the broker, the driver, the JVM and the Python workers together.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable
from functools import partial

from pyspark.sql import SparkSession

import barnabas
from barnabas.broker.embedded import Broker
from barnabas.client.admin import NewTopic
from barnabas.client.sync import SyncAdmin
from benchmarks.spark_source import TOPIC, Cost, fill, measured, options, session

SINKS = ("at least once", "exactly once")
TARGET_PARTITIONS = 4
SMALL_TOPIC = "small"
SMALL_ROWS = 1_000
SMALL_BATCHES = 20


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
            admin.create_topics([NewTopic(name(sink), TARGET_PARTITIONS) for sink in SINKS])
        spark = session(arguments.cores)
        stream = partial(write_stream, spark, broker)
        report(
            f"batch job of {arguments.records:,} rows",
            partial(write_batch, spark, broker),
            arguments.records,
            arguments.rounds,
        )
        report(
            f"stream in micro-batches of {arguments.batch_rows:,} rows",
            partial(stream, TOPIC, arguments.batch_rows),
            arguments.records,
            arguments.rounds,
        )
        report(
            f"stream in micro-batches of {SMALL_ROWS:,} rows",
            partial(stream, SMALL_TOPIC, SMALL_ROWS),
            SMALL_ROWS * SMALL_BATCHES,
            arguments.rounds,
        )
        spark.stop()


def name(sink: str) -> str:
    return sink.replace(" ", "-")


def sink_options(broker: Broker, sink: str) -> dict[str, str]:
    servers = {"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": name(sink)}
    return {**servers, "exactlyOnce": str(sink == SINKS[1])}


def write_batch(spark: SparkSession, broker: Broker, sink: str) -> None:
    frame = spark.read.format("barnabas").options(**options(broker)).load().select("key", "value")
    frame.write.format("barnabas").mode("append").options(**sink_options(broker, sink)).save()


def write_stream(
    spark: SparkSession, broker: Broker, topic: str, batch_rows: int, sink: str
) -> None:
    frame = spark.readStream.format("barnabas").options(**options(broker, topic))
    frame = frame.option("maxOffsetsPerTrigger", batch_rows)
    with tempfile.TemporaryDirectory() as checkpoint:
        query = (
            frame.load()
            .select("key", "value")
            .writeStream.format("barnabas")
            .options(**sink_options(broker, sink), checkpointLocation=checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()


def report(title: str, run: Callable[[str], None], records: int, rounds: int) -> None:
    first, *rest = ([measured(partial(run, sink)) for sink in SINKS] for _ in range(1 + rounds))
    print(title)
    for at, sink in enumerate(SINKS):
        costs = [costs[at] for costs in rest]
        print(f"  {sink:14} first {rate(records, [first[at]])}   then {rate(records, costs)}")
    wall = statistics.median(least.wall_s / once.wall_s for least, once in rest)
    cpu = statistics.median(least.cpu_s / once.cpu_s for least, once in rest)
    print(f"  exactly once at {wall:.2f} of the rate, {cpu:.2f} by CPU time", flush=True)


def rate(records: int, costs: list[Cost]) -> str:
    wall_s = statistics.median(cost.wall_s for cost in costs)
    cpu_s = statistics.median(cost.cpu_s for cost in costs)
    return f"{wall_s:6.2f} s, {records / wall_s:9,.0f} rows/s, {cpu_s:6.2f} CPU seconds"


if __name__ == "__main__":
    main()
