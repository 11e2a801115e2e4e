"""BT-1: with a journal, `barnabas track serve` answers without brokers, and each event that was
answered with 200 is in the topic exactly once, whoever is killed."""

from __future__ import annotations

import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.client import SyncAdmin, SyncConsumer, TopicPartition
from barnabas.client.admin.configs import TOPIC, ConfigResource
from barnabas_track.journal_sender import POSITIONS_TOPIC
from tests.kit.processes.broker_process import BrokerProcess, broker_process
from tests.kit.processes.command_line import COMMAND, with_settings
from tests.kit.processes.track_server import Senders, Tracking, await_more, event
from tests.kit.processes.web_console import PATIENCE_S
from tests.kit.waiting import wait_until


class JournalTracking(Tracking):
    """A running server with a journal."""

    def __init__(self, servers: str, directory: Path) -> None:
        super().__init__(servers)
        self.options += ["--dir", str(directory)]


def committed_ids(servers: str) -> Counter[str]:
    place = TopicPartition("events", 0)
    found: Counter[str] = Counter()
    with SyncConsumer(servers, isolation_level="read_committed") as consumer:
        consumer.assign([place])
        consumer.seek(place, 0)
        while consumer.position(place) < consumer.end_offsets([place])[place]:
            for record in consumer.poll(1_000):
                found[(dict(record.headers)["id"] or b"").decode()] += 1
    return found


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    directory = tmp_path / "broker"
    directory.mkdir()
    with broker_process(directory) as running:
        yield running


@pytest.fixture
def server(broker: BrokerProcess, tmp_path: Path) -> Iterator[JournalTracking]:
    running = JournalTracking(broker.bootstrap_servers, tmp_path / "journal")
    running.start()
    yield running
    running.kill()


def test_events_are_answered_without_brokers_and_sent_later(
    server: JournalTracking, broker: BrokerProcess
) -> None:
    assert server.send(event("before-the-kill")).status == 200
    broker.kill()
    server.kill()
    server.start()
    answer = server.send(event("without-broker"), event("before-the-kill"))
    assert (answer.status, answer.json["repeated"]) == (200, 1)
    broker.start()
    expected = Counter(["before-the-kill", "without-broker"])
    wait_until(lambda: committed_ids(broker.bootstrap_servers) == expected)


def test_a_stop_sends_what_the_journal_contains(
    server: JournalTracking, broker: BrokerProcess
) -> None:
    names = [f"stop-event-{each}" for each in range(100)]
    assert server.send(*map(event, names)).status == 200
    server.process.send_signal(signal.SIGTERM)
    _, errors = server.process.communicate(timeout=PATIENCE_S)
    assert (server.process.returncode, errors) == (0, "")
    assert committed_ids(broker.bootstrap_servers) == Counter(names)


def test_a_second_server_on_the_directory_is_refused(
    server: JournalTracking, broker: BrokerProcess
) -> None:
    line = ["track", "serve", "--port", "0", *server.options]
    second = subprocess.run(
        [COMMAND, *with_settings(line), "--bootstrap-server", broker.bootstrap_servers],
        capture_output=True,
        text=True,
    )
    assert second.returncode == 1
    assert "another process uses the journal" in second.stderr


def test_ready_says_why_the_brokers_refuse_the_events(
    server: JournalTracking, broker: BrokerProcess
) -> None:
    """BT-1: events that no try will send are not only a line in the log."""
    topic = ConfigResource(TOPIC, "events")
    with SyncAdmin(broker.bootstrap_servers) as admin:
        assert server.send(event("small-event")).status == 200
        expected = Counter(["small-event"])
        wait_until(lambda: committed_ids(broker.bootstrap_servers) == expected)
        admin.alter_configs(topic, {"max.message.bytes": 300})
        large = event("large-event", campaign="a" * 900)
        assert server.send(large).status == 200
        wait_until(lambda: server.ask("/readyz").status == 503)
        # It stays so while the sender connects again and again.
        asked = [server.ask("/readyz") for _ in range(1_000)]
        assert {each.status for each in asked} == {503}
        assert b"the brokers refuse the events of the journal: " in asked[-1].body
        assert server.send(event("later-event")).status == 200
        admin.alter_configs(topic, {"max.message.bytes": 100_000})
    wait_until(lambda: server.ask("/readyz").status == 200)
    expected = Counter(["small-event", "large-event", "later-event"])
    assert committed_ids(broker.bootstrap_servers) == expected


@pytest.mark.parametrize("is_running", [True, False])
def test_a_lost_position_is_reported_and_nothing_is_sent_twice(
    server: JournalTracking, broker: BrokerProcess, is_running: bool
) -> None:
    """BT-1: an administrator may delete the topic of positions."""
    names = [f"early-event-{each}" for each in range(20)]
    assert all(server.send(event(each)).status == 200 for each in names)
    hint = Path(server.options[-1]) / "sent"
    wait_until(lambda: hint.exists() and int(hint.read_text()) == len(names))
    if not is_running:
        server.kill()
    with SyncAdmin(broker.bootstrap_servers) as admin:
        admin.delete_topics([POSITIONS_TOPIC])
        if not is_running:
            server.start()
        assert server.send(event("late-event")).status == 200
        expected = Counter([*names, "late-event"])
        wait_until(lambda: committed_ids(broker.bootstrap_servers) == expected)
        [policy] = admin.describe_configs(
            ConfigResource(TOPIC, POSITIONS_TOPIC), ["cleanup.policy"]
        )
    assert policy.value == "compact"
    server.process.terminate()
    _, errors = server.process.communicate(timeout=PATIENCE_S)
    assert "no longer has the position of the journal" in errors
    assert server.process.returncode == 0
    assert committed_ids(broker.bootstrap_servers) == expected


@pytest.mark.slow
def test_each_event_is_committed_once_while_server_and_broker_are_killed(
    server: JournalTracking, broker: BrokerProcess
) -> None:
    senders = Senders(server)
    for _ in range(3):
        await_more(senders)
        server.kill()
        server.start()
        await_more(senders)
        broker.kill()
        await_more(senders)  # the journal stores them
        server.kill()
        broker.start()
        server.start()
    await_more(senders)
    senders.end()
    expected = Counter(senders.stored)
    wait_until(lambda: committed_ids(broker.bootstrap_servers) == expected)
