"""Failures, elections and moves in a cluster of processes, and the causes reported (IN-1, IN-2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas.client import NewTopic, SyncAdmin
from barnabas.client.admin.event_admin import merged
from barnabas.events import Event
from barnabas.types import TopicPartition
from tests.kit.processes.cluster_process import ClusterProcess, cluster_process
from tests.kit.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

WITHIN_S = 180.0
OPTIONS = ("auto.leader.rebalance.enable=false", "zookeeper.session.timeout.ms=6000")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ClusterProcess]:
    with cluster_process(tmp_path, 3, *OPTIONS) as cluster:
        yield cluster


def the_event(admin: SyncAdmin, is_meant: Callable[[Event], bool]) -> Event:
    """Wait for an event, and return the first one of this kind."""
    found: list[Event] = []

    def is_there() -> bool:
        found[:] = [event for _, event in merged(admin.events()) if is_meant(event)]
        return bool(found)

    wait_until(is_there, WITHIN_S)
    return found[0]


def about(kind: str, topic: str) -> Callable[[Event], bool]:
    return lambda event: event.kind == kind and event.topic == topic


def of_broker(kind: str, broker_id: int) -> Callable[[Event], bool]:
    return lambda event: event.kind == kind and event.broker == broker_id


def test_a_killed_leader_and_its_return(cluster: ClusterProcess) -> None:
    """IN-1: an election says that its leader failed; another one, that somebody asked for it."""
    with SyncAdmin(cluster.bootstrap_servers, request_timeout_ms=3_000) as admin:
        controller = admin.describe_cluster().controller_id
        victim, other = [each for each in (1, 2, 3) if each != controller]
        elected = the_event(admin, of_broker("controller-elected", controller))
        assert elected.cause.startswith("there was no controller")
        admin.create_topics(NewTopic("led", assignment={0: [victim, other]}))
        assert the_event(admin, about("topic-created", "led")).text.endswith("led with 1 partition")
        cluster.brokers[victim].kill()
        election = the_event(admin, about("election", "led"))
        failed = the_event(admin, of_broker("broker-failed", victim))
        assert election.cause == failed.cause == f"broker {victim} failed: its session ended"
        assert f"state LeaderAndIsr(leader={other}, " in election.text
        assert election.text in cluster.brokers[controller].log.read_text()
        assert failed.severity == "WARNING"

        cluster.brokers[victim].start()
        came = the_event(
            admin, lambda event: about("isr-expand", "led")(event) and event.broker == victim
        )
        assert came.cause == f"broker {victim} has caught up"
        name = TopicPartition("led", 0)
        assert admin.elect_leaders(0, [name]) == {name: None}
        asked = the_event(
            admin, lambda event: about("election", "led")(event) and event.broker == victim
        )
        assert asked.cause == "an administrator requested an election of preferred leaders"


def test_a_controlled_shutdown_a_move_and_a_deletion(cluster: ClusterProcess) -> None:
    """IN-1: each step of a reassignment, a broker that hands over, and topics that go."""
    with SyncAdmin(cluster.bootstrap_servers, request_timeout_ms=3_000) as admin:
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

        assert cluster.brokers[leaving].stop() == 0
        handed_over = the_event(admin, about("election", "moved"))
        assert handed_over.cause == f"controlled shutdown of broker {leaving}"
        gone = the_event(admin, of_broker("broker-failed", leaving))
        assert gone.cause == f"broker {leaving} has stopped after its controlled shutdown"
        assert gone.is_harmless is True

        admin.create_topics(NewTopic("going", assignment={0: [other]}))
        admin.delete_topics("going")
        assert the_event(admin, about("topic-deleted", "going")).cause.startswith("its deletion")
