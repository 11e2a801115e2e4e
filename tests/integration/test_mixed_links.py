"""MX-1: the links between brokers of both kinds are cut and healed, while clients go on.

Each broker is reached by the others through a link of its own, and by clients and ZooKeeper
directly. So a broker that is cut off stays registered: its followers, or its leaders, and the
controller cannot reach it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.client import SyncAdmin
from tests.kit import foreign
from tests.kit.processes.broker_process import free_port
from tests.kit.processes.cluster_load import (
    acknowledge_more,
    check_everything_is_there,
    wait_for_full_isr,
)
from tests.kit.processes.cluster_process import wait_for_equal_files
from tests.kit.processes.mixed_checks import isr_at
from tests.kit.processes.mixed_cluster import (
    OPTIONS,
    PATIENCE_S,
    Kind,
    MixedCluster,
    restore_leaders,
)
from tests.kit.processes.mixed_load import lead, their_sender
from tests.kit.processes.senders import PARTITIONS, Sender, sending
from tests.kit.processes.tcp_link import TcpLink
from tests.kit.waiting import wait_until

pytestmark = [pytest.mark.foreign, pytest.mark.soak, pytest.mark.timeout(600)]

KINDS: dict[int, Kind] = {1: "kafka", 2: "ours", 3: "ours"}
# Never the controller's own link, through which a Kafka also speaks to itself.
CUTS: tuple[tuple[Kind, int], ...] = (("kafka", 2), ("ours", 1), ("ours", 3))
SETTINGS = (
    *OPTIONS,
    "listener.security.protocol.map=OUT:PLAINTEXT,BETWEEN:PLAINTEXT",
    "inter.broker.listener.name=BETWEEN",
)


class Linked:
    """A mixed cluster whose brokers reach each other through links."""

    def __init__(self, directory: Path, version: str) -> None:
        versions = {} if version == foreign.KAFKA_VERSION else dict.fromkeys(KINDS, version)
        protocol = "inter.broker.protocol.version=" + ".".join(version.split(".")[:2])
        self.mixed = MixedCluster(directory, KINDS, *SETTINGS, protocol, versions=versions)
        self.links: dict[int, TcpLink] = {}
        for broker_id, broker in self.mixed.ours.brokers.items():
            own, link = free_port(), free_port()
            self.links[broker_id] = TcpLink(link, own)
            out = f"OUT://{broker.bootstrap_servers}"
            broker.options = (
                *broker.options,
                f"listeners={out},BETWEEN://127.0.0.1:{own}",
                f"advertised.listeners={out},BETWEEN://127.0.0.1:{link}",
            )

    def close(self) -> None:
        self.mixed.kill_all()
        for link in self.links.values():
            link.close()


@pytest.fixture(params=[foreign.KAFKA_VERSION, *foreign.OTHER_BROKERS_VERSIONS])
def linked(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Linked]:
    linked = Linked(tmp_path, request.param)
    try:
        linked.mixed.start()
        yield linked
    finally:
        linked.close()


def test_mx_1_links_between_the_kinds_are_cut_and_healed(linked: Linked) -> None:
    """MX-1: to each broker in turn, as the leader of all that is sent, and as a follower."""
    mixed = linked.mixed
    servers = mixed.bootstrap_servers
    with SyncAdmin(servers) as admin, sending(their_sender, servers, 3) as sender:
        acknowledge_more([sender])
        for controller, broker_id in CUTS:
            while mixed.give_control_to(controller) == broker_id:
                mixed.depose()
            for leader in (broker_id, broker_id % 3 + 1):
                restore_leaders(admin)
                for partition in range(PARTITIONS):
                    lead(admin, sender.topic, partition, leader)
                cut_and_heal(linked, sender, broker_id, leader)
        acknowledge_more([sender])
        sender.stop()
    check_everything_is_there(sender, servers)
    for partition in range(PARTITIONS):
        wait_for_equal_files(mixed.ours, sender.topic, partition)


def cut_and_heal(linked: Linked, sender: Sender, broker_id: int, leader: int) -> None:
    """Cut the link to a broker until its followers have left the ISR, or it goes on regardless."""
    mixed = linked.mixed
    link = linked.links[broker_id]
    sender.allow(10_000)
    link.cut()
    try:
        if leader == broker_id:
            # Nobody can fetch from it, and it asks the controller to remove the others. It hears
            # nothing of the controller itself.
            other = broker_id % 3 + 1
            wait_until(lambda: isr_at(mixed, other, sender.topic) == {broker_id}, PATIENCE_S)
        else:
            acknowledge_more([sender])
    finally:
        link.heal()
    wait_for_full_isr(mixed.bootstrap_servers, sender.topic)
    acknowledge_more([sender])
