"""`barnabas collect` beside `kcat -P` and rsyslog: lines a second, lateness, and what rest costs.

    python -m benchmarks.collector [--lines N] [--rounds N] [--idle-files N] [--seconds N]

Lines have 100 bytes. The collector writes them in transactions with its positions, and puts file
and place into headers; kcat sends bare lines, at least once, and remembers nothing; rsyslog
(imfile and omkafka, where it is installed) follows files as a collector does, and sends bare lines
at least once. All send to the same broker in turns. CPU seconds are of the process alone; the
broker's are apart. Lateness is from the write of a line, of which there are 1,000 a second, until a
reader of committed records has it. Lines also go through standard input, from `cat`, and over TCP
as syslog, of which each message has a priority other than the one before it.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import psutil

from barnabas.client import NewTopic, SyncAdmin, SyncConsumer, TopicPartition
from tests.kit import foreign
from tests.kit.processes import rsyslog
from tests.kit.processes.broker_process import BrokerProcess, broker_process

LINE_BYTES = 100
LINES_PER_SECOND = 1_000
BURST = 10
SETTLE_S = 5.0


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--lines", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--idle-files", type=int, default=1_000)
    parser.add_argument("--seconds", type=int, default=10, help="of the last two")
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="barnabas-benchmark-") as name,
        broker_process(Path(name)) as broker,
    ):
        directory = Path(name)
        throughput(broker, directory, given.lines, given.rounds)
        received(broker, directory, given.lines, given.rounds)
        lateness(broker, directory, given.seconds)
        rest(broker, directory, given.idle_files, given.seconds)


def throughput(broker: BrokerProcess, directory: Path, lines: int, rounds: int) -> None:
    log = directory / "big.log"
    with log.open("wb") as file:
        for start in range(0, lines, 10_000):
            numbers = range(start, min(start + 10_000, lines))
            file.writelines(b"%0*d\n" % (LINE_BYTES - 1, number) for number in numbers)
    measured: dict[str, list[tuple[float, float, float]]] = {}
    for round_number in range(rounds):
        commands = {"barnabas collect": collect(broker, log, f"round-{round_number}", "--once")}
        kcat = shutil.which("kcat")
        if kcat is not None:
            common = [kcat, "-P", "-b", broker.bootstrap_servers, "-t", "lines"]
            commands["kcat -P"] = [*common, "-X", "compression.codec=lz4", "-l", str(log)]
        for name, command in commands.items():
            measured.setdefault(name, []).append(timed(broker, command))
        if foreign.find_rsyslog() is not None:
            measured.setdefault("rsyslog", []).append(
                with_rsyslog(broker, log, directory / f"rsyslog-{round_number}", lines)
            )
    print(f"{lines:,} lines of {LINE_BYTES} bytes, median of {rounds} rounds")
    for name, rows in measured.items():
        took_s, cpu_s, broker_s = (statistics.median(row) for row in zip(*rows, strict=True))
        print(
            f"  {name:18} {lines / took_s:10,.0f} lines/s, {lines / cpu_s:10,.0f} per CPU second;"
            f" the broker's {lines / broker_s:10,.0f}"
        )


def received(broker: BrokerProcess, directory: Path, lines: int, rounds: int) -> None:
    """Of what cannot be read twice: a pipe, and syslog over TCP."""
    log, messages = directory / "big.log", directory / "messages"
    with log.open("rb") as source, messages.open("wb") as file:
        for number, line in enumerate(source):
            file.write(b"<%d>" % (128 + number % 8) + line[5:])
    for name, measure, path in (
        ("standard input", from_pipe, log),
        ("syslog over TCP", from_tcp, messages),
    ):
        rows = [measure(broker, path, f"{name[:6]}-{at}", lines) for at in range(rounds)]
        took_s, used_s = (statistics.median(row) for row in zip(*rows, strict=True))
        print(
            f"  {name:18} {lines / took_s:10,.0f} lines/s, {lines / used_s:10,.0f} per CPU second"
        )


def from_pipe(broker: BrokerProcess, path: Path, topic: str, lines: int) -> tuple[float, float]:
    """Seconds and the collector's CPU seconds, its start among them."""
    command = collect(broker, Path("-"), "received", topic=topic)
    create(broker, topic)
    began_s = time.perf_counter()
    with (
        subprocess.Popen(["cat", str(path)], stdout=subprocess.PIPE) as cat,
        running(command, stdin=cat.stdout) as collector,
    ):
        used_s = cpu_s_until(broker, collector, topic, lines)
        return time.perf_counter() - began_s, used_s


def from_tcp(broker: BrokerProcess, path: Path, topic: str, lines: int) -> tuple[float, float]:
    """As `from_pipe`, but of the sender's time the collector's start is no part."""
    command = collect(broker, Path("--syslog-tcp=127.0.0.1:0"), topic, topic=topic)
    create(broker, topic)
    with running(command, stderr=subprocess.PIPE) as collector:
        assert collector.stderr is not None
        port = int(collector.stderr.readline().rpartition(b":")[2])
        began_s = time.perf_counter()
        sender = threading.Thread(target=send_file, args=(path, port))
        sender.start()
        used_s = cpu_s_until(broker, collector, topic, lines)
        sender.join()
        return time.perf_counter() - began_s, used_s


