"""Three processes and a ZooKeeper in trouble: paused, killed two at a time, killed as controller,
killed as coordinator. Nothing that was acknowledged is lost, and nothing is half done."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from barnabas.client import SyncAdmin
from barnabas.client.offsets import LATEST
from barnabas.errors import NotEnoughReplicas
from barnabas.protocol.api import FIND_COORDINATOR, METADATA, PRODUCE
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.types import TopicPartition
from tests.kit.clients import confluent_client
from tests.kit.clients.clients import Sent
from tests.kit.clients.committing import Committing, commit
from tests.kit.clients.mixed_group import GROUP, TOPIC, Stage, staged
from tests.kit.clients.mixed_group import PARTITIONS as GROUP_PARTITIONS
from tests.kit.processes.broker_process import BrokerProcess
from tests.kit.processes.cluster_load import (
    ASKED,
    BURST,
    LONGEST_LOSS_SECONDS,
    acknowledge_more,
    check_everything_is_there,
    check_replicas_are_equal,
    committed_values,
    controller_of,
    create_led_by,
    impatient_sender,
    leader_of,
    produce,
    produce_request,
    wait_for_full_isr,
)
from tests.kit.processes.cluster_process import (
    ClusterProcess,
    cluster_process,
    wait_for_equal_files,
)
from tests.kit.processes.senders import PARTITIONS, ConfluentSender, sending
from tests.kit.raw_client import RawClient, once_found
from tests.kit.waiting import wait_until

# Each waits for one loss at a time, and for the work before it and after.
pytestmark = [
    pytest.mark.secured,
    pytest.mark.slow,
    pytest.mark.foreign,
    pytest.mark.timeout(5 * LONGEST_LOSS_SECONDS),
]

OPTIONS = (
    "min.insync.replicas=2",
    "replica.lag.time.max.ms=3000",
    "default.replication.factor=3",
)
QUIET_SECONDS = 1.0
DEADLINE_S = 90.0
TRANSACTIONAL_ID, MOVED = "mover", "moved"


# ---- one is paused ----


def test_a_leader_that_was_paused_acknowledges_nothing_that_gets_lost(tmp_path: Path) -> None:
    """RE-5, RE-10, DL-2: what waited in its sockets is younger than the election of another."""
    with (
        cluster_process(tmp_path, 3, *OPTIONS) as cluster,
        sending(impatient_sender, cluster.bootstrap_servers, 3) as sender,
    ):
        servers = cluster.bootstrap_servers
        acknowledge_more([sender])
        leader = leader_of(servers, sender.topic)
        broker = cluster.brokers[leader]
        others = ",".join(
            each.bootstrap_servers for each in cluster.brokers.values() if each is not broker
        )
        create_led_by(leader, cluster)
        sender.allow(BURST)
        with RawClient(broker.bootstrap_servers, DEADLINE_S) as client:
            with paused(broker):
                late = client.send(PRODUCE, 9, produce_request(b"late"))
                acknowledge_more([sender])
                wait_until(lambda: leader_of(others, ASKED) != leader)
            got, answer = client.receive(PRODUCE, 9)
        assert got == late
        assert answer.responses[0].partition_responses[0].error_code != 0
        acknowledge_more([sender])
        sender.stop()
        check_everything_is_there(sender, servers)
        confluent_client.produce(servers, ASKED, [Sent(0, None, b"last")])
        [stored] = confluent_client.consume(servers, ASKED, 1, 1)
        assert (stored.offset, stored.value) == (0, b"last")
        check_replicas_are_equal(cluster, sender)
        wait_for_equal_files(cluster, ASKED, 0)


def test_a_broker_that_begins_waits_for_its_first_word(tmp_path: Path) -> None:
    """RE-13: before it has its topics from a controller it calls none unknown, and makes none;
    clients would give the topic up, or wait for a coordinator elsewhere."""
    with cluster_process(tmp_path, 3, *OPTIONS) as cluster:
        controller = controller_of(cluster)
        create_led_by(controller, cluster)
        find = FindCoordinatorRequest(key_type=0, coordinator_keys=["group"])
        broker = next(each for key, each in cluster.brokers.items() if key != controller)
        with connected(broker) as client:
            # Makes the topic.
            once_found(lambda: client.call(FIND_COORDINATOR, 4, find).coordinators[0])
        broker.stop()
        starting = threading.Thread(target=broker.start, daemon=True)
        metadata = MetadataRequest(
            topics=[MetadataRequestTopic(name=ASKED)], allow_auto_topic_creation=False
        )
        with paused(cluster.brokers[controller]):
            starting.start()
            with connected(broker) as one, connected(broker) as other:
                one.send(METADATA, 9, metadata)
                other.send(FIND_COORDINATOR, 4, find)
                _, known = one.receive(METADATA, 9)
                _, found = other.receive(FIND_COORDINATOR, 4)
        starting.join(DEADLINE_S)
        assert [topic.error_code for topic in known.topics] == [0]
        assert [each.error_code for each in found.coordinators] == [0]
        assert " ERROR " not in broker.log.read_text()


# ---- two are killed ----


def test_without_enough_replicas_writes_wait_and_come_back_with_the_first(tmp_path: Path) -> None:
    """RE-9, RE-10, DL-2: of three with min.insync.replicas=2, two die in the same moment."""
    with (
        cluster_process(tmp_path, 3, *OPTIONS) as cluster,
        sending(ConfluentSender, cluster.bootstrap_servers, 3) as sender,
    ):
        servers = cluster.bootstrap_servers
        acknowledge_more([sender])
        leader = leader_of(servers, sender.topic)
        create_led_by(leader, cluster)
        survivor_id, other = (key for key in cluster.brokers if key != leader)
        survivor = cluster.brokers[survivor_id]
        sender.allow(BURST)
        kill_at_once(cluster.brokers[leader], cluster.brokers[other])
        with RawClient(survivor.bootstrap_servers, DEADLINE_S) as client:
            wait_until(lambda: produce(client, b"refused") == NotEnoughReplicas.code)
            before = sender.acknowledged_count()
            time.sleep(QUIET_SECONDS)
            assert sender.acknowledged_count() == before
            assert len(confluent_client.consume(survivor.bootstrap_servers, sender.topic, 1, 1))
            cluster.brokers[leader].start()
            acknowledge_more([sender])
            wait_until(lambda: produce(client, b"taken") == 0)
        cluster.brokers[other].start()
        wait_for_full_isr(servers, sender.topic)
        sender.stop()
        check_everything_is_there(sender, servers)
        # What was answered while the other two were not missed yet may be there as well.
        assert committed_values(servers, ASKED, 1)[-1] == b"taken"
        check_replicas_are_equal(cluster, sender)


# ---- the controller and the coordinators are killed ----


def test_a_group_outlives_its_coordinator_and_the_controller(tmp_path: Path) -> None:
    """GC-2, CO-3, ZK-3, DL-3: two members of confluent-kafka read and commit all the time."""
    with (
        cluster_process(tmp_path, 3, *OPTIONS) as cluster,
        staged(cluster.bootstrap_servers, tmp_path) as stage,
        SyncAdmin(cluster.bootstrap_servers, request_timeout_ms=3_000) as admin,
    ):
        stage.member("confluent")
        stage.member("confluent")
        stage.settles("confluent", "confluent")
        stage.progresses()
        for victim_of in (coordinator_of_group, controller_of):
            before = committed_offsets(admin)
            victim = cluster.brokers[victim_of(cluster)]
            victim.kill()
            stage.progresses()
            stage.settles("confluent", "confluent")
            after = committed_offsets(admin)
            assert all(after[partition] >= offset for partition, offset in before.items())
            victim.start()
            wait_for_full_isr(cluster.bootstrap_servers, TOPIC)
        stage.stopping.set()
        sent, read = end_when_all_is_committed(stage, admin)
    print(f"{sent} records read by a group that lost its coordinator, {read - sent} of them again")


def test_transactions_are_all_or_nothing_whatever_is_killed(tmp_path: Path) -> None:
    """PR-7, DL-1: the coordinator, the leader of a partition, each before and in the commit."""
    with cluster_process(tmp_path, 3, *OPTIONS) as cluster:
        servers = cluster.bootstrap_servers
        confluent_client.create_topic(servers, MOVED, PARTITIONS, {}, replicas=3)
        producer = transactional_producer(servers)
        outcomes: dict[int, bool] = {}
        for victim_of in (coordinator_of_transactions, leader_of_moved):
            for is_committing in (False, True):
                victim = cluster.brokers[victim_of(cluster)]
                begin(producer, len(outcomes))
                committing = Committing(producer) if is_committing else None
                victim.kill()
                committing = committing or Committing(producer)
                outcomes[len(outcomes)] = committing.outcome()
                begin(producer, len(outcomes))
                outcomes[len(outcomes)] = commit(producer)
                victim.start()
                wait_for_full_isr(servers, MOVED)
        assert all(list(outcomes.values())[1::2]), "undisturbed, or with one broker less"
        wait_until(lambda: last_stable_offsets(servers) == log_ends(servers))
        read = sorted(map(int, committed_values(servers, MOVED, PARTITIONS)))
    wanted = [
        number for number, is_there in outcomes.items() for _ in range(PARTITIONS) if is_there
    ]
    assert read == wanted
    print(f"{len(outcomes)} transactions, {sum(outcomes.values())} of them committed")


# ---- what the tests do and look at ----


@contextlib.contextmanager
def paused(broker: BrokerProcess) -> Iterator[None]:
    """SIGSTOP: it says nothing, and its connections stay."""
    assert broker.process is not None
    broker.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        broker.process.send_signal(signal.SIGCONT)


@contextlib.contextmanager
def connected(broker: BrokerProcess) -> Iterator[RawClient]:
    """As soon as it accepts."""
    found: list[RawClient] = []

    def accepts() -> bool:
        with contextlib.suppress(ConnectionRefusedError):
            found.append(RawClient(broker.bootstrap_servers, DEADLINE_S))
        return bool(found)

    wait_until(accepts)
    with found[0] as client:
        yield client


def kill_at_once(*brokers: BrokerProcess) -> None:
    for broker in brokers:
        assert broker.process is not None
        broker.process.kill()
    for broker in brokers:
        broker.kill()


def coordinator_of_group(cluster: ClusterProcess) -> int:
    with SyncAdmin(cluster.bootstrap_servers) as admin:
        return admin.describe_groups([GROUP])[GROUP].coordinator.node_id


def coordinator_of_transactions(cluster: ClusterProcess) -> int:
    with SyncAdmin(cluster.bootstrap_servers) as admin:
        described = admin.describe_transactions([TRANSACTIONAL_ID])
    return described[TRANSACTIONAL_ID].coordinator.node_id


def leader_of_moved(cluster: ClusterProcess) -> int:
    return leader_of(cluster.bootstrap_servers, MOVED)


def committed_offsets(admin: SyncAdmin) -> dict[TopicPartition, int]:
    return {name: each.offset for name, each in admin.list_group_offsets(GROUP).items()}


def end_when_all_is_committed(stage: Stage, admin: SyncAdmin) -> tuple[int, int]:
    """The group has committed the end of every partition, and no producer sends any more."""
    names = [TopicPartition(TOPIC, number) for number in range(GROUP_PARTITIONS)]

    def is_committed() -> bool:
        ends = admin.list_offsets(dict.fromkeys(names, LATEST))
        return committed_offsets(admin) == {name: ends[name].offset for name in names}

    wait_until(is_committed, LONGEST_LOSS_SECONDS)
    return stage.end()


def transactional_producer(servers: str) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "transactional.id": TRANSACTIONAL_ID,
            # Longer than a broker is away: that it ends in the middle of this is another matter.
            "transaction.timeout.ms": 60_000,
            "socket.timeout.ms": 20_000,
            "reconnect.backoff.max.ms": 200,
            "log_level": 0,
        }
    )
    producer.init_transactions(DEADLINE_S)
    return producer


def begin(producer: Producer, number: int) -> None:
    """A transaction with this number in each partition, which are all in the log."""
    producer.begin_transaction()
    for partition in range(PARTITIONS):
        producer.produce(MOVED, b"%d" % number, partition=partition)
    assert producer.flush(DEADLINE_S) == 0


def last_stable_offsets(servers: str) -> dict[TopicPartition, int]:
    return offsets_of_moved(servers, read_committed=True)


def log_ends(servers: str) -> dict[TopicPartition, int]:
    return offsets_of_moved(servers, read_committed=False)


def offsets_of_moved(servers: str, *, read_committed: bool) -> dict[TopicPartition, int]:
    names = [TopicPartition(MOVED, number) for number in range(PARTITIONS)]
    with SyncAdmin(servers) as admin:
        found = admin.list_offsets(dict.fromkeys(names, LATEST), read_committed=read_committed)
    return {name: each.offset for name, each in found.items()}
