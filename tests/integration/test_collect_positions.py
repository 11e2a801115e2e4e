"""What `barnabas collect` says of its positions, and that it keeps them when it is killed."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.client import NewTopic, SyncAdmin, SyncConsumer, TopicPartition
from barnabas_collector.positions import POSITIONS_TOPIC
from tests.integration.collect_processes import Collecting, collecting_in
from tests.kit.processes.command_line import COMMAND
from tests.kit.waiting import wait_until

PLACE = TopicPartition("lines", 0)


@pytest.fixture
def collecting(tmp_path: Path) -> Iterator[Collecting]:
    with collecting_in(tmp_path) as running:
        yield running


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_a_topic_that_would_lose_the_positions_is_refused(
    collecting: Collecting, policy: str
) -> None:
    servers = collecting.broker.bootstrap_servers
    with SyncAdmin(servers) as admin:
        new = NewTopic(POSITIONS_TOPIC, 1, configs={"cleanup.policy": policy})
        admin.create_topics([new])
    log = collecting.logs / "app.log"
    log.write_bytes(b"one\n")
    refusal = collecting.once(str(log), code=1)
    assert f"{POSITIONS_TOPIC} has cleanup.policy={policy}" in refusal
    command = refusal.strip().partition("to change it, run barnabas ")[2].split()
    subprocess.run([COMMAND, *command, "--bootstrap-server", servers], check=True)
    collecting.once(str(log))
    assert collecting.values() == [b"one"]
    collecting.once(str(log))
    assert collecting.values() == [b"one"]


def test_the_default_name_is_shown_as_what_may_change(collecting: Collecting) -> None:
    log = collecting.logs / "app.log"
    log.write_bytes(b"one\n")
    command = [COMMAND, "collect", str(log), "--topic", "lines", "--once"]
    command += ["--bootstrap-server", collecting.broker.bootstrap_servers]
    ended = subprocess.run(command, check=True, stderr=subprocess.PIPE, text=True)
    assert f"under this machine's name, {socket.gethostname()}" in ended.stderr
    assert "give --name" in ended.stderr
    assert "give --name" not in collecting.once(str(log))


@pytest.mark.slow
def test_killed_between_sending_and_committing(collecting: Collecting) -> None:
    """Logs that begin alike, one behind a hole: none of their lines is lost or sent twice."""
    top = b"".join(b"step %d of %099d\n" % (number, 0) for number in range(15_000))
    for number in range(3):
        (collecting.logs / f"{number}.log").write_bytes(top + b"end of %d\n" % number)
    with (collecting.logs / "3.log").open("wb") as hole:
        hole.seek(3_000_000)
        hole.write(b"behind\n" * 100_000)
    collector = collecting.start(str(collecting.logs))
    wait_until(lambda: is_stopped_in_a_transaction(collecting, collector))
    collector.kill()
    collector.communicate()
    collecting.once(str(collecting.logs))
    values = collecting.values()
    assert len(values) == 3 * 15_001 + 100_000
    assert {b"end of %d" % number for number in range(3)} < set(values)
    assert values.count(b"behind") == 100_000


def is_stopped_in_a_transaction(collecting: Collecting, collector: subprocess.Popen[str]) -> bool:
    collector.send_signal(signal.SIGSTOP)
    servers = collecting.broker.bootstrap_servers
    ends = []
    for level in ("read_committed", "read_uncommitted"):
        with SyncConsumer(servers, isolation_level=level) as consumer:
            ends.append(consumer.end_offsets([PLACE])[PLACE])
    if ends[0] < ends[1]:
        return True
    collector.send_signal(signal.SIGCONT)
    return False
