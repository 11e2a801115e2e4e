"""How long `barnabas migrate step` takes on a cluster of Kafka's, and what a producer feels of it.

    python -m benchmarks.migrate [--partitions N] [--json FILE]

Three real Kafka 3.9.1 with the JVM options of their start script, on one ZooKeeper, replication
factor 3, min.insync.replicas 2, and an idempotent producer of librdkafka that writes a fixed number
of records a second to the partitions in turn.
The step runs as a process of its own; this program is the operator that stops and starts the broker
when it is asked to. So the time of the two programs' stop and start is known apart from the rest,
which is split where the command prints a line. Before that, one of them is restarted as a Kafka, so
that the step can be compared with a usual restart.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO, NamedTuple

import pytest
from confluent_kafka import Message, Producer

from barnabas.client import NewTopic, SyncAdmin
from benchmarks.brokers import KAFKA_JVM
from benchmarks.figures import Figure, parser_of, show
from tests.kit.processes.broker_process import COMMAND
from tests.kit.processes.cluster_load import controller_of
from tests.kit.processes.mixed_cluster import Kind, MixedCluster, mixed_cluster, restore_leaders
from tests.kit.waiting import wait_until

PARTITIONS = 1_000
TOPIC = "migrated"
_PATIENCE_SECONDS = 180.0
_PER_SECOND = 10  # three Kafkas with 1,000 partitions on two cores acknowledge 20 to 70 at most
_BEFORE = 200
_QUESTION = "then press Enter "


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    options = parser.parse_args()
    try:
        figures = measure(options.partitions)
    except pytest.skip.Exception as missing:
        sys.exit(f"this cannot be measured here: {missing}")
    show(f"migrate step, {options.partitions} partitions", figures, options.json)


def measure(partitions: int) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="barnabas-benchmark-") as name:
        directory = Path(name)
        options = ("min.insync.replicas=2", "auto.create.topics.enable=false")
        kinds: dict[int, Kind] = {1: "kafka", 2: "kafka", 3: "kafka"}
        with mixed_cluster(directory, kinds, *options, jvm=KAFKA_JVM) as cluster:
            _create(cluster, partitions)
            _fill(cluster.bootstrap_servers, partitions)
            load = _Load(cluster.bootstrap_servers, partitions)
            try:
                wait_until(lambda: len(load.waits) > _PER_SECOND, _PATIENCE_SECONDS)
                started = time.perf_counter()
                wait_until(lambda: len(load.waits) > _BEFORE, _PATIENCE_SECONDS)
                restarted = time.perf_counter()
                _restart_one(cluster)
                began = time.perf_counter()
                lines = _step(cluster, directory)
                ended = time.perf_counter()
            finally:
                load.stop()
            stopped = next(each.at + each.operator_s for each in lines if each.operator_s)
            return [
                *_figures(lines, began, ended),
                # A producer that was too slow before says nothing about the step.
                *_waits("before", load.between(started, restarted)),
                *_waits("while a Kafka is restarted", load.between(restarted, began)),
                *_waits("during the step", load.between(began, ended), goal=1.0),
                # The controlled shutdown is Kafka's own work, with or without this command.
                *_waits("after Kafka's stop", load.between(stopped, ended)),
            ]


def _restart_one(cluster: MixedCluster) -> None:
    """Replaces a Kafka by itself, which is what operators are used to, and restores its leaders."""
    kafka = next(each for each in cluster.of_kind("kafka") if each != controller_of(cluster.ours))
    cluster.stop_one(kafka)
    cluster.start_one(kafka, "kafka")
    with SyncAdmin(cluster.bootstrap_servers) as admin:
        restore_leaders(admin)


class _Line(NamedTuple):
    """A line of the command, when it came, and how long the operator took to do it."""

    text: str
    at: float
    operator_s: float = 0.0


def _step(cluster: MixedCluster, directory: Path) -> list[_Line]:
    words = ["migrate", "step", "--execute", "--bootstrap-server", cluster.bootstrap_servers]
    process = subprocess.Popen(
        [str(COMMAND), *words],
        cwd=directory,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with process:
        assert process.stdout is not None and process.stdin is not None
        lines = []
        try:
            while text := _up_to_question(process.stdout):
                at, took_s = time.perf_counter(), 0.0
                if text.endswith(_QUESTION):
                    _obey(cluster, text)
                    took_s = time.perf_counter() - at
                    process.stdin.write("\n")
                    process.stdin.flush()
                lines.append(_Line(text.strip(), at, took_s))
            if process.wait(_PATIENCE_SECONDS):
                raise RuntimeError("\n".join(each.text for each in lines))
        finally:
            if process.poll() is None:
                process.kill()
    return lines


def _obey(cluster: MixedCluster, question: str) -> None:
    words = question.split()
    broker_id = int(words[words.index("broker") + 1])
    if words[0] == "Stop":
        cluster.stop_one(broker_id)
    else:
        cluster.start_one(broker_id, "ours")


def _up_to_question(output: IO[str]) -> str:
    """A line, or a question, which has no end of line."""
    text = ""
    while not text.endswith(("\n", _QUESTION)) and (letter := output.read(1)):
        text += letter
    return text


def _figures(lines: list[_Line], began: float, ended: float) -> list[Figure]:
    operator_s = sum(each.operator_s for each in lines)
    figures = [
        Figure("a step, everything", "s", ended - began),
        Figure("of it, the command alone", "s", ended - began - operator_s, 15.0),
    ]
    ends = [*(each.at for each in lines[1:]), ended]
    figures.append(Figure("until the first line", "s", lines[0].at - began))
    for line, end in zip(lines, ends, strict=True):
        if line.operator_s:
            figures.append(Figure(f"operator: {line.text[:40]}", "s", line.operator_s))
        figures.append(Figure(f"after: {line.text[:50]}", "s", end - line.at - line.operator_s))
    return figures


def _waits(when: str, waits: list[float], goal: float | None = None) -> list[Figure]:
    waits.sort()
    figures = []
    for name, share in (("p50", 0.5), ("p99", 0.99), ("max", 1.0)):
        reached = waits[min(len(waits) - 1, int(len(waits) * share))]
        wanted = goal if name == "p99" else None
        figures.append(Figure(f"produce {when}, {name}", "s", reached, wanted))
    return figures


def _create(cluster: MixedCluster, partitions: int) -> None:
    orders = list(itertools.permutations((1, 2, 3)))
    placed = {number: orders[number % len(orders)] for number in range(partitions)}
    with SyncAdmin(cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(TOPIC, assignment=placed)])


def _fill(servers: str, partitions: int) -> None:
    """Writes a record to each partition, because the first one in each makes Kafka create files."""
    producer = Producer({"bootstrap.servers": servers})
    for number in range(partitions):
        producer.produce(TOPIC, b"first", partition=number)
    if left := producer.flush(_PATIENCE_SECONDS):
        raise RuntimeError(f"{left} of the first records were not written")


class _Load:
    """Writes a fixed number of records a second, and notes when each was sent and how long it took.

    The time counts from the instant at which a record was due, so that a pause is not hidden by a
    producer that pauses, too.
    """

    def __init__(self, servers: str, partitions: int) -> None:
        self.waits: list[tuple[float, float]] = []
        self.failed: list[object] = []
        self._partitions = partitions
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "enable.idempotence": True,
                "linger.ms": 5,
                "log_level": 0,
            }
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        began = time.perf_counter()
        for number in itertools.count():
            if self._stopping.is_set():
                return
            due = began + number / _PER_SECOND
            while (left := due - time.perf_counter()) > 0:
                self._producer.poll(min(left, 0.01))
            self._send(number % self._partitions, due)

    def _send(self, partition: int, due: float) -> None:
        def note(error: object, _: Message) -> None:
            if error is None:
                self.waits.append((due, time.perf_counter() - due))
            else:
                self.failed.append(error)

        self._producer.produce(TOPIC, b"x" * 100, partition=partition, on_delivery=note)

    def between(self, began: float, ended: float) -> list[float]:
        if self.failed:
            raise RuntimeError(f"records were lost: {self.failed[:3]}")
        return [wait for due, wait in self.waits if began <= due <= ended]

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._producer.flush(60)


if __name__ == "__main__":
    main()
