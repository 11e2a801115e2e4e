"""Failures, elections and moves in a cluster of processes, and the causes reported (IN-1, IN-2)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient  # type: ignore[import-untyped]

from barnabas.client import NewTopic, SyncAdmin, SyncProducer
from barnabas.events import Event
from barnabas.types import TopicPartition
from tests.kit.processes.cluster_process import ClusterProcess, cluster_process
from tests.kit.processes.reported_events import paused, the_event

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

OPTIONS = ("auto.leader.rebalance.enable=false", "zookeeper.session.timeout.ms=12000")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ClusterProcess]:
    with cluster_process(tmp_path, 3, *OPTIONS) as cluster:
        yield cluster


def about(kind: str, topic: str) -> Callable[[Event], bool]:
    return lambda event: event.kind == kind and event.topic == topic


def takes(kind: str, topic: str, broker_id: int, since_ms: int = 0) -> Callable[[Event], bool]:
    """A broker's own event about its role; the clocks of brokers on one machine are the same."""
    return lambda event: (
        about(kind, topic)(event) and event.broker == broker_id and event.at_ms >= since_ms
    )


def of_broker(kind: str, broker_id: int) -> Callable[[Event], bool]:
    return lambda event: event.kind == kind and event.broker == broker_id


def test_a_killed_leader_and_its_return(cluster: ClusterProcess) -> None:
    """IN-1: an election says that its leader failed; another one, that somebody asked for it."""
    with SyncAdmin(cluster.bootstrap_servers) as admin:
        controller = admin.describe_cluster().controller_id
        victim, other = [each for each in (1, 2, 3) if each != controller]
        elected = the_event(admin, of_broker("controller-elected", controller))
        assert elected.cause == "this is the first controller of the cluster"
        assert elected.text in cluster.brokers[controller].log.read_text()
        assert elected.text.endswith(f": {elected.cause}")
        admin.create_topics(NewTopic("led", assignment={0: [victim, other]}))
        created = the_event(admin, about("topic-created", "led"))
        assert created.text.endswith(f"led with 1 partition: {created.cause}")
        assert created.cause.startswith("CreateTopics by principal User:ANONYMOUS, client id '")
        cluster.brokers[victim].kill()
        election = the_event(admin, about("election", "led"))
        failed = the_event(admin, of_broker("broker-failed", victim))
        assert election.cause == failed.cause == f"broker {victim} failed: its session ended"
        assert f"state LeaderAndIsr(leader={other}, " in election.text
        assert election.text in cluster.brokers[controller].log.read_text()
        assert failed.severity == "WARNING"
        leads = the_event(admin, takes("leader", "led", other))
        assert leads.cause == f"controller {controller} decided it in epoch 1: {election.cause}"

        cluster.brokers[victim].start()
        came = the_event(
            admin, lambda event: about("isr-expand", "led")(event) and event.broker == victim
        )
        assert came.cause == f"broker {victim} has caught up"
        back = the_event(
            admin,
            lambda event: (
                of_broker("broker-registered", victim)(event) and event.at_ms > failed.at_ms
            ),
        )
        assert (back.cause, back.is_harmless) == ("it started or reconnected", True)
        name = TopicPartition("led", 0)
        assert admin.elect_leaders(0, [name]) == {name: None}
        asked = the_event(
            admin, lambda event: about("election", "led")(event) and event.broker == victim
        )
        assert asked.cause == "an administrator requested an election of preferred leaders"
        leads = the_event(admin, takes("leader", "led", victim, asked.at_ms))
        assert leads.cause.endswith(f" in epoch 1: {asked.cause}")


