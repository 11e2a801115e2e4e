"""CO-3, GC-2: members that are too slow, dead, or dead for a while, of each client and of ours.

Whatever becomes of a member, the others go on with its partitions, every record is read, and one
that comes back is a member like any other.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

import barnabas
from barnabas.client import NewTopic, SyncAdmin
from barnabas.client.admin.group_admin import GroupDescription
from tests.kit.clients.group_member import HEARTBEAT_MS, SESSION_MS
from tests.kit.clients.mixed_group import GROUP, OPTIONS, TOPIC, Member, Stage, staged
from tests.kit.processes.broker_process import COMMAND, broker_process
from tests.kit.processes.command_line import with_settings
from tests.kit.waiting import wait_until

OURS = "barnabas"
WAIT_S = 120.0
PARTITIONS = 6
LATE_S = 30.0  # how much later than its time something may be seen, on a busy machine
EARLY_S = 4.0  # how long before its end a member may have been heard last

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


# ---- too slow ----


class Polled:
    """A confluent consumer that is asked for records only when the test does so."""

    def __init__(self, servers: str, name: str) -> None:
        self.problems: list[int] = []
        self.read: list[Message] = []
        config: dict[str, Any] = {
            "bootstrap.servers": servers,
            "group.id": "slow",
            "client.id": name,
            "session.timeout.ms": SESSION_MS,
            "max.poll.interval.ms": SESSION_MS,  # it may not be shorter than the session
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
        self.consumer = Consumer(config)
        self.consumer.subscribe(["slow"])

    def poll(self) -> None:
        message = self.consumer.poll(0.02)
        if message is None:
            return
        if message.error() is not None:
            self.problems.append(message.error().code())
            return
        self.read.append(message)
        self.consumer.commit(message, asynchronous=True)

    @property
    def owned(self) -> int:
        return len(self.consumer.assignment())


def shares(*members: Polled) -> list[int]:
    """Polls them all once; how many partitions each has then."""
    for member in members:
        member.poll()
    return [member.owned for member in members]


def described(servers: str, group: str) -> GroupDescription:
    with SyncAdmin(servers) as admin:
        return admin.describe_groups([group], include_events=True)[group]


def test_a_member_that_does_not_poll_in_time_leaves_and_comes_back() -> None:
    """max.poll.interval.ms: the client leaves by itself; its commits are refused until it is back,
    for what it has read may be somebody else's by now (CO-4)."""
    with barnabas.Broker(config={"group.initial.rebalance.delay.ms": "0"}) as broker:
        servers = broker.bootstrap_servers
        with SyncAdmin(servers) as admin:
            admin.create_topics([NewTopic("slow", PARTITIONS)])
        producer = Producer({"bootstrap.servers": servers, "log_level": 0})
        steady, slow = Polled(servers, "steady"), Polled(servers, "slow")
        wait_until(lambda: shares(steady, slow) == [3, 3], WAIT_S)
        for number in range(60):
            producer.produce("slow", b"%d" % number, partition=number % PARTITIONS)
        producer.flush(WAIT_S)
        wait_until(lambda: bool(shares(steady, slow)) and len(slow.read) >= 3, WAIT_S)

        stopped = time.monotonic()
        wait_until(lambda: shares(steady) == [PARTITIONS], SESSION_MS / 1000 + WAIT_S)
        took_s = time.monotonic() - stopped
        assert SESSION_MS / 1000 - EARLY_S < took_s < SESSION_MS / 1000 + LATE_S, took_s
        assert [member.client_id for member in described(servers, "slow").members] == ["steady"]
        with pytest.raises(KafkaException):
            slow.consumer.commit(slow.read[-1], asynchronous=False)
        for number in range(60, 120):
            producer.produce("slow", b"%d" % number, partition=number % PARTITIONS)
        producer.flush(WAIT_S)

        wait_until(lambda: shares(steady, slow) == [3, 3], WAIT_S)
        assert KafkaError._MAX_POLL_EXCEEDED in slow.problems
        wanted = {b"%d" % number for number in range(120)}

        def is_read() -> bool:
            shares(steady, slow)
            return {one.value() for one in steady.read + slow.read} == wanted

        wait_until(is_read, WAIT_S)
        events = described(servers, "slow").events
        assert any("slow" in event.story and "left" in event.story for event in events), events
        steady.consumer.close()
        slow.consumer.close()
        again = len(steady.read) + len(slow.read) - len(wanted)
        print(f"{len(wanted)} records read by a steady and a slow member, {again} of them again")


