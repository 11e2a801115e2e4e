"""Rows per second of `format("barnabas")`, batch and stream, against an embedded broker.

    python benchmarks/spark_source.py [RECORDS] [--rounds N] [--cores N]

Records are 8 bytes of key and 100 of value in two partitions. A query aggregates over every
column, so that Spark has to look at all of them; a stream does so in micro-batches of half a
million rows. The first round, cold, is shown apart: it starts Python workers and compiles
queries. Broker, driver and workers share the machine, as they do in a notebook; their CPU time
together gives the rows per CPU-second, which a busy machine spoils less than rows per second.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import NamedTuple

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

import psutil
from pyspark.sql import DataFrame, SparkSession

import barnabas
from barnabas.client.admin.admin import NewTopic
from barnabas.client.producer.batch import ProducerRecord
from barnabas.client.sync.producer import SyncAdmin, SyncProducer
from barnabas.testing.embedded.broker import Broker

TOPIC = "measured"
PARTITIONS = 2
BATCH_ROWS = 500_000
EVERY_COLUMN = (
    "count(1)",
    "sum(length(key))",
    "sum(length(value))",
    "sum(length(topic))",
    "sum(partition)",
    "sum(offset)",
    "max(timestamp)",
    "sum(timestampType)",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("records", nargs="?", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=2, help="warm rounds (median; default 2)")
    parser.add_argument("--cores", type=int, default=2, help="Spark's local[N] (default 2)")
    arguments = parser.parse_args()
    with barnabas.Broker() as broker:
        filled = measured(lambda: fill(broker, arguments.records))
        report("produce (our client)", [filled], arguments.records)
        spark = session(arguments.cores)
        for name, run in (("batch", read_batch), ("stream", read_stream), ("sink", write_batch)):
            rounds = 1 + arguments.rounds
            costs = [measured(lambda run=run: run(spark, broker)) for _ in range(rounds)]
            report(name, costs, arguments.records)
        spark.stop()


def fill(broker: Broker, count: int, topic: str = TOPIC) -> None:
    with SyncAdmin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(topic, PARTITIONS)])
    value = bytes(range(100))
    with SyncProducer(broker.bootstrap_servers, linger_ms=5, batch_size=262_144) as producer:
        for start in range(0, count, 10_000):
            numbers = range(start, min(start + 10_000, count))
            producer.send_many(
                ProducerRecord(topic, value, b"%08d" % number, number % PARTITIONS)
                for number in numbers
            )
        producer.flush()


def session(cores: int) -> SparkSession:
    builder = SparkSession.builder.master(f"local[{cores}]").appName("spark_source")
    builder = builder.config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.sql.shuffle.partitions", str(cores))
    spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def options(broker: Broker, topic: str = TOPIC) -> dict[str, str]:
    servers = {"kafka.bootstrap.servers": broker.bootstrap_servers}
    return {**servers, "subscribe": topic, "startingOffsets": "earliest"}


def read_batch(spark: SparkSession, broker: Broker) -> None:
    frame = spark.read.format("barnabas").options(**options(broker)).load()
    frame.selectExpr(*EVERY_COLUMN).collect()


def read_stream(spark: SparkSession, broker: Broker) -> None:
    def aggregate(frame: DataFrame, _: int) -> None:
        frame.selectExpr(*EVERY_COLUMN).collect()

    frame = spark.readStream.format("barnabas").options(**options(broker))
    frame = frame.option("maxOffsetsPerTrigger", BATCH_ROWS).load()
    with tempfile.TemporaryDirectory() as checkpoint:
        sink = frame.writeStream.foreachBatch(aggregate).option("checkpointLocation", checkpoint)
        sink.trigger(availableNow=True).start().awaitTermination()


def write_batch(spark: SparkSession, broker: Broker) -> None:
    frame = spark.read.format("barnabas").options(**options(broker)).load()
    sink = frame.select("key", "value").write.format("barnabas").mode("append")
    sink = sink.option("kafka.bootstrap.servers", broker.bootstrap_servers)
    sink.option("topic", "written").save()


class Cost(NamedTuple):
    wall_s: float
    cpu_s: float


def measured(run: Callable[[], None]) -> Cost:
    cpu_before_s, start_s = cpu_s(), time.perf_counter()
    run()
    return Cost(time.perf_counter() - start_s, cpu_s() - cpu_before_s)


def cpu_s() -> float:
    """Of this process (driver and broker), the JVM and the Python workers that live."""
    own = psutil.Process()
    total_s = 0.0
    for process in (own, *own.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):  # it ended a moment ago
            times = process.cpu_times()
            total_s += times.user + times.system
    return total_s


def report(name: str, costs: list[Cost], count: int) -> None:
    cold, *warm = costs
    text = f"{name:21}{count:>11,} records   first {rates([cold], count)}"
    if warm:
        text += f"   then {rates(warm, count)} (median of {len(warm)})"
    print(text, flush=True)


def rates(costs: list[Cost], count: int) -> str:
    wall = count / statistics.median(cost.wall_s for cost in costs) / 1e6
    cpu = count / statistics.median(cost.cpu_s for cost in costs) / 1e6
    return f"{wall:5.2f} M/s, {cpu:5.2f} M per CPU-second"


if __name__ == "__main__":
    main()
