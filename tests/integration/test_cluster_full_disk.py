"""A full disk under one of three brokers: what was there leads on elsewhere, nothing acknowledged
is lost, and with room again it comes back (ST-10, RE-10)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.clients import confluent_client
from tests.kit.clients.clients import Sent
from tests.kit.processes.broker_process import BrokerProcess
from tests.kit.processes.cluster_load import (
    BURST,
    LONGEST_LOSS_SECONDS,
    acknowledge_more,
    check_everything_is_there,
    leader_of,
    partitions_of,
    wait_for_full_isr,
)
from tests.kit.processes.cluster_process import ClusterProcess
from tests.kit.processes.full_disks import DISKS, Disk
from tests.kit.processes.senders import PARTITIONS, ConfluentSender, Sender, sending
from tests.kit.waiting import wait_until

pytestmark = [pytest.mark.secured, pytest.mark.slow, pytest.mark.foreign, pytest.mark.timeout(600)]

OPTIONS = (
    "min.insync.replicas=2",
    "replica.lag.time.max.ms=3000",
    "default.replication.factor=3",
)
VICTIM = 2
BULK = "bulk"
ONE_MEGABYTE = [Sent(0, None, bytes(1_000))] * 1_000


@pytest.fixture(params=DISKS)
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    with DISKS[request.param](tmp_path) as disk:
        yield disk


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ClusterProcess]:
    """One that has not started yet."""
    cluster = ClusterProcess(tmp_path, 3, *OPTIONS)
    try:
        yield cluster
    finally:
        cluster.kill_all()


def test_a_broker_whose_only_disk_is_full_ends_and_comes_back(
    cluster: ClusterProcess, disk: Disk
) -> None:
    victim = cluster.brokers[VICTIM]
    victim.data_dir = disk.directory
    cluster.start()
    servers = cluster.bootstrap_servers
    with sending(ConfluentSender, servers, 3) as sender:
        acknowledge_more([sender])
        sender.allow(BURST)
        disk.fill(victim)
        acknowledge_more([sender])
        wait_until(lambda: has_ended(victim), LONGEST_LOSS_SECONDS)
        assert f"all log directories have failed, the last one was {disk.directory}" in said(victim)
        acknowledge_more([sender])
        wait_until(
            lambda: (
                VICTIM not in {leader_of(servers, sender.topic, each) for each in range(PARTITIONS)}
            )
        )
        disk.make_room()
        victim.start()
        wait_for_full_isr(servers, sender.topic)
        acknowledge_more([sender])
        sender.stop()
    check_everything_is_there(sender, servers)
    wait_for_equal_replicas(cluster, sender, [each.data_dir for each in cluster.brokers.values()])


def test_a_broker_goes_on_with_its_other_disk(
    cluster: ClusterProcess, disk: Disk, tmp_path: Path
) -> None:
    """What lies on the full one is offline there until a restart, and nothing else is."""
    victim = cluster.brokers[VICTIM]
    dirs = [disk.directory, tmp_path / "other-disk"]  # in turn, so the bulk lies in the first
    victim.options = (*victim.options, f"log.dirs={','.join(map(str, dirs))}")
    cluster.start()
    servers = cluster.bootstrap_servers
    confluent_client.create_topic(servers, BULK, 1, {}, replicas=3)
    confluent_client.produce(servers, BULK, ONE_MEGABYTE)
    with sending(ConfluentSender, servers, 3) as sender:
        acknowledge_more([sender])
        [lost] = [n for n in range(PARTITIONS) if (dirs[0] / f"{sender.topic}-{n}").is_dir()]
        disk.fill(victim)
        confluent_client.produce(servers, BULK, ONE_MEGABYTE)
        offline = f"log directory {dirs[0]} is offline, and 2 partitions with it"
        wait_until(lambda: offline in said(victim), LONGEST_LOSS_SECONDS)
        wait_until(lambda: VICTIM not in isr(servers, sender.topic, lost), LONGEST_LOSS_SECONDS)
        acknowledge_more([sender])
        assert leader_of(servers, sender.topic, lost) != VICTIM
        # The other disk has room; a broker that was slow for a moment comes back by itself.
        wait_until(lambda: VICTIM in isr(servers, sender.topic, 1 - lost), LONGEST_LOSS_SECONDS)
        assert not has_ended(victim)
        disk.make_room()
        assert victim.stop() == 0
        victim.start()
        wait_for_full_isr(servers, sender.topic)
        wait_for_full_isr(servers, BULK)
        acknowledge_more([sender])
        sender.stop()
    check_everything_is_there(sender, servers)
    assert len(confluent_client.consume(servers, BULK, 1, 2 * len(ONE_MEGABYTE))) == 2_000
    homes = [each.data_dir for key, each in cluster.brokers.items() if key != VICTIM]
    wait_for_equal_replicas(cluster, sender, [*homes, *dirs])


def has_ended(broker: BrokerProcess) -> bool:
    assert broker.process is not None
    code = broker.process.poll()
    assert code in (None, 1), code
    return code is not None


def said(broker: BrokerProcess) -> str:
    return broker.log.read_text()


def isr(servers: str, topic: str, partition: int) -> list[int]:
    found = partitions_of(servers, topic)
    return list(found[partition].isrs) if found else []


def wait_for_equal_replicas(cluster: ClusterProcess, sender: Sender, homes: list[Path]) -> None:
    """All three of each partition, once quiet, are the same to the byte."""

    def contents(partition: int) -> list[bytes]:
        return [
            b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))
            for home in homes
            if (directory := home / f"{sender.topic}-{partition}").is_dir()
        ]

    for partition in range(PARTITIONS):
        wait_until(lambda number=partition: len(set(contents(number))) == 1)
        assert len(contents(partition)) == len(cluster.brokers)
