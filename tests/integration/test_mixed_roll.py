"""MX-2: a stream of transactions runs while a cluster goes over to the other kind, and back.

Its input comes from an idempotent producer. At the end, its output for a reader of committed
records is exactly what was acknowledged to that producer, and a group has read all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from barnabas.client import NewTopic, SyncAdmin
from barnabas.errors import KafkaError
from tests.kit import foreign
from tests.kit.processes.cluster_load import (
    BURST,
    acknowledge_more,
    check_everything_is_there,
    committed_values,
    wait_for_full_isr,
)
from tests.kit.processes.cluster_process import wait_for_equal_files
from tests.kit.processes.mixed_cluster import (
    KINDS,
    OPTIONS,
    PATIENCE_S,
    Kind,
    MixedCluster,
    mixed_cluster,
    restore_leaders,
)
from tests.kit.processes.mixed_load import their_sender
from tests.kit.processes.pump import Pump
from tests.kit.processes.senders import PARTITIONS, Sender, sending
from tests.kit.waiting import wait_until

pytestmark = [pytest.mark.foreign, pytest.mark.timeout(900)]

ALL_KAFKA: dict[int, Kind] = {1: "kafka", 2: "kafka", 3: "kafka"}
OUTPUT = "pumped"
# The broker that ends, and the kind that starts in its place. One of its own kind: it is killed.
ROLL: tuple[tuple[int, Kind], ...] = (
    *((1, "ours"), (2, "ours"), (3, "kafka"), (3, "ours")),
    *((2, "ours"), (1, "kafka"), (2, "kafka"), (3, "kafka")),
)


@pytest.mark.slow
def test_mx_2_a_stream_of_transactions_survives_a_roll_there_and_back(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """MX-1, MX-2: with kill -9 of both kinds on the way."""
    with mixed_cluster(tmp_path, ALL_KAFKA, *OPTIONS) as mixed:
        record_property("committed", pump_through(mixed, ROLL))


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1])
@pytest.mark.parametrize("version", (foreign.KAFKA_VERSION, *foreign.OTHER_BROKERS_VERSIONS))
def test_mx_2_a_stream_of_transactions_survives_random_kills_and_changes(
    tmp_path: Path, version: str, seed: int, record_property: Callable[[str, object], None]
) -> None:
    """MX-1, MX-2: six steps, each of which ends a broker; all versions take five minutes."""
    versions = {} if version == foreign.KAFKA_VERSION else dict.fromkeys(ALL_KAFKA, version)
    protocol = "inter.broker.protocol.version=" + ".".join(version.split(".")[:2])
    chance = Random(seed)
    steps = [(chance.choice((1, 2, 3)), chance.choice(KINDS)) for _ in range(6)]
    with mixed_cluster(tmp_path, ALL_KAFKA, *OPTIONS, protocol, versions=versions) as mixed:
        record_property("committed", pump_through(mixed, steps))


def pump_through(mixed: MixedCluster, steps: Sequence[tuple[int, Kind]]) -> int:
    """Returns how many records were committed in the course of these steps."""
    servers = mixed.bootstrap_servers
    with SyncAdmin(servers) as admin, sending(their_sender, servers, 3) as sender:
        admin.create_topics([NewTopic(OUTPUT, PARTITIONS, 3)])
        pump = Pump(servers, sender.topic, OUTPUT)
        try:
            for broker_id, kind in steps:
                replace(mixed, admin, sender, broker_id, kind)
            acknowledge_more([sender])
            sender.stop()
            wait_until(lambda: position(admin) == sender.sent_count, PATIENCE_S)
        finally:
            pump.stop()
        check_everything_is_there(sender, servers)
        check_output(servers, sender)
        for topic in (sender.topic, OUTPUT):
            for partition in range(PARTITIONS):
                wait_for_equal_files(mixed.ours, topic, partition)
    print(f"{pump.committed_count} records were pumped; {pump.renewal_count} renewals")
    return pump.committed_count


def position(admin: SyncAdmin) -> int:
    """How much of the input has been read in transactions that are committed."""
    with suppress(KafkaError):  # the coordinator may just have moved
        return sum(each.offset for each in admin.list_group_offsets("pump").values())
    return 0


def replace(
    mixed: MixedCluster, admin: SyncAdmin, sender: Sender, broker_id: int, kind: Kind
) -> None:
    """One step of the roll, under load."""
    sender.allow(BURST)
    (mixed.kill_one if mixed.kinds[broker_id] == kind else mixed.stop_one)(broker_id)
    acknowledge_more([sender])
    mixed.start_one(broker_id, kind)
    for topic in (sender.topic, OUTPUT):
        wait_for_full_isr(mixed.bootstrap_servers, topic)
    restore_leaders(admin)


def check_output(servers: str, sender: Sender) -> None:
    """Each record of the input is in the output once; those of a partition are in order."""
    seen = committed_values(servers, OUTPUT, PARTITIONS)
    values = [int(each.removeprefix(b"x")) for each in seen]
    for partition in range(PARTITIONS):
        found = [each for each in values if each % PARTITIONS == partition]
        assert found == list(range(partition, sender.sent_count, PARTITIONS))