# ---- dead ----


def member_of(stage: Stage, client: str) -> Member:
    if client != OURS:
        return stage.member(client)
    settings = {
        "client.id": OURS,
        "session.timeout.ms": SESSION_MS,
        "heartbeat.interval.ms": HEARTBEAT_MS,
        "partition.assignment.strategy": "roundrobin,range",
    }
    command = [str(COMMAND), *with_settings(["consume", TOPIC]), "--group", GROUP]
    command.append("--from-beginning")
    for key, value in settings.items():
        command += ["--consumer-property", f"{key}={value}"]
    return stage.begin([*command, "--bootstrap-server", stage.servers], tells_values=True)


def stories(group: GroupDescription) -> str:
    return "\n".join(event.story for event in group.events)


def test_gc_2_ours_shares_a_group_with_others(tmp_path: Path) -> None:
    """It joins, leaves, comes back, is killed; so do they."""
    others = ("confluent", "kafka-python", "aiokafka")
    with (
        broker_process(tmp_path, *OPTIONS) as broker,
        staged(broker.bootstrap_servers, tmp_path) as stage,
    ):
        first = member_of(stage, OURS)
        stage.settles(OURS)
        for client in others:
            stage.member(client)
        group = stage.settles(OURS, *others)
        assert group.assignor == "range", "the only one that all four have"
        stage.progresses()

        first.leave()
        stage.settles(*others)
        second, third = member_of(stage, OURS), member_of(stage, OURS)
        stage.settles(OURS, OURS, *others)
        stage.progresses()
        second.kill()
        stage.settles(OURS, *others)
        broker.kill()
        broker.start()
        stage.settles(OURS, *others)
        stage.progresses()
        third.leave()
        stage.settles(*others)
        sent, read = stage.end()
    print(f"{sent} records read by a group of ours and three clients, {read - sent} of them again")


@pytest.mark.parametrize("client", ["kafka-python", "confluent", "aiokafka", OURS])
def test_co_3_a_killed_member_is_missed_when_its_session_ends(tmp_path: Path, client: str) -> None:
    """kill -9: not before, not much later, and the story says so."""
    with (
        broker_process(tmp_path, *OPTIONS) as broker,
        staged(broker.bootstrap_servers, tmp_path) as stage,
    ):
        stays = "confluent" if client != "confluent" else "kafka-python"
        member_of(stage, stays)
        dies = member_of(stage, client)
        stage.settles(stays, client)
        stage.progresses()
        dies.kill()
        killed = time.monotonic()
        group = stage.settles(stays)
        took_s = time.monotonic() - killed
        longest_s = SESSION_MS / 1000 + LATE_S
        assert SESSION_MS / 1000 - EARLY_S < took_s < longest_s, took_s
        assert "session timed out" in stories(group)
        stage.end()
    print(f"{took_s * 1000:.0f} ms until a killed {client} was missed, of {SESSION_MS}")


@pytest.mark.parametrize("client", ["kafka-python", "confluent", "aiokafka", OURS])
def test_co_3_a_member_that_was_away_comes_back(tmp_path: Path, client: str) -> None:
    """Stopped for longer than its session, and continued: its id is unknown by then."""
    with (
        broker_process(tmp_path, *OPTIONS) as broker,
        staged(broker.bootstrap_servers, tmp_path) as stage,
    ):
        stays = "confluent" if client != "confluent" else "kafka-python"
        member_of(stage, stays)
        away = member_of(stage, client)
        stage.settles(stays, client)
        stage.progresses()
        away.process.send_signal(signal.SIGSTOP)
        try:
            stage.settles(stays)
            stage.progresses()
        finally:
            away.process.send_signal(signal.SIGCONT)
        stage.settles(stays, client)
        sent, read = stage.end()
    print(f"{sent} records read while {client} was away and back, {read - sent} of them again")