def test_a_controlled_shutdown_a_move_and_a_deletion(cluster: ClusterProcess) -> None:
    """IN-1: each step of a reassignment, a broker that hands over, and topics that go."""
    with SyncAdmin(cluster.bootstrap_servers) as admin:
        controller = admin.describe_cluster().controller_id
        leaving, other = [each for each in (1, 2, 3) if each != controller]
        admin.create_topics(NewTopic("moved", assignment={0: [leaving, controller]}))
        name = TopicPartition("moved", 0)
        assert admin.alter_partition_reassignments({name: [leaving, other]}) == {name: None}
        ended = the_event(
            admin,
            lambda event: about("reassignment", "moved")(event) and "are in sync" in event.cause,
        )
        assert ended.text.endswith(f"being reassigned to {leaving},{other}")
        begun = the_event(admin, about("reassignment", "moved"))
        assert begun.cause == "an administrator requested a reassignment"
        assert f"adding replicas [{other}]" in begun.text
        follows = the_event(admin, takes("follower", "moved", other))
        assert follows.cause == f"controller {controller} decided it in epoch 1: {begun.cause}"

        assert cluster.brokers[leaving].stop() == 0
        handed_over = the_event(admin, about("election", "moved"))
        assert handed_over.cause == f"controlled shutdown of broker {leaving}"
        gone = the_event(admin, of_broker("broker-failed", leaving))
        assert gone.cause == f"broker {leaving} has stopped after its controlled shutdown"
        assert gone.is_harmless is True

        admin.create_topics(NewTopic("going", assignment={0: [other]}))
        admin.delete_topics("going")
        deleted = the_event(admin, about("topic-deleted", "going"))
        assert deleted.cause.startswith("DeleteTopics by principal User:ANONYMOUS, client id '")


def test_a_leader_that_comes_back_truncates(cluster: ClusterProcess) -> None:
    """IN-1: it had records that no other replica had; nobody had been told that they are safe."""
    with SyncAdmin(cluster.bootstrap_servers) as admin:
        controller = admin.describe_cluster().controller_id
        leader, follower = [each for each in (1, 2, 3) if each != controller]
        admin.create_topics(NewTopic("cut", assignment={0: [leader, follower]}))
        first = cluster.brokers[leader].bootstrap_servers
        with SyncProducer(first, acks="all", enable_idempotence=False) as producer:
            producer.send("cut", b"everybody has it").result(60)
        with SyncProducer(first, acks=1, enable_idempotence=False) as producer:
            producer.partitions_for("cut")
            with paused(cluster.brokers[follower]):
                # This may answer a fetch that the follower sent before; the next one cannot.
                producer.send("cut", b"the follower may have it").result(60)
                producer.send("cut", b"only the leader has it").result(60)
                cluster.brokers[leader].kill()
        the_event(admin, about("election", "cut"))
        cluster.brokers[leader].start()
        cut = the_event(admin, about("truncation", "cut"))
    assert re.match("Truncating cut-0 to offset [12] from 3: its leader in epoch ", cut.text)
    assert cut.cause.endswith(" has a different log from there")
    assert (cut.broker, cut.is_harmless) == (leader, True)


def test_in_1_a_controller_that_is_replaced(cluster: ClusterProcess) -> None:
    """IN-1: its session ended, or somebody deleted its node; why a session ended is not guessed."""
    with SyncAdmin(cluster.bootstrap_servers) as admin:
        first = admin.describe_cluster().controller_id
        store = KazooClient(hosts=cluster.zookeeper.connect)
        store.start()
        try:
            store.delete("/controller")
        finally:
            store.stop()
            store.close()

        def is_second(event: Event) -> bool:
            return event.kind == "controller-elected" and "epoch 2" in event.text

        second = the_event(admin, is_second)
        still = "is still registered: it resigned, or a tool deleted /controller"
        own = f"broker {first}, the previous controller, resigned: "
        assert second.cause == f"broker {first}, the previous controller, {still}" or (
            second.broker == first and second.cause.startswith(own)
        )
        assert second.text in cluster.brokers[second.broker].log.read_text()
        cluster.brokers[second.broker].kill()
        left = [each for number, each in cluster.brokers.items() if number != second.broker]
    with SyncAdmin([each.bootstrap_servers for each in left]) as admin:
        third = the_event(
            admin, lambda event: event.kind == "controller-elected" and "epoch 3" in event.text
        )
        assert third.cause == (
            f"the session of broker {second.broker}, the previous controller, ended: it stopped, "
            "failed or lost its connection to the metadata store"
        )
        assert third.text in cluster.brokers[third.broker].log.read_text()
