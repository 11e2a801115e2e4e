"""Three processes and a ZooKeeper: brokers die under load, and nothing acknowledged is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.processes.cluster_load import (
    BURST,
    acknowledge_more,
    check_everything_is_there,
    check_replicas_are_equal,
    leader_of,
    wait_for_full_isr,
)
from tests.kit.processes.cluster_process import ClusterProcess, cluster_process
from tests.kit.processes.senders import ConfluentSender, OwnSender, sending

pytestmark = [pytest.mark.secured, pytest.mark.foreign]

KILLS = 6


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_leaders_are_killed_under_load(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """RE-10, RE-12, DL-2, DL-4, ZK-3: two idempotent producers with acks=all; each kill takes the
    leader of the first partition, which is sometimes the controller and the coordinator, too."""
    options = ("min.insync.replicas=2", "replica.lag.time.max.ms=3000")
    with cluster_process(tmp_path, 3, *options) as cluster:
        servers = cluster.bootstrap_servers
        with (
            sending(ConfluentSender, servers, 3) as theirs,
            sending(OwnSender, servers, 3) as ours,
        ):
            senders = (theirs, ours)
            for kill in range(KILLS):
                acknowledge_more(senders)
                leader = leader_of(servers, senders[kill % 2].topic)
                for sender in senders:
                    sender.allow(BURST)
                cluster.brokers[leader].kill()
                acknowledge_more(senders)
                cluster.brokers[leader].start()
                for sender in senders:
                    wait_for_full_isr(servers, sender.topic)
            for sender in senders:
                sender.stop()
        for sender in senders:
            check_everything_is_there(sender, servers)
            check_replicas_are_equal(cluster, sender)
        counts = {sender.topic: sender.acknowledged_count() for sender in senders}
        record_property("acknowledged", counts)
        print(f"{KILLS} leaders killed; acknowledged, and there once and in order: {counts}")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_zookeeper_may_be_away_while_nothing_changes(tmp_path: Path) -> None:
    """ZK-5, ZK-6: writing and reading go on, and after its return elections do."""
    with cluster_process(tmp_path, 3, "min.insync.replicas=2") as cluster:
        servers = cluster.bootstrap_servers
        with sending(ConfluentSender, servers, 3) as sender:
            acknowledge_more([sender])
            cluster.zookeeper.kill()
            acknowledge_more([sender])
            cluster.zookeeper.start()
            acknowledge_more([sender])
            leader = leader_of(servers, sender.topic)
            cluster.brokers[leader].kill()
            acknowledge_more([sender])
            sender.stop()
        check_everything_is_there(sender, servers)


@pytest.mark.timeout(600)
def test_a_rolling_restart_is_not_noticed(tmp_path: Path) -> None:
    """RE-13: each broker gives its leadership away, stops cleanly and comes back."""
    with cluster_process(tmp_path, 3, "min.insync.replicas=2") as cluster:
        servers = cluster.bootstrap_servers
        with sending(ConfluentSender, servers, 3) as sender:
            for broker in cluster.brokers.values():
                acknowledge_more([sender])
                assert broker.stop() == 0
                acknowledge_more([sender])
                broker.start()
                wait_for_full_isr(servers, sender.topic)
            sender.stop()
        check_everything_is_there(sender, servers)


def test_a_second_broker_with_the_same_id_refuses_to_start(tmp_path: Path) -> None:
    """ZK-2"""
    with cluster_process(tmp_path, 1) as cluster:
        twin = ClusterProcess(tmp_path / "twin", 1)
        twin.zookeeper = cluster.zookeeper
        broker = twin.brokers[1]
        broker.options = (
            *broker.options,
            f"zookeeper.connect={cluster.zookeeper.connect}",
            "zookeeper.session.timeout.ms=2000",
        )
        assert "broker.id=1 is in use by a running broker" in broker.refuse()