def send_file(path: Path, port: int) -> None:
    with path.open("rb") as file, socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendfile(file)


def cpu_s_until(
    broker: BrokerProcess, process: subprocess.Popen[bytes], topic: str, lines: int
) -> float:
    """CPU seconds of the process by the time that the topic has all lines."""
    place = TopicPartition(topic, 0)
    with SyncConsumer(broker.bootstrap_servers) as consumer:
        used_s = cpu_s(process.pid)
        while consumer.end_offsets([place])[place] < lines:
            with contextlib.suppress(psutil.NoSuchProcess):  # at its end a pipe's has gone
                used_s = cpu_s(process.pid)
            time.sleep(0.02)
    return used_s


def create(broker: BrokerProcess, topic: str) -> None:
    with SyncAdmin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(topic, 1)])


def timed(broker: BrokerProcess, command: Sequence[str]) -> tuple[float, float, float]:
    """Seconds, and CPU seconds of the command and of the broker."""
    assert broker.process is not None
    broker_before = cpu_s(broker.process.pid)
    before = children_cpu_s()
    began_s = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    took_s = time.perf_counter() - began_s
    return took_s, children_cpu_s() - before, cpu_s(broker.process.pid) - broker_before


def with_rsyslog(
    broker: BrokerProcess, log: Path, directory: Path, lines: int
) -> tuple[float, float, float]:
    """As `timed`, until all lines are in the topic, for it does not end."""
    assert broker.process is not None
    topic = directory.name
    create(broker, topic)
    directory.mkdir()
    shipping = rsyslog.Shipping(directory, log, broker.bootstrap_servers, topic, directory)
    broker_before = cpu_s(broker.process.pid)
    began_s = time.perf_counter()
    with running(shipping.command()) as process, SyncConsumer(broker.bootstrap_servers) as consumer:
        place = TopicPartition(topic, 0)
        while consumer.end_offsets([place])[place] < lines:
            time.sleep(0.02)
        took_s = time.perf_counter() - began_s
        used_s = cpu_s(process.pid)
    return took_s, used_s, cpu_s(broker.process.pid) - broker_before


def lateness(broker: BrokerProcess, directory: Path, seconds: int) -> None:
    log = directory / "late.log"
    log.touch()
    create(broker, "late")
    late_ms: list[float] = []
    total = seconds * LINES_PER_SECOND
    with running(collect(broker, log, "late", topic="late")) as collector:
        time.sleep(1)
        writer = threading.Thread(target=write_evenly, args=(log, total))
        before_s = cpu_s(collector.pid)
        writer.start()
        place = TopicPartition("late", 0)
        with SyncConsumer(broker.bootstrap_servers, isolation_level="read_committed") as consumer:
            consumer.assign([place])
            consumer.seek(place, 0)
            while len(late_ms) < total:
                records = consumer.poll(1_000)
                now_s = time.time()
                late_ms += [(now_s - float(record.value or b"0")) * 1_000 for record in records]
        cores = (cpu_s(collector.pid) - before_s) / seconds
        writer.join()
    late_ms = sorted(late_ms)
    print(
        f"{LINES_PER_SECOND:,} lines a second: p50 {late_ms[total // 2]:.1f} ms, p99"
        f" {late_ms[total * 99 // 100]:.1f} ms until they are read; {cores:.3f} cores"
    )


def write_evenly(log: Path, lines: int) -> None:
    began_s = time.time()
    with log.open("ab", buffering=0) as file:
        for number in range(0, lines, BURST):
            at_s = began_s + number / LINES_PER_SECOND
            time.sleep(max(0.0, at_s - time.time()))
            file.write(b"%.6f\n" % time.time() * BURST)


def rest(broker: BrokerProcess, directory: Path, files: int, seconds: int) -> None:
    idle = directory / "idle"
    idle.mkdir()
    for number in range(files):
        (idle / f"{number}.log").write_bytes(b"one line\n")
    with running(collect(broker, idle, "idle")) as collector:
        time.sleep(SETTLE_S)
        before_s = cpu_s(collector.pid)
        time.sleep(seconds)
        cores = (cpu_s(collector.pid) - before_s) / seconds
        memory_mb = psutil.Process(collector.pid).memory_info().rss / 1e6
    print(f"{files:,} files to which nothing is written: {cores:.3f} cores, {memory_mb:.0f} MB")


def collect(
    broker: BrokerProcess, path: Path, name: str, *more: str, topic: str = "lines"
) -> list[str]:
    command = [sys.executable, "-m", "barnabas.cli.main", "collect", str(path), "--topic", topic]
    return [*command, "--bootstrap-server", broker.bootstrap_servers, "--name", name, *more]


@contextlib.contextmanager
def running(
    command: Sequence[str], *, stdin: IO[bytes] | None = None, stderr: int = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(command, stdin=stdin, stderr=stderr) as process:
        try:
            yield process
        finally:
            process.terminate()


def cpu_s(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def children_cpu_s() -> float:
    times = psutil.Process().cpu_times()
    return float(times.children_user + times.children_system)


if __name__ == "__main__":
    main()
