"""Faults in a cluster of processes, and the causes that its brokers report (IN-1, IN-2)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from barnabas.client import NewTopic, SyncAdmin, SyncConsumer, SyncProducer
from barnabas.clock import SystemClock
from barnabas.errors import BarnabasError
from barnabas.events import Event
from tests.kit.processes.cluster_process import ClusterProcess, cluster_process
from tests.kit.processes.command_line import COMMAND
from tests.kit.processes.reported_events import paused, the_event
from tests.kit.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

LAG_MS = 1_500
OPTIONS = (
    f"replica.lag.time.max.ms={LAG_MS}",
    "zookeeper.session.timeout.ms=60000",  # a paused broker must not fail
    "group.min.session.timeout.ms=500",
    "auto.leader.rebalance.enable=false",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms=200",
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    with cluster_process(tmp_path_factory.mktemp("events"), 3, *OPTIONS) as cluster:
        yield cluster


@pytest.fixture
def admin(cluster: ClusterProcess) -> Iterator[SyncAdmin]:
    with SyncAdmin(cluster.bootstrap_servers) as admin:
        yield admin


def test_an_isr_shrinks_and_grows(cluster: ClusterProcess, admin: SyncAdmin) -> None:
    """IN-1: the leader says which replica, how far behind, and since when."""
    admin.create_topics(NewTopic("shrinking", assignment={0: [1, 2]}))

    def is_shrink(event: Event) -> bool:
        return event.kind == "isr-shrink" and event.topic == "shrinking" and event.broker == 2

    with SyncProducer(
        [cluster.brokers[1].bootstrap_servers], acks="all", enable_idempotence=False
    ) as producer:
        producer.send("shrinking", b"both have it").result(60)
        others = [cluster.brokers[1].bootstrap_servers, cluster.brokers[3].bootstrap_servers]
        paused_ms = SystemClock().wall_ms()
        with paused(cluster.brokers[2]), SyncAdmin(others, request_timeout_ms=2_000) as watching:
            late = producer.send("shrinking", b"late")
            shrink = the_event(watching, lambda event: is_shrink(event) and event.at_ms > paused_ms)
            late.result(60)
    assert shrink.cause.startswith("broker 2 is 1 record behind and last had all records ")
    assert shrink.cause.endswith(f"ms ago (replica.lag.time.max.ms is {LAG_MS})")
    assert "ISR updated to 1 " in shrink.text
    assert (shrink.partition, shrink.is_harmless) == (0, True)
    assert "check whether broker 2 is running" in shrink.advice
    grown = the_event(
        admin, lambda event: event.kind == "isr-expand" and event.topic == "shrinking"
    )
    assert grown.cause == "broker 2 has caught up"
    assert shrink.text in cluster.brokers[1].log.read_text()


def test_the_command_shows_the_cause(cluster: ClusterProcess, admin: SyncAdmin) -> None:
    """IN-2: `barnabas events`, of one topic and kind, as JSON and as text."""
    admin.create_topics(NewTopic("shown", assignment={0: [3, 2, 1]}))
    wanted = the_event(admin, lambda event: event.kind == "leader" and event.topic == "shown")
    assert wanted.cause.startswith("controller ")
    words = [COMMAND, "events", "--bootstrap-server", cluster.bootstrap_servers]
    select = ["--topic", "shown", "--kind", "leader", "--since", "1h"]
    printed = subprocess.run(
        [*words, *select, "--json"], capture_output=True, text=True, check=True
    ).stdout
    [values] = map(json.loads, printed.splitlines())
    assert (values["reported_by"], values["text"], values["cause"]) == (
        *(3, wanted.text, wanted.cause),
    )
    shown = subprocess.run([*words, *select], capture_output=True, text=True, check=True).stdout
    assert f"broker 3 leader shown-0: {wanted.text}\n    cause: {wanted.cause}\n" in shown


def test_a_member_that_is_killed_times_out(
    cluster: ClusterProcess, admin: SyncAdmin, tmp_path: Path
) -> None:
    """IN-1: a generation says who joined, who timed out, and what to do."""
    admin.create_topics(NewTopic("grouped", 2, 3))
    words = [COMMAND, "verifiable-consumer", "--bootstrap-server", cluster.bootstrap_servers]
    words += ["--topic", "grouped", "--group-id", "dying", "--session-timeout", "4000"]
    with (tmp_path / "out").open("w") as out, subprocess.Popen(words, stdout=out) as member:
        try:
            joined = the_event(admin, lambda event: event.group == "dying")
        finally:
            member.kill()
    assert joined.kind == "group-generation"
    assert joined.cause.endswith(" joined")
    died = the_event(admin, lambda event: event.group == "dying" and "timed out" in event.cause)
    assert died.cause.endswith(" session timed out")
    assert "2 partitions unassigned" in died.text
    assert died.is_harmless is False
    assert "process is running" in died.advice


def test_members_that_leave_and_members_that_are_removed(
    cluster: ClusterProcess, admin: SyncAdmin
) -> None:
    """IN-1: closing the last consumer is harmless; removing it is not."""
    admin.create_topics(NewTopic("left", 1, 3))

    def is_empty(event: Event) -> bool:
        return event.group == "leaving" and ", empty: " in event.text

    servers = cluster.bootstrap_servers
    with SyncConsumer(servers, group_id="leaving") as consumer:
        consumer.subscribe(["left"])
        wait_until(lambda: consumer.poll(100) or consumer.assignment())
        [member] = admin.describe_groups(["leaving"])["leaving"].members
        admin.remove_members("leaving", member_ids=[member.member_id])
        removed = the_event(admin, is_empty)
        assert removed.cause.endswith(" left (member was removed by an admin)")
        assert removed.is_harmless is False
        # The consumer notices that it was removed, and joins again.
        wait_until(lambda: consumer.poll(100) or rejoined(admin, member.member_id))
    closed = the_event(admin, lambda event: is_empty(event) and event.at_ms > removed.at_ms)
    assert closed.cause.endswith(" left (the consumer unsubscribed)")
    assert closed.is_harmless is True


def rejoined(admin: SyncAdmin, old_id: str) -> bool:
    members = admin.describe_groups(["leaving"])["leaving"].members
    return any(member.member_id != old_id and member.partitions for member in members)


def test_transactions_that_the_coordinator_aborts(
    cluster: ClusterProcess, admin: SyncAdmin
) -> None:
    """IN-1: the timeout, and a producer that another one with its id replaces."""
    admin.create_topics(NewTopic("written", 1, 3))
    servers = cluster.bootstrap_servers
    slow = SyncProducer(servers, transactional_id="slow", transaction_timeout_ms=2_000)
    slow.init_transactions()
    slow.begin_transaction()
    slow.send("written", b"never committed").result(60)

    def is_aborted(name: str) -> Callable[[Event], bool]:
        return lambda event: event.kind == "transaction-aborted" and f"{name!r}" in event.text

    late = the_event(admin, is_aborted("slow"))
    assert late.cause == "its timeout is 2000 ms"
    assert late.is_harmless is False
    assert "raise transaction.timeout.ms" in late.advice
    first = SyncProducer(servers, transactional_id="fenced")
    first.init_transactions()
    first.begin_transaction()
    first.send("written", b"never committed").result(60)
    with SyncProducer(servers, transactional_id="fenced") as second:
        second.init_transactions()
        fenced = the_event(admin, is_aborted("fenced"))
    assert fenced.cause == "a new producer took its place"
    for producer in (slow, first):
        with suppress(BarnabasError):
            producer.close()
