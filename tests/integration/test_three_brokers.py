"""Three processes and a ZooKeeper: brokers die under load, and nothing acknowledged is lost."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance import confluent_client
from tests.integration.broker_process import wait_until
from tests.integration.cluster_process import (
    ClusterProcess,
    cluster_process,
    wait_for_equal_files,
)
from tests.integration.senders import (
    LEAST_PER_LIFE,
    PARTITIONS,
    ConfluentSender,
    OwnSender,
    Sender,
    sending,
)

pytestmark = [pytest.mark.slow, pytest.mark.foreign]

KILLS = 6
BURST = 3_000
LONGEST_LOSS_SECONDS = 30.0


@pytest.mark.timeout(240)
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
                _acknowledge_more(senders)
                leader = _leader(servers, senders[kill % 2].topic)
                for sender in senders:
                    sender.allow(BURST)
                cluster.brokers[leader].kill()
                _acknowledge_more(senders)
                cluster.brokers[leader].start()
                for sender in senders:
                    _wait_for_full_isr(servers, sender.topic)
            for sender in senders:
                sender.stop()
        for sender in senders:
            _check(sender, servers)
            for partition in range(PARTITIONS):
                wait_for_equal_files(cluster, sender.topic, partition)
        counts = {sender.topic: sender.acknowledged_count() for sender in senders}
        record_property("acknowledged", counts)
        print(f"{KILLS} leaders killed; acknowledged, and there once and in order: {counts}")


@pytest.mark.timeout(120)
def test_zookeeper_may_be_away_while_nothing_changes(tmp_path: Path) -> None:
    """ZK-5, ZK-6: writing and reading go on, and after its return elections do."""
    with cluster_process(tmp_path, 3, "min.insync.replicas=2") as cluster:
        servers = cluster.bootstrap_servers
        with sending(ConfluentSender, servers, 3) as sender:
            _acknowledge_more([sender])
            cluster.zookeeper.kill()
            _acknowledge_more([sender])
            cluster.zookeeper.start()
            _acknowledge_more([sender])
            leader = _leader(servers, sender.topic)
            cluster.brokers[leader].kill()
            _acknowledge_more([sender])
            sender.stop()
        _check(sender, servers)


@pytest.mark.timeout(120)
def test_a_rolling_restart_is_not_noticed(tmp_path: Path) -> None:
    """RE-13: each broker gives its leadership away, stops cleanly and comes back."""
    with cluster_process(tmp_path, 3, "min.insync.replicas=2") as cluster:
        servers = cluster.bootstrap_servers
        with sending(ConfluentSender, servers, 3) as sender:
            for broker in cluster.brokers.values():
                _acknowledge_more([sender])
                assert broker.stop() == 0
                _acknowledge_more([sender])
                broker.start()
                _wait_for_full_isr(servers, sender.topic)
            sender.stop()
        _check(sender, servers)


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
        assert "broker.id=1 is taken" in broker.refuse()


def _acknowledge_more(senders: list[Sender] | tuple[Sender, ...]) -> None:
    for sender in senders:
        sender.allow(LEAST_PER_LIFE + BURST)
    for sender in senders:
        wait_until(sender.has_acknowledged_enough, LONGEST_LOSS_SECONDS)


def _leader(servers: str, topic: str) -> int:
    ends_at = time.monotonic() + LONGEST_LOSS_SECONDS
    while time.monotonic() < ends_at:
        leader = confluent_client.describe_topic(servers, topic)[0].leader
        if leader > 0:
            return leader
        time.sleep(0.1)
    raise AssertionError(f"nobody leads {topic}-0")


def _wait_for_full_isr(servers: str, topic: str) -> None:
    wait_until(
        lambda: all(
            len(partition.isr) == 3 for partition in confluent_client.describe_topic(servers, topic)
        ),
        LONGEST_LOSS_SECONDS,
    )


def _check(sender: Sender, servers: str) -> None:
    """In the end all was acknowledged: the log holds what was sent, once and in order."""
    assert sender.failed == []
    seen = confluent_client.consume(servers, sender.topic, PARTITIONS, sender.sent_count)
    for partition in range(PARTITIONS):
        stored = [int(one.value or b"") for one in seen if one.partition == partition]
        sent = list(range(partition, sender.sent_count, PARTITIONS))
        pairs = enumerate(itertools.zip_longest(stored, sent))
        wrong = next(((at, pair) for at, pair in pairs if pair[0] != pair[1]), None)
        assert wrong is None, f"{sender.topic}-{partition} holds something else"
