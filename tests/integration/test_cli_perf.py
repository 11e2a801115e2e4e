"""UX-2: `barnabas perf` against an embedded broker, as a user types it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.client.sync.producer import SyncAdmin

if TYPE_CHECKING:
    from barnabas.testing.embedded.broker import Broker

COMMAND = str(Path(sys.executable).parent / "barnabas")
SUMMARY = re.compile(
    r"^(\d+) records sent, ([\d.]+) records/sec \(([\d.]+) MB/sec\), ([\d.]+) ms avg latency, "
    r"([\d.]+) ms max latency, ([\d.]+) ms 50th, ([\d.]+) ms 95th, ([\d.]+) ms 99th, "
    r"([\d.]+) ms 99\.9th\.$"
)


def perf(broker: Broker, *words: str, code: int = 0) -> tuple[str, str]:
    """Standard output and error of `barnabas perf WORDS`."""
    done = subprocess.run(
        [COMMAND, "perf", *words],
        env={**os.environ, "BARNABAS_BOOTSTRAP_SERVER": broker.bootstrap_servers},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr


def test_produce_then_consume(broker: Broker) -> None:
    words = ("--num-records", "5000", "--record-size", "50", "--partitions", "3")
    config = ("--producer-config", "linger.ms=5", "--producer-props", "compression.type=lz4")
    output, _ = perf(broker, "produce", "both", *words, *config)
    found = SUMMARY.match(output.splitlines()[-1])
    assert found is not None, output
    assert found[1] == "5000"
    p50, p95, p99, p999 = (float(found[number]) for number in range(6, 10))
    assert 0 < p50 <= p95 <= p99 <= p999 <= float(found[5])
    with SyncAdmin(broker.bootstrap_servers) as admin:
        assert len(admin.describe_topics(["both"])[0].partitions) == 3

    output, _ = perf(broker, "consume", "--topic", "both", "--messages", "5000")
    header, row = output.splitlines()
    assert header == (
        "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, "
        "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
    )
    start, _, megabytes, _, records, *_ = row.split(", ")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}", start)
    assert records == "5000"
    assert megabytes == f"{5000 * 50 / 1048576:.4f}"


def test_throughput_is_kept_and_reported_meanwhile(broker: Broker) -> None:
    words = ("--num-records", "600", "--throughput", "1000", "--reporting-interval", "200")
    output, _ = perf(broker, "produce", "paced", "--partitions", "1", *words)
    *windows, last = output.splitlines()
    found = SUMMARY.match(last)
    assert found is not None
    assert float(found[2]) <= 1010
    assert windows and all(line.endswith(" ms max latency.") for line in windows)


def test_an_existing_topic_is_used_as_it_is(broker: Broker) -> None:
    perf(broker, "produce", "there", "--num-records", "1", "--partitions", "1")
    perf(broker, "produce", "there", "--num-records", "1", "--partitions", "9")
    with SyncAdmin(broker.bootstrap_servers) as admin:
        assert len(admin.describe_topics(["there"])[0].partitions) == 1


def test_interrupt_prints_the_summary(broker: Broker) -> None:
    process = subprocess.Popen(
        [COMMAND, "perf", "produce", "cut", "--num-records", "100000000", "--partitions", "1",
         "--throughput", "2000", "--reporting-interval", "100"],
        env={**os.environ, "BARNABAS_BOOTSTRAP_SERVER": broker.bootstrap_servers,
             "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        assert "records sent" in process.stdout.readline()  # it is in the middle of it
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130, errors
    assert SUMMARY.match(output.splitlines()[-1]), output
    assert "Traceback" not in errors


def test_too_few_records_are_said(broker: Broker) -> None:
    perf(broker, "produce", "few", "--num-records", "10", "--partitions", "1")
    words = ("--messages", "11", "--timeout", "3000", "--hide-header", "--show-detailed-stats")
    output, errors = perf(broker, "consume", "few", *words)
    assert output.split(", ")[4] == "10"
    assert errors == (
        "barnabas perf consume: warning: 10 of 11 records arrived, then no more for 3000 ms; "
        "to wait longer, raise --timeout\n"
    )


def test_mistakes_are_one_line(broker: Broker) -> None:
    """UX-4."""
    _, errors = perf(
        broker, "produce", "t", "--num-records", "1", "--producer-config", "lingr.ms=5", code=2
    )
    assert "did you mean linger.ms?" in errors
    _, errors = perf(broker, "produce", "t", "--num-records", "1", "--throughput", "0", code=2)
    assert "--throughput 0: must be more than 0, or -1" in errors
    output, errors = perf(broker, "consume", "nowhere", "--messages", "1", code=1)
    assert output == "" and "UNKNOWN_TOPIC_OR_PARTITION" in errors
    words = ("--num-records", "2", "--record-size", "2000000", "--partitions", "1")
    output, errors = perf(broker, "produce", "large", *words, code=1)
    assert output == "" and "max.request.size" in errors
    assert errors.count("\n") == 1
