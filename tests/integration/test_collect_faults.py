"""SP-2, DL-1: `barnabas collect` under faults of its machine and of the broker: it waits, goes on,
and readers of committed records have each line once, in order."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.client import NewTopic, SyncAdmin, SyncConsumer, TopicPartition
from tests.integration.collect_processes import Collecting, collecting_in
from tests.kit.processes.broker_process import BrokerProcess
from tests.kit.processes.full_disks import DISKS
from tests.kit.processes.stepped_clock import SteppedClock
from tests.kit.waiting import wait_until

DEFAULT_DESCRIPTORS = 1_024
MANY = 10_000
FILLING = b"%0.99d\n" % 0 * 1_000
PLACE = TopicPartition("lines", 0)
WITHOUT_POWERS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
"""Permissions bind root, too, in a process without capabilities."""

WITH_SHORT_TRANSACTIONS = """\
import asyncio, sys
from barnabas_collector.log_paths import LogPaths
from barnabas_collector.shipment import Shipment
from barnabas_collector.shipper import ship
shipment = Shipment(sys.argv[1], "lines", "test", "here", transaction_timeout_ms=1_000)
asyncio.run(ship(shipment, LogPaths(sys.argv[2:]), asyncio.Event()))
"""

WITH_STEPPED_CLOCK = """\
import sys, time
from pathlib import Path
from barnabas.cli.main import main
file, now_s = Path(sys.argv[1]), time.time
time.time = lambda: now_s() + int(file.read_text())
sys.exit(main(sys.argv[3:]))
"""


@pytest.fixture
def collecting(tmp_path: Path) -> Iterator[Collecting]:
    with collecting_in(tmp_path) as running:
        yield running


@pytest.fixture
def with_process(tmp_path: Path) -> Iterator[Collecting]:
    """Beside a broker that is a process, and has not started yet."""
    (tmp_path / "logs").mkdir()
    broker = BrokerProcess(tmp_path)
    running = Collecting(broker, tmp_path / "logs")
    try:
        yield running
    finally:
        running.kill_all()
        if broker.process is not None:
            broker.kill()


def append(log: Path, data: bytes) -> None:
    with log.open("ab") as file:
        file.write(data)


@pytest.mark.slow
@pytest.mark.parametrize("kind", DISKS)
def test_a_disk_of_the_broker_that_is_full(with_process: Collecting, kind: str) -> None:
    """The collector waits for the broker to come back with room, and goes on."""
    broker, log = with_process.broker, with_process.logs / "app.log"
    assert isinstance(broker, BrokerProcess)
    with DISKS[kind](log.parent.parent) as disk:
        broker.data_dir = disk.directory
        broker.start()
        with SyncAdmin(broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("lines", 1)])
        log.write_bytes(b"first\n")
        collector = with_process.start(str(log), "--compression", "none")
        wait_until(lambda: with_process.values() == [b"first"])
        wait_until(lambda: disk.has_ended(broker, lambda: append(log, FILLING)))
        disk.make_room()
        broker.start()
        append(log, b"last\n")
        wait_until(lambda: with_process.values()[-1:] == [b"last"])
        assert with_process.values() == log.read_bytes().splitlines()
        assert collector.poll() is None


def test_a_file_and_a_directory_that_may_not_be_read(collecting: Collecting) -> None:
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root is bound by permissions only by `setpriv` (util-linux)")
        collecting.prefix = WITHOUT_POWERS
    inner = collecting.logs / "inner"
    inner.mkdir()
    open_log, closed_log = collecting.logs / "open.log", collecting.logs / "closed.log"
    for log in (open_log, closed_log, inner / "app.log"):
        log.write_bytes(b"one of " + log.name.encode() + b"\n")
    closed_log.chmod(0)
    collector = collecting.start(str(collecting.logs), str(inner))
    wait_until(lambda: len(collecting.values()) == 2)
    assert collector.stderr is not None
    refusal = f"cannot read {closed_log}: you have no permission to read it\n"
    assert collector.stderr.readline() == refusal
    inner.chmod(0)
    append(open_log, b"two of open.log\n")
    wait_until(lambda: b"two of open.log" in collecting.values())
    for path, mode in ((closed_log, 0o600), (inner, 0o700)):
        path.chmod(mode)
    append(inner / "app.log", b"two of app.log\n")
    wait_until(lambda: len(collecting.values()) == 5)
    assert {b"one of closed.log", b"two of app.log"} < set(collecting.values())
    assert collector.poll() is None


def test_a_log_that_rested(collecting: Collecting) -> None:
    """It is looked at ever more rarely, and also after that what is new is sent."""
    log = collecting.logs / "app.log"
    log.write_bytes(b"one\n")
    others = [collecting.logs / f"other-{number}.log" for number in range(300)]
    for other in others:
        other.write_bytes(b"other\n")
    collecting.start(str(collecting.logs))
    wait_until(lambda: len(collecting.values()) == 301)
    empty = collecting.logs.parent / "empty.log"
    empty.touch()
    for text in (b"two", b"three"):
        for _ in range(6):  # starts of a process, which take longer than all intervals
            collecting.once(str(empty), "--name", "other")
        append(log, text + b"\n")
        wait_until(lambda text=text: collecting.values()[-1] == text)  # type: ignore[misc]
    assert len(collecting.values()) == 303


def test_any_bytes_are_sent_as_they_are(collecting: Collecting) -> None:
    log = collecting.logs / "app.log"
    log.write_bytes(random.Random(3).randbytes(3_000_000) + b"\n")
    collecting.once(str(log))
    *lines, rest = log.read_bytes().split(b"\n")
    assert rest == b""
    # Of all at once pytest would take minutes to show the difference.
    for sent, line in zip(collecting.values(), lines, strict=True):
        assert sent == line


@pytest.mark.slow
def test_a_pause_longer_than_the_transaction_timeout(tmp_path: Path) -> None:
    """The broker ends the transaction and fences the collector, which is its own successor."""
    config = {"transaction_abort_timed_out_transaction_cleanup_interval_ms": "200"}
    with collecting_in(tmp_path, **config) as collecting:
        log = collecting.logs / "app.log"
        log.write_bytes(b"".join(b"%0.99d\n" % number for number in range(400_000)))
        servers = collecting.broker.bootstrap_servers
        command = [sys.executable, "-c", WITH_SHORT_TRANSACTIONS, servers, str(log)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as collector:
            try:
                wait_until(lambda: is_paused_within_a_transaction(collector, servers))
                wait_until(lambda: end(servers, "read_committed") == end(servers, ""))
                collector.send_signal(signal.SIGCONT)
                append(log, b"last\n")
                wait_until(lambda: last_value(servers) == b"last")
                assert collecting.values() == log.read_bytes().splitlines()
                assert collector.poll() is None
            finally:
                collector.kill()
                _, errors = collector.communicate()
        assert "continuing after the last committed line" in errors


def is_paused_within_a_transaction(collector: subprocess.Popen[str], servers: str) -> bool:
    collector.send_signal(signal.SIGSTOP)
    if end(servers, "read_committed") < end(servers, ""):
        return True
    collector.send_signal(signal.SIGCONT)
    return False


def end(servers: str, isolation_level: str) -> int:
    level = isolation_level or "read_uncommitted"
    with SyncConsumer(servers, isolation_level=level) as consumer:
        return consumer.end_offsets([PLACE])[PLACE]


def last_value(servers: str) -> bytes | None:
    with SyncConsumer(servers, isolation_level="read_committed") as consumer:
        consumer.assign([PLACE])
        consumer.seek(PLACE, max(0, consumer.end_offsets([PLACE])[PLACE] - 2))
        found = consumer.poll(1_000)
    return found[-1].value if found else None


def test_clocks_that_jump(with_process: Collecting) -> None:
    """The collector's and the broker's, forwards and back: a day, a year."""
    broker, log = with_process.broker, with_process.logs / "app.log"
    assert isinstance(broker, BrokerProcess)
    clock = SteppedClock(broker, log.parent.parent)
    file = log.parent.parent / "wall-clock"
    broker.start()
    with SyncAdmin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("lines", 1)])
    log.write_bytes(b"first\n")
    with_process.prefix = (sys.executable, "-c", WITH_STEPPED_CLOCK, str(file))
    collector = with_process.start(str(log))
    wait_until(lambda: with_process.values() == [b"first"])
    for number, ahead_s in enumerate((86_400, -86_400, 31_536_000, 0)):
        clock.step(ahead_s)
        append(log, b"%d\n" % number)
        wait_until(lambda number=number: len(with_process.values()) == 2 + 2 * number)  # type: ignore[misc]
        log.rename(log.with_name(f"app.log.{4 - number}"))
        log.write_bytes(b"new %d\n" % number)
        wait_until(lambda number=number: len(with_process.values()) == 3 + 2 * number)  # type: ignore[misc]
    assert collector.poll() is None
    expected = [line for number in range(4) for line in (b"%d" % number, b"new %d" % number)]
    assert with_process.values() == [b"first", *expected]


@pytest.mark.slow
def test_ten_thousand_files_with_the_usual_descriptors(collecting: Collecting) -> None:
    for number in range(MANY):
        (collecting.logs / f"{number:05}.log").write_bytes(b"first of %d\n" % number)
    limit = (DEFAULT_DESCRIPTORS, DEFAULT_DESCRIPTORS)
    servers = collecting.broker.bootstrap_servers
    collecting.start(
        str(collecting.logs),
        before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limit),
    )
    wait_until(lambda: end(servers, "read_committed") >= MANY)  # cheaper than all of the lines
    wait_until(lambda: len(collecting.values()) == MANY)
    for number in range(0, MANY, 10):
        append(collecting.logs / f"{number:05}.log", b"second of %d\n" % number)
    wait_until(lambda: len(collecting.values()) == MANY + MANY // 10)
    assert len(set(collecting.values())) == MANY + MANY // 10
