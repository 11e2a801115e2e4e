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
from pathlib import Path

from drain3 import TemplateMiner
from drain3.drain import Drain
from drain3.template_miner_config import MaskingInstruction, TemplateMinerConfig

import barnabas
from barnabas_collector.log_paths import LogPaths
from barnabas_collector.shipment import Shipment
from barnabas_collector.shipper import ship
from barnabas_formats.catalogue import catalogue
from barnabas_formats.continuation import RecordStart
from barnabas_pipeline.logs.definition import SystemLogs
from barnabas_pipeline.logs.generator import write_logs
from benchmarks.pipeline_jobs import (
    LARGE,
    SMALL,
    SMALL_LINES,
    create_topics,
    report,
    seconds_of,
    time_jobs,
)

MASKS = (
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
        for topic, count in ((LARGE, lines), (SMALL, SMALL_LINES)):
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
    config.masking_instructions = [MaskingInstruction(*each) for each in MASKS]
    miner = TemplateMiner(config=config)
    seconds = seconds_of(lambda: [miner.add_log_message(text) for text in texts])
    report("drain3 alone, with masks", len(texts), seconds)
    drain = Drain()
    seconds = seconds_of(lambda: [drain.add_log_message(text) for text in texts])
    report("drain3 alone, without", len(texts), seconds)


def _run_jobs(servers: str, directory: Path, lines: int) -> None:
    create_topics(servers)
    for topic in (LARGE, SMALL):
        rule = RecordStart()
        shipment = Shipment(servers, topic, topic, "benchmark", is_start=rule)
        paths = LogPaths([str(directory / topic)])
        asyncio.run(ship(shipment, paths, asyncio.Event(), once=True))
    tables = time_jobs(SystemLogs(catalogue("system")), servers, directory, lines)
    accounts = tables.frame("files").select("valid", "dead_letters").sum()
    templates = tables.frame("templates").height
    print(f"{sum(accounts.row(0)):,} records with their stack traces, {templates} templates")


if __name__ == "__main__":
    main()
