"""What each level of delivery costs: acks, flushing, idempotence, transactions, isolation (DL-6).

    python -m benchmarks.levels [--alone] [--only WORD] [--scale S] [--json FILE]

On one broker (replication factor 1) and then on three processes with a ZooKeeper (replication
factor 3, min.insync.replicas 2). `p50` and `p99` are of one record at a time, from `produce` to
what the level calls done: sent (acks=0), its acknowledgement, or the return of the transaction's
commit. `records/s` is of as many in flight as librdkafka takes, or of one transaction after the
other, and with acks=0 counts what has arrived in the log. "to the reader" is from `produce` in
another process to `poll` in this one, by the same clock, at a steady rate.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import struct
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from rich.console import Console
from rich.table import Table

from benchmarks.brokers import Broker, barnabas, barnabas_cluster
from benchmarks.client_work import Latencies, delays_ms, end_offset, value_of
from benchmarks.figures import Figure, number, parser_of, write_json

COMMAND = "python -m benchmarks.levels"
RECORD_BYTES = 100
SINGLE_RECORDS = 2_000
RATE_SECONDS = 4.0
PER_SECOND = 200
_PATIENCE_SECONDS = 120.0
_LINGER_MS = 5  # where records are in flight together: batches, as users have them
_WARM_SHARE = 10  # the first tenth is not counted
_TIME = struct.Struct("<q")
_SPAWN = multiprocessing.get_context("spawn")


class Level(NamedTuple):
    """How a producer writes, and what its topic does with it."""

    name: str
    config: dict[str, Any]
    topic_config: dict[str, str] = {}
    per_transaction: int = 0
    """Records between begin and commit; 0: no transactions."""


class Reading(NamedTuple):
    """A level, and how much of what it writes a reader is shown."""

    level: Level
    isolation: str


class Row(NamedTuple):
    """What was measured of one level in one place."""

    place: str
    level: str
    latencies: Latencies
    per_second: float | None
    """None where the rate was given."""


ACKS_0 = Level("acks=0", {"acks": "0"})
ACKS_1 = Level("acks=1", {"acks": "1"})
ACKS_ALL = Level("acks=all", {"acks": "all"})
IDEMPOTENT = Level("acks=all, idempotent", {"enable.idempotence": True})
FLUSHED = Level("acks=all, flush.messages=1", {"acks": "all"}, {"flush.messages": "1"})
LEVELS = (
    ACKS_0,
    ACKS_1,
    ACKS_ALL,
    IDEMPOTENT,
    FLUSHED,
    Level("transaction, 1 record each", {}, per_transaction=1),
    Level("transaction, 100 records each", {}, per_transaction=100),
)
_TEN = Level("transaction, 10 records each", {}, per_transaction=10)
READINGS = (
    Reading(ACKS_1, "read_uncommitted"),
    Reading(ACKS_ALL, "read_uncommitted"),
    Reading(_TEN, "read_uncommitted"),
    Reading(_TEN, "read_committed"),
)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--alone", action="store_true", help="one broker only, no ZooKeeper")
    parser.add_argument("--only", action="append", help="levels that have this word (repeatable)")
    parser.add_argument("--scale", type=float, default=1.0, help="of the records and seconds")
    options = parser.parse_args()
    try:
        rows = alone(options.scale, options.only)
        if not options.alone:
            rows += together(options.scale, options.only)
    except pytest.skip.Exception as missing:
        sys.exit(f"this cannot be measured here: {missing}")
    show(rows)
    if options.json:
        write_json(options.json, figures(rows))


def measure_alone(share: float) -> list[Figure]:
    return figures(alone(share))


def alone(share: float, words: Sequence[str] | None = None) -> list[Row]:
    """Every level, on one broker."""
    with _directory() as directory, barnabas(directory) as broker:
        return _rows("one broker", broker, share, words)


def together(share: float, words: Sequence[str] | None = None) -> list[Row]:
    """Every level, on three brokers that replicate."""
    with _directory() as directory, barnabas_cluster(directory) as cluster:
        return _rows("three brokers", cluster, share, words)


@contextlib.contextmanager
def _directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="barnabas-benchmark-") as directory:
        yield Path(directory)


def _rows(place: str, broker: Broker, share: float, words: Sequence[str] | None) -> list[Row]:
    """The levels whose names have one of the words, or all."""
    rows = []
    say = Console(stderr=True).print
    for index, level in enumerate(LEVELS):
        if _is_wanted(level.name, words):
            say(f"{place}: {level.name} ...")
            latencies = _one_at_a_time(broker, f"single-{index}", level, share)
            rate = _rate(broker, f"many-{index}", level, share)
            rows.append(Row(place, level.name, latencies, rate))
    for index, reading in enumerate(READINGS):
        name = f"to the reader: {reading.level.name}, {reading.isolation}"
        if _is_wanted(name, words):
            say(f"{place}: {name} ...")
            latencies = _to_the_reader(broker, f"read-{index}", reading, share)
            rows.append(Row(place, name, latencies, None))
    return rows


def _is_wanted(name: str, words: Sequence[str] | None) -> bool:
    return not words or any(word in name for word in words)


# --- what is done to the brokers -----------------------------------------------------------------


def _one_at_a_time(broker: Broker, topic: str, level: Level, share: float) -> Latencies:
    """A record (or a transaction) is done, then the next begins."""
    _create(broker, topic, level)
    writer = _Writer(broker.servers, topic, level, _LINGER_MS if level.per_transaction > 1 else 0)
    count = int(SINGLE_RECORDS * share) // max(1, level.per_transaction // 10)
    taken = []
    for _ in range(max(10, count)):
        began = time.perf_counter()
        writer.write_one()
        taken.append((time.perf_counter() - began) * 1000)
    return _counted(taken)


def _rate(broker: Broker, topic: str, level: Level, share: float) -> float:
    """Records a second, all of them done; with acks=0: in the log."""
    _create(broker, topic, level)
    writer = _Writer(broker.servers, topic, level, _LINGER_MS)
    writer.write_one()
    began = time.perf_counter()
    written = writer.write_until(began + RATE_SECONDS * share)
    if level == ACKS_0:
        while end_offset(broker.servers, topic) <= written:
            _check_patience(began, "the end of the log")
            time.sleep(0.001)
    return written / (time.perf_counter() - began)


def _to_the_reader(broker: Broker, topic: str, reading: Reading, share: float) -> Latencies:
    """Of each record, at PER_SECOND; with a transaction that of its commit is in it."""
    _create(broker, topic, reading.level)
    consumer = Consumer(
        {
            "bootstrap.servers": broker.servers,
            "group.id": "unused",
            "enable.auto.commit": False,
            "isolation.level": reading.isolation,
            "fetch.queue.backoff.ms": 2,
            "log_level": 3,
        }
    )
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    consumer.poll(1.0)  # connected, and its first long poll is parked
    count = max(20, int(PER_SECOND * RATE_SECONDS * share))
    sender = _SPAWN.Process(
        target=_send_paced, args=(broker.servers, topic, reading.level, count), daemon=True
    )
    sender.start()
    taken = delays_ms(consumer, count)
    sender.join()
    consumer.close()
    return _counted(taken)


def _send_paced(servers: str, topic: str, level: Level, count: int) -> None:
    _Writer(servers, topic, level, 0).write_paced(count)


class _Writer:
    """A producer at one level."""

    def __init__(self, servers: str, topic: str, level: Level, linger_ms: int) -> None:
        self._topic = topic
        self._per_transaction = level.per_transaction
        self._value = value_of(RECORD_BYTES)
        self._is_done = False
        self._failure: Any = None
        config = {"bootstrap.servers": servers, "log_level": 3, "linger.ms": linger_ms}
        if level.per_transaction:
            config["transactional.id"] = topic
        self._producer = Producer({**config, **level.config})
        self._producer.list_topics(topic, timeout=_PATIENCE_SECONDS)
        if level.per_transaction:
            self._producer.init_transactions(_PATIENCE_SECONDS)

    def write_one(self) -> None:
        """One record, or one transaction; return when it is done."""
        if self._per_transaction:
            self._write_transaction()
            return
        self._is_done = False
        self._producer.produce(self._topic, self._value, partition=0, on_delivery=self._note)
        while not self._is_done:
            if not self._producer.poll(_PATIENCE_SECONDS):
                raise TimeoutError("no acknowledgement came")

    def write_until(self, ends_at: float) -> int:
        """As many as it takes until then; how many, when all are done."""
        written = 0
        while time.perf_counter() < ends_at:
            if self._per_transaction:
                self._write_transaction()
                written += self._per_transaction
                continue
            for _ in range(100):
                self._put(self._value)
            written += 100
        self._finish()
        return written

    def write_paced(self, count: int) -> None:
        """At PER_SECOND, each with its time; a transaction is committed when it is full."""
        began = time.monotonic()
        rest = self._value[_TIME.size :]
        for index in range(count):
            wait = began + index / PER_SECOND - time.monotonic()
            if wait > 0:
                time.sleep(wait)
            if self._per_transaction and index % self._per_transaction == 0:
                self._producer.begin_transaction()
            self._put(_TIME.pack(time.monotonic_ns()) + rest)
            self._producer.poll(0)
            is_last = index == count - 1
            if self._per_transaction and (is_last or (index + 1) % self._per_transaction == 0):
                self._producer.commit_transaction(_PATIENCE_SECONDS)
        self._finish()

    def _write_transaction(self) -> None:
        self._producer.begin_transaction()
        for _ in range(self._per_transaction):
            self._put(self._value)
        self._producer.commit_transaction(_PATIENCE_SECONDS)

    def _put(self, value: bytes) -> None:
        while True:
            try:
                self._producer.produce(self._topic, value, partition=0, on_delivery=self._note)
                return
            except BufferError:  # as many are in flight as may be
                self._producer.poll(0.05)

    def _note(self, error: Any, record: Any) -> None:
        self._is_done = True
        self._failure = error or self._failure

    def _finish(self) -> None:
        if self._producer.flush(_PATIENCE_SECONDS) or self._failure is not None:
            raise ConnectionError(f"not everything was acknowledged: {self._failure}")


def _create(broker: Broker, topic: str, level: Level) -> None:
    """Return when every broker knows who leads it."""
    admin = AdminClient({"bootstrap.servers": broker.servers, "log_level": 3})
    new = NewTopic(topic, 1, broker.replicas, config=level.topic_config)
    admin.create_topics([new])[topic].result(_PATIENCE_SECONDS)
    began = time.perf_counter()
    for server in broker.servers.split(","):
        one = AdminClient({"bootstrap.servers": server, "log_level": 3})
        while not _is_led(one, topic):
            _check_patience(began, f"a leader of {topic}")
            time.sleep(0.01)


def _is_led(admin: AdminClient, topic: str) -> bool:
    found = admin.list_topics(topic, timeout=_PATIENCE_SECONDS).topics[topic].partitions
    return bool(found) and all(each.leader >= 0 for each in found.values())


def _check_patience(began: float, what: str) -> None:
    if time.perf_counter() - began > _PATIENCE_SECONDS:
        raise TimeoutError(f"{what} did not come")


def _counted(taken: list[float]) -> Latencies:
    """Without the first, for which connections were made and code was loaded."""
    return Latencies(sorted(taken[len(taken) // _WARM_SHARE :]))


# --- what is shown -------------------------------------------------------------------------------


def show(rows: Sequence[Row]) -> None:
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    title = f"levels of delivery, records of {RECORD_BYTES} bytes, {PER_SECOND}/s to the reader"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("place", no_wrap=True)
    table.add_column("level", overflow="fold")
    for name in ("p50, ms", "p99, ms", "records/s"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        rate = "" if row.per_second is None else number(row.per_second)
        p50, p99 = (number(row.latencies.at(share)) for share in (0.5, 0.99))
        table.add_row(row.place, row.level, p50, p99, rate)
    console.print(table)


def figures(rows: Sequence[Row]) -> list[Figure]:
    found = []
    for row in rows:
        what = f"{row.place}, {row.level}"
        for name, share in (("p50", 0.5), ("p99", 0.99)):
            latency = row.latencies.at(share)
            found.append(Figure(f"{what}, {name}", "ms", latency, command=COMMAND))
        if row.per_second is not None:
            rate = row.per_second
            found.append(Figure(f"{what}, rate", "1/s", rate, at_most=False, command=COMMAND))
    return found


if __name__ == "__main__":
    main()
