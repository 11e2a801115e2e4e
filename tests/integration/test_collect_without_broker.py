"""LG-2: a collector that is started while no broker runs waits for one, and says so."""

from __future__ import annotations

import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.client import NewTopic, SyncAdmin
from tests.integration.collect_processes import Collecting
from tests.kit.processes.broker_process import BrokerProcess
from tests.kit.waiting import wait_until

ERROR = "retrying until the brokers can be reached: no broker could be reached: "


@pytest.fixture
def collecting(tmp_path: Path) -> Iterator[Collecting]:
    """With a broker that was started once and does not run."""
    broker = BrokerProcess(tmp_path)
    broker.start()
    with SyncAdmin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("lines", 1)])
    broker.stop()
    (tmp_path / "logs").mkdir()
    running = Collecting(broker, tmp_path / "logs")
    try:
        yield running
    finally:
        running.kill_all()
        if broker.process is not None:
            broker.stop()


def test_lg_2_files_and_listeners_wait_for_the_first_broker(collecting: Collecting) -> None:
    (collecting.logs / "app.log").write_text("of a file\n")
    options = [str(collecting.logs), "--syslog-tcp", "127.0.0.1:0", "--metrics-port", "0"]
    process = collecting.start(*options)
    assert process.stderr is not None
    seen: list[str] = []
    while sum(ERROR in line for line in seen) < 2 or not any("syslog on" in line for line in seen):
        seen.append(process.stderr.readline())
        assert seen[-1], "it has ended"
    ports = {
        what: int(line.rpartition(":")[2])
        for line in seen
        for what in ("syslog", "metrics")
        if f"{what} on " in line
    }
    with pytest.raises(urllib.error.HTTPError, match="503"):
        urllib.request.urlopen(f"http://127.0.0.1:{ports['metrics']}/readyz")
    with socket.create_connection(("127.0.0.1", ports["syslog"])) as sender:
        sender.sendall(b"<14>of a sender\n")
    collecting.broker.start()
    wait_until(lambda: set(collecting.values()) == {b"of a file", b"<14>of a sender"})
    with urllib.request.urlopen(f"http://127.0.0.1:{ports['metrics']}/readyz") as answer:
        assert answer.status == 200
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate()
    assert process.returncode == 0 and "2 records" in errors, errors


def test_lg_2_it_can_be_stopped_while_it_waits(collecting: Collecting) -> None:
    process = collecting.start("--syslog-tcp", "127.0.0.1:0", str(collecting.logs))
    assert process.stderr is not None
    while ERROR not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == 0


def test_ux_4_once_does_not_wait(collecting: Collecting) -> None:
    assert "no broker could be reached" in collecting.once(str(collecting.logs), code=1)
