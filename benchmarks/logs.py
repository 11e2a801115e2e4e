"""The job on system logs from topic to committed tables, beside drain3 alone over the same lines.

    python -m benchmarks.logs [--lines 1000000]

The lines are generated and collected before anything is timed. drain3 reads them from memory, as
its own examples do, with its masking and without: it parses no line, counts nothing, and stores
nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from drain3 import TemplateMiner
from drain3.drain import Drain
from drain3.template_miner_config import MaskingInstruction, TemplateMinerConfig

import barnabas
from barnabas.client import NewTopic, SyncAdmin
from barnabas.collector.log_paths import LogPaths
from barnabas.collector.record_reader import INDENTED, record_start
from barnabas.collector.shipment import Shipment
from barnabas.collector.shipper import ship
from barnabas.pipeline.job import Job
from barnabas.pipeline.logs.definition import LOGS, SystemLogs
from barnabas.pipeline.logs.formats import known_formats
from barnabas.pipeline.logs.generator import write_logs
from barnabas.pipeline.session import SHORT_LIVED, start_session
from barnabas.pipeline.snapshot import Snapshot

_PARTITIONS = 3
_SMALL = 3_000
_SMALL_BATCHES = 10
_MASKS = (
    (r"\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b", "IP"),
    (r"\bblk_-?\d+\b", "ID"),
    (r"\b\d+(?:\.\d+)*\b", "NUM"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=1_000_000)
    lines = parser.parse_args().lines
    with tempfile.TemporaryDirectory(prefix="barnabas-benchmark-") as name:
        directory = Path(name)
        for topic, count in (("large", lines), ("small", _SMALL * _SMALL_BATCHES)):
            write_logs(directory / topic, count, seed=1)
        _drain3(directory / "large")
        with barnabas.Broker(directory / "broker") as broker:
            _run_jobs(broker.bootstrap_servers, directory, lines)


def _drain3(directory: Path) -> None:
    """A fifth of the lines: their rate does not change."""
    texts = [
        line.decode("utf-8", "replace")
        for path in sorted(directory.iterdir())
        for line in path.read_bytes().splitlines()[::5]
    ]
    config = TemplateMinerConfig()
    config.masking_instructions = [MaskingInstruction(*each) for each in _MASKS]
    miner = TemplateMiner(config=config)
    seconds = _seconds(lambda: [miner.add_log_message(text) for text in texts])
    _report("drain3 alone, with masks", len(texts), seconds)
    drain = Drain()
    seconds = _seconds(lambda: [drain.add_log_message(text) for text in texts])
    _report("drain3 alone, without", len(texts), seconds)


def _run_jobs(servers: str, directory: Path, lines: int) -> None:
    topics = ("large", "small")
    with SyncAdmin(servers) as admin:
        admin.create_topics([NewTopic(each, _PARTITIONS) for each in (*topics, "dead")])
    for topic in topics:
        rule = record_start(INDENTED)
        shipment = Shipment(servers, topic, topic, "benchmark", is_start=rule)
        paths = LogPaths([str(directory / topic)])
        asyncio.run(ship(shipment, paths, asyncio.Event(), once=True))
    begin_s = time.monotonic()
    spark = start_session(
        "benchmark", master="local[2]", settings=SHORT_LIVED, log=directory / "spark.log"
    )
    print(f"{'a Spark session':<44} {time.monotonic() - begin_s:6.1f} s")

    def run(topic: str, name: str, batch: int) -> list[float]:
        places = directory / name, directory / f"{name}-checkpoint"
        job = Job(SystemLogs(known_formats()), servers, topic, "dead", *places, batch)
        query = job.start(spark)
        query.awaitTermination()
        return [
            each["durationMs"]["triggerExecution"] / 1_000
            for each in query.recentProgress
            if each["numInputRows"]
        ]

    first = run("small", "first", _SMALL * _SMALL_BATCHES)
    print(f"{'its first batch, of 30,000 lines':<44} {first[0]:6.1f} s")
    each_s = sorted(run("small", "batches", _SMALL)[1:])
    print(f"{'a batch of 3,000 records, median':<44} {each_s[len(each_s) // 2]:6.2f} s")
    seconds = _seconds(lambda: run("large", "whole", 250_000))
    _report("Barnabas, from topic to committed tables", lines, seconds)
    snapshot = Snapshot(directory / "whole", LOGS)
    accounts = snapshot.frame("files").select("valid", "dead_letters").sum().row(0)
    print(f"{'':<44} {sum(accounts):,} records, {snapshot.frame('templates').height} templates")
    workers = [psutil.Process(), *psutil.Process().children(recursive=True)]
    largest = max(each.memory_info().rss for each in workers if "python" in each.name())
    print(f"{'the largest Python process':<44} {largest / 1e6:6.0f} MB")
    spark.stop()


def _seconds(action: Callable[[], object]) -> float:
    begin_s = time.monotonic()
    action()
    return time.monotonic() - begin_s


def _report(what: str, lines: int, seconds: float) -> None:
    print(f"{what:<44} {seconds:6.1f} s  {lines / seconds:9,.0f} lines/s")


if __name__ == "__main__":
    main()
