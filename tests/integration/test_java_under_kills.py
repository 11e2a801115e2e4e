"""Kafka's own clients while brokers die: the leader, the coordinator of their group, the
controller. The answers they got are true, and what was acknowledged is there once and in order."""

from __future__ import annotations

import itertools
from collections import defaultdict
from pathlib import Path

import pytest

from barnabas.client import SyncAdmin
from barnabas.client.offsets import LATEST
from barnabas.types import TopicPartition
from tests.kit.clients import confluent_client, java_client
from tests.kit.clients.clients import Seen
from tests.kit.processes.cluster_load import (
    BURST,
    LONGEST_LOSS_SECONDS,
    acknowledge_more,
    check_everything_is_there,
    check_replicas_are_equal,
    controller_of,
    leader_of,
    wait_for_full_isr,
)
from tests.kit.processes.cluster_process import ClusterProcess, cluster_process
from tests.kit.processes.java_at_work import Acknowledged, JavaAtWork, Reading, java_at_work
from tests.kit.processes.senders import PARTITIONS
from tests.kit.waiting import wait_until

pytestmark = [pytest.mark.secured, pytest.mark.slow, pytest.mark.foreign, pytest.mark.timeout(600)]

OPTIONS = ("min.insync.replicas=2", "replica.lag.time.max.ms=3000")
TOPIC, GROUP = "sent-by-java", "java-readers"
MEMBERS = ("one", "two")
VERSIONS = {"3.9": java_client.require_measure, "newest": java_client.require_newest}


def coordinator_of(cluster: ClusterProcess) -> int:
    with SyncAdmin(cluster.bootstrap_servers) as admin:
        return admin.describe_groups([GROUP])[GROUP].coordinator.node_id


def leader_of_topic(cluster: ClusterProcess) -> int:
    return leader_of(cluster.bootstrap_servers, TOPIC)


VICTIMS = (leader_of_topic, coordinator_of, controller_of)


@pytest.mark.parametrize("version", VERSIONS)
def test_java_clients_while_brokers_are_killed(tmp_path: Path, version: str) -> None:
    """RE-10, GC-2, ZK-3, PR-4, PR-6, CO-3, DL-2."""
    with (
        cluster_process(tmp_path, 3, *OPTIONS) as cluster,
        java_at_work(VERSIONS[version], cluster.bootstrap_servers, TOPIC, PARTITIONS) as java,
    ):
        servers = cluster.bootstrap_servers
        for name in MEMBERS:
            java.join(name, GROUP)
        for victim_of in VICTIMS:
            acknowledge_more([java])
            reads_on(java)
            victim = cluster.brokers[victim_of(cluster)]
            java.allow(BURST)
            victim.kill()
            acknowledge_more([java])
            reads_on(java)
            victim.start()
            wait_for_full_isr(servers, TOPIC)
        acknowledged = java.finish()
        wait_until(lambda: java.values_read() == set(range(java.sent_count)), LONGEST_LOSS_SECONDS)
        wait_until(lambda: committed(servers) == log_ends(servers), LONGEST_LOSS_SECONDS)
        java.leave()
        check_everything_is_there(java, servers)
        seen = confluent_client.consume(servers, TOPIC, PARTITIONS, java.sent_count)
        check_acknowledgements(acknowledged, seen)
        count = check_what_was_read(java.readings, seen)
        check_replicas_are_equal(cluster, java)
    print(
        f"{len(acknowledged)} records acknowledged to Java {version} while {len(VICTIMS)} brokers"
    )
    print(f"{count} readings of them by its group")


def reads_on(java: JavaAtWork) -> None:
    """Until it has read all that is acknowledged by now."""
    count = java.acknowledged_count()
    wait_until(lambda: len(java.values_read()) >= count, LONGEST_LOSS_SECONDS)


def log_ends(servers: str) -> dict[TopicPartition, int]:
    names = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    with SyncAdmin(servers) as admin:
        found = admin.list_offsets(dict.fromkeys(names, LATEST))
    return {name: each.offset for name, each in found.items()}


def committed(servers: str) -> dict[TopicPartition, int]:
    with SyncAdmin(servers) as admin:
        return {name: each.offset for name, each in admin.list_group_offsets(GROUP).items()}


def check_acknowledgements(acknowledged: list[Acknowledged], seen: list[Seen]) -> None:
    """Each number lies at the offset that the producer was given for it."""
    assert len(acknowledged) == len(seen)
    stored = {(one.partition, one.offset): int(one.value or b"") for one in seen}
    reported = {(one.partition, one.offset): one.number for one in acknowledged}
    assert reported == stored


def check_what_was_read(readings: dict[str, list[Reading]], seen: list[Seen]) -> int:
    """Each record was at its offset whenever it was read, and no member skipped one, or went back,
    while it owned the partition. How many readings there were."""
    stored = {(one.partition, one.offset): one.value for one in seen}
    for each in readings.values():
        owned: dict[tuple[int, int], list[int]] = defaultdict(list)
        for one in each:
            assert stored[one.partition, one.offset] == one.value
            owned[one.assignment, one.partition].append(one.offset)
        for offsets in owned.values():
            assert all(later == before + 1 for before, later in itertools.pairwise(offsets))
    return sum(map(len, readings.values()))
