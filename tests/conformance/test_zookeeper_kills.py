"""ZS-2: clusters of Kafka's brokers and of ours work on while our ZooKeeper server is killed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from kazoo.client import KazooClient

from tests.kit.effort import rounds
from tests.kit.processes.cluster_load import (
    acknowledge_more,
    check_everything_is_there,
    check_replicas_are_equal,
    wait_for_full_isr,
)
from tests.kit.processes.mixed_cluster import Kind, MixedCluster
from tests.kit.processes.own_zookeeper_process import OwnZooKeeperProcess
from tests.kit.processes.senders import ConfluentSender, sending

pytestmark = [pytest.mark.foreign, pytest.mark.slow, pytest.mark.repeated]

SIZES: dict[Kind, int] = {"ours": 3, "kafka": 2}
KILLS = rounds(10, in_soak=50)
SESSION_S = 10.0


class Born(NamedTuple):
    """The creation of an ephemeral node, and its session."""

    czxid: int
    owner: int


@contextmanager
def connected(server: OwnZooKeeperProcess) -> Iterator[KazooClient]:
    client = KazooClient(server.connect, timeout=SESSION_S)
    client.start(timeout=SESSION_S)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def ephemerals(client: KazooClient) -> dict[str, Born]:
    """The nodes of the brokers' sessions: one for each, and the controller's."""
    paths = [f"/brokers/ids/{each}" for each in client.get_children("/brokers/ids")]
    stats = {path: client.exists(path) for path in (*paths, "/controller")}
    return {path: Born(stat.czxid, stat.ephemeralOwner) for path, stat in stats.items()}


def kill_with_a_closed_session(server: OwnZooKeeperProcess, number: int) -> None:
    """A session is closed just before the kill; its node must not come back."""
    with connected(server) as brief:
        brief.create(f"/brief-{number}", ephemeral=True)
    server.kill()
    server.start()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", SIZES)
def test_zs_2_a_cluster_under_load_survives_kills_of_its_zookeeper(
    kind: Kind, tmp_path: Path
) -> None:
    """No session that should live is lost, no ephemeral node that should be gone is there, and
    everything that was acknowledged is there once."""
    size = SIZES[kind]
    server = OwnZooKeeperProcess(tmp_path)
    # The name that is given last counts.
    cluster = MixedCluster(
        tmp_path / "cluster",
        dict.fromkeys(range(1, size + 1), kind),
        f"zookeeper.connect={server.connect}",
    )
    cluster.ours.zookeeper = server
    try:
        cluster.start()
        with (
            connected(server) as witness,
            sending(ConfluentSender, cluster.bootstrap_servers, size) as sender,
        ):
            wait_for_full_isr(cluster.bootstrap_servers, sender.topic, size)
            states: list[str] = []
            witness.add_listener(states.append)
            witness.create("/witness", ephemeral=True)
            before = ephemerals(witness)
            assert len(before) == size + 1
            for number in range(KILLS):
                acknowledge_more([sender])
                kill_with_a_closed_session(server, number)
            acknowledge_more([sender])
            sender.stop()
            assert witness.retry(ephemerals, witness) == before
            names = witness.get_children("/")
            assert "witness" in names
            assert not [each for each in names if each.startswith("brief")]
            assert "LOST" not in states
            wait_for_full_isr(cluster.bootstrap_servers, sender.topic, size)
            check_everything_is_there(sender, cluster.bootstrap_servers)
            check_replicas_are_equal(cluster.ours, sender)
    finally:
        cluster.kill_all()
