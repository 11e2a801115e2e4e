"""How fast logs are compacted, and what a producer notices of it.

    python -m benchmarks.compaction [--megabytes N] [--json FILE]

The rate is that of one pass by the cleaner's process, as a broker starts it, over records of about
100 bytes in batches of 16 KiB: keys that come again and again, and keys that are all different, of
which nothing goes. The log is in the page cache. The latencies are of a producer with acks=all that
sends one record at a time to another topic of the broker, before and while it cleans.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from confluent_kafka.cimpl import NewTopic

from barnabas.config import LogConfig
from barnabas.records.record import BatchBuilder
from barnabas.storage.cleaner import Limits, examine, job_of
from barnabas.storage.compaction.job import Failed, Finished, job_lines, read_event
from barnabas.storage.files import OsFiles
from barnabas.storage.loading import Start
from barnabas.storage.log import Log
from barnabas.storage.recovery import open_log
from barnabas.types import TopicPartition
from benchmarks.client_work import create_topic
from benchmarks.figures import Figure, parser_of, show
from benchmarks.raw_client import Frames, Pipeline, batch_of, fill, produce_frame
from tests.kit.processes.broker_process import BrokerProcess

COMMAND = "python -m benchmarks.compaction"
MEGABYTE = 1e6
RECORDS_PER_BATCH = 160
VALUE = bytes(range(80))
GOAL_MB_S = 30.0
CASES = (("four values a key", 4), ("one value a key", 1))
LIMITS = Limits(buffer_bytes=512 << 20, read_bytes=256 * 1024, bytes_per_second=1e300)
ROUNDS, REQUESTS = 20, 1000


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--megabytes", type=int, default=200)
    options = parser.parse_args()
    figures = measure(options.megabytes)
    show("compaction", figures, options.json)


def measure(megabytes: int) -> list[Figure]:
    figures = []
    volume = int(megabytes * MEGABYTE)
    for name, repeats in CASES:
        wall, processor = compacted(volume, repeats)
        rate = volume / MEGABYTE
        figures += [
            Figure(f"compaction, {name}", "MB/s", rate / wall, GOAL_MB_S, False, command=COMMAND),
            Figure(f"compaction, {name}", "MB/s of CPU", rate / processor, command=COMMAND),
        ]
    idle, cleaning = latencies(volume)
    for share in (0.5, 0.99):
        before, during = _at(idle, share), _at(cleaning, share)
        name = f"produce while cleaning, p{share * 100:g}"
        figures.append(Figure(name, "ms", during, 2 * before, other=before, command=COMMAND))
    return figures


def _at(sorted_ms: list[float], share: float) -> float:
    return sorted_ms[int(len(sorted_ms) * share)]


# --- the rate ------------------------------------------------------------------------------------


def compacted(volume: int, repeats: int) -> tuple[float, float]:
    """Seconds that a pass takes, by the wall and of the processor."""
    with tempfile.TemporaryDirectory(prefix="barnabas-benchmark-") as directory:
        log = _filled(Path(directory), volume, repeats)
        cleanable = examine(log, log.log_end_offset, 0)
        lines = b"".join(job_lines(job_of(cleanable, LIMITS, 0), {}))
        log.release()
        before = os.times()
        began = time.perf_counter()
        command = [sys.executable, "-m", "barnabas.storage.compaction"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(lines)
            process.stdin.flush()
            event = next(_ends(process.stdout.readline))
            seconds = time.perf_counter() - began
            process.stdin.close()
        after = os.times()
        assert isinstance(event, Finished), event
        spent = after.children_user - before.children_user
        return seconds, spent + after.children_system - before.children_system


def _ends(readline: Callable[[], bytes]) -> Iterator[Finished | Failed]:
    for line in iter(readline, b""):
        event = read_event(line)
        if isinstance(event, Finished | Failed):
            yield event


def _filled(directory: Path, volume: int, repeats: int) -> Log:
    config = LogConfig(cleanup_policy="compact", segment_bytes=64 << 20)
    log = open_log(OsFiles(), directory, TopicPartition("t", 0), config, Start(is_clean=True))
    choice = random.Random(1)
    size = count = 0
    total = volume // 100
    while size < volume:
        batch = BatchBuilder()
        for _ in range(RECORDS_PER_BATCH):
            key = count if repeats == 1 else choice.randrange(total // repeats)
            batch.append(1_700_000_000_000 + count // 100, b"key-%08d" % key, VALUE)
            count += 1
        raw = bytearray(batch.build())
        log.append(memoryview(raw), 0, 0)
        log.write_staged()
        size += len(raw)
    log.roll()
    return log


# --- what a producer notices ---------------------------------------------------------------------


def latencies(volume: int) -> tuple[list[float], list[float]]:
    """Of produce requests in ms, sorted: of an idle broker, and of one that cleans."""
    with tempfile.TemporaryDirectory(prefix="barnabas-benchmark-") as directory:
        broker = BrokerProcess(
            Path(directory),
            "log.cleaner.backoff.ms=100",
            f"log.segment.bytes={min(16_000_000, volume // 4)}",
        )
        broker.start()
        try:
            return _latencies(broker, volume)
        finally:
            broker.kill()


def _latencies(broker: BrokerProcess, volume: int) -> tuple[list[float], list[float]]:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    settings = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1"}
    admin.create_topics([NewTopic("dirty", 1, 1, config=settings)])["dirty"].result(30)
    create_topic(broker.bootstrap_servers, "watched", 1)
    for frame in _dirty_frames():
        fill(broker.port, Frames([frame], 1, 16), volume // 16 // 16_000)
    watched, _, _ = produce_frame("watched", batch_of(0)[0])
    pipeline = Pipeline(broker.port, Frames([watched], 1, 1))
    pipeline.one_at_a_time(REQUESTS)
    idle = sorted(each for _ in range(ROUNDS) for each in pipeline.one_at_a_time(REQUESTS))
    ratio = ConfigEntry(
        "min.cleanable.dirty.ratio", "0.01", incremental_operation=AlterConfigOpType.SET
    )
    resource = ConfigResource(ResourceType.TOPIC, "dirty", incremental_configs=[ratio])
    admin.incremental_alter_configs([resource])[resource].result(30)
    checkpoint = broker.data_dir / "cleaner-offset-checkpoint"
    cleaning: list[float] = []
    until = time.monotonic() + 120
    while "dirty 0" not in checkpoint.read_text():
        assert time.monotonic() < until, "nothing is cleaned"
        cleaning += pipeline.one_at_a_time(REQUESTS // 4)
    pipeline.close()
    return idle, sorted(cleaning)


def _dirty_frames() -> Iterator[bytes]:
    """Batches whose keys are partly the same."""
    choice = random.Random(1)
    for _ in range(16):
        batch = BatchBuilder()
        for _ in range(RECORDS_PER_BATCH):
            key = b"key-%08d" % choice.randrange(2000)
            batch.append(int(time.time() * 1000), key, VALUE)
        yield produce_frame("dirty", batch.build())[0]


if __name__ == "__main__":
    main()
