"""`format("barnabas")` beside Spark's own `format("kafka")`, on one broker, turn by turn.

    python -m benchmarks.spark_beside_connector [--records N] [--rounds N] [--cores N]
        [--batch-rows N] [--size BYTES] [--plain-workers]

Records have 8 bytes of key and 100 of value and lie in two partitions. Each source has a Spark
session of its own, with the PySpark that it fits: the connector in an environment that is made for
it (once; `tests/kit/foreign.py`). Ours starts its workers as the README says (`--plain-workers`: as
Spark does). The connector reads as it comes ("plain") and with larger polls and
fetches ("tuned"). Batch readings aggregate over every column, streams go to the sink that drops
all rows. After a round that warms up, which is shown apart, the readings alternate within each
round, so that what else the machine does falls on all of them; a ratio is the median of the
rounds' own ratios. CPU seconds are of the whole session (driver, JVM, Python workers) and of the
broker, and say more than the clock does on a machine that is shared.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from barnabas.client.admin.admin import NewTopic
from barnabas.client.producer.batch import ProducerRecord
from barnabas.client.sync.producer import SyncAdmin, SyncProducer
from pyspark_barnabas.workers import python_for_workers
from tests.kit import foreign
from tests.kit.processes.broker_process import BrokerProcess, broker_process

TOPIC = "measured"
PARTITIONS = 2
KEY_BYTES = 8
JOB = Path(__file__).with_name("spark_reading_job.py")
KINDS = ("batch", "stream")
TUNED = {
    "kafka.max.poll.records": "50000",
    "kafka.max.partition.fetch.bytes": "8388608",
    "kafka.fetch.max.bytes": "67108864",
}


class Reading(NamedTuple):
    """One topic read once."""

    seconds: float
    spark_cpu_seconds: float
    broker_cpu_seconds: float

    def clock(self) -> float:
        return self.seconds

    def cpu(self) -> float:
        """Of everything that took part."""
        return self.spark_cpu_seconds + self.broker_cpu_seconds


class Session:
    """A Spark session in a process of its own, in whatever environment `python` is of."""

    def __init__(
        self, python: Path | str, *arguments: str, workers: Path | str | None = None
    ) -> None:
        environment = {**os.environ, "PYSPARK_PYTHON": str(workers or python)}
        # Else every Python worker would compile again whatever has changed since it was installed.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        self._process = subprocess.Popen(
            [python, JOB, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.versions = self._answer()

    def read(self, kind: str, options: dict[str, str]) -> tuple[float, float, list[Any]]:
        """Wall-clock seconds, CPU seconds, and what the reading saw."""
        before = cpu_seconds(self._process.pid)
        assert self._process.stdin is not None
        print(json.dumps({"kind": kind, "options": options}), file=self._process.stdin, flush=True)
        answer = self._answer()
        return answer["seconds"], cpu_seconds(self._process.pid) - before, answer["seen"]

    def close(self) -> None:
        self._process.communicate(timeout=60)

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("a Spark session ended; see what it said above")
        answer: dict[str, Any] = json.loads(line)
        return answer


class Contestant(NamedTuple):
    name: str
    session: Session
    options: dict[str, str]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=3, help="warm rounds (default 3)")
    parser.add_argument("--cores", type=int, default=2, help="Spark's local[N] (default 2)")
    parser.add_argument("--size", type=int, default=100, help="bytes of each record's value")
    parser.add_argument("--batch-rows", type=int, help="maxOffsetsPerTrigger of the streams")
    parser.add_argument("--plain-workers", action="store_true", help="as Spark starts them")
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="barnabas-benchmark-") as directory,
        broker_process(Path(directory)) as broker,
    ):
        fill(broker.bootstrap_servers, given.records, given.size)
        with contestants(broker, given) as rivals:
            table(compare(broker, rivals, given), given.records)


def fill(servers: str, records: int, size: int) -> None:
    with SyncAdmin(servers) as admin:
        admin.create_topics([NewTopic(TOPIC, PARTITIONS)])
    value = (bytes(range(256)) * (size // 256 + 1))[:size]
    with SyncProducer(servers, linger_ms=5, batch_size=262_144) as producer:
        for start in range(0, records, 10_000):
            numbers = range(start, min(start + 10_000, records))
            producer.send_many(
                ProducerRecord(TOPIC, value, b"%0*d" % (KEY_BYTES, number), number % PARTITIONS)
                for number in numbers
            )
        producer.flush()


@contextmanager
def contestants(broker: BrokerProcess, given: argparse.Namespace) -> Iterator[list[Contestant]]:
    common = {
        "kafka.bootstrap.servers": broker.bootstrap_servers,
        "subscribe": TOPIC,
        "startingOffsets": "earliest",
    }
    if given.batch_rows:
        common["maxOffsetsPerTrigger"] = str(given.batch_rows)
    jars, python = foreign.require_spark_connector(), foreign.require_connector_python()
    workers = None if given.plain_workers else python_for_workers()
    ours = Session(sys.executable, "barnabas", str(given.cores), workers=workers)
    theirs = Session(python, "kafka", str(given.cores), str(jars))
    print(
        f"{given.records:,} records of {KEY_BYTES} + {given.size} bytes, {PARTITIONS} partitions,"
    )
    print(f"local[{given.cores}] on {os.cpu_count()} cores, median of {given.rounds} warm rounds")
    print(f"  barnabas: {described(ours)}\n  kafka:    {described(theirs)}\n", flush=True)
    yield [
        Contestant("barnabas", ours, common),
        Contestant("kafka, plain", theirs, common),
        Contestant("kafka, tuned", theirs, common | TUNED),
    ]
    ours.close()
    theirs.close()


def described(session: Session) -> str:
    return ", ".join(f"{name} {version}" for name, version in session.versions.items())


Readings = dict[tuple[str, str], list[Reading]]
"""By kind and contestant, one a round; the first is the one that warms up."""


def compare(broker: BrokerProcess, rivals: list[Contestant], given: argparse.Namespace) -> Readings:
    assert broker.process is not None
    readings: Readings = {(kind, each.name): [] for kind in KINDS for each in rivals}
    for round_number in range(1 + given.rounds):
        for kind in KINDS:
            seen = {}
            for name, session, options in rivals:
                broker_before = cpu_seconds(broker.process.pid)
                seconds, spark_cpu, seen[name] = session.read(kind, options)
                broker_cpu = cpu_seconds(broker.process.pid) - broker_before
                readings[kind, name].append(Reading(seconds, spark_cpu, broker_cpu))
            assert len(set(map(str, seen.values()))) == 1, f"they read different rows: {seen}"
            took = ", ".join(f"{name} {readings[kind, name][-1].seconds:.1f} s" for name in seen)
            load = f"{os.getloadavg()[0]:.1f}"
            print(f"round {round_number} {kind}: {took} (load {load})", flush=True)
    return readings


def table(readings: Readings, records: int) -> None:
    millions = records / 1e6
    print(f"\n{'':22} {'M records/s':>13} {'per CPU-s':>10} {'broker':>8}   barnabas is, by")
    print(
        f"{'':22} {'cold':>6} {'warm':>6} {'(session)':>10} {'CPU s':>8} {'clock':>10} {'CPU':>7}"
    )
    for (kind, name), (cold, *warm) in readings.items():
        line = f"{kind + ', ' + name:22} {millions / cold.seconds:6.2f}"
        if warm:
            seconds, spark, broker = (
                statistics.median(column) for column in zip(*warm, strict=True)
            )
            line += f" {millions / seconds:6.2f} {millions / spark:10.2f} {broker:8.1f}"
            if name != "barnabas":
                ours = readings[kind, "barnabas"][1:]
                for cost in (Reading.clock, Reading.cpu):
                    line += f" {ratio(ours, warm, cost):7.2f} x"
        print(line)


def ratio(ours: list[Reading], theirs: list[Reading], cost: Callable[[Reading], float]) -> float:
    """How often our cost goes into theirs, round by round."""
    return statistics.median(cost(b) / cost(a) for a, b in zip(ours, theirs, strict=True))


def cpu_seconds(pid: int) -> float:
    """Of a process and its descendants, those that ended and were waited for included."""
    first = psutil.Process(pid)
    total = 0.0
    for process in (first, *first.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):  # it ended a moment ago
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


if __name__ == "__main__":
    main()
