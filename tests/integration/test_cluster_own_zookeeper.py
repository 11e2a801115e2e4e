"""The ZooKeeper of `barnabas cluster` (ZS-3): our own server, one of somebody else, or Java's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from barnabas.client.sync.producer import SyncProducer
from tests.kit.processes.local_cluster import LocalCluster, local_cluster
from tests.kit.processes.own_zookeeper_process import own_zookeeper
from tests.kit.secured.suite import IS_SECURED
from tests.kit.waiting import wait_until

pytestmark = pytest.mark.slow

FAILOVER_SECONDS = 120


def keeper_of(cluster: LocalCluster) -> str:
    port = json.loads((cluster.directory / "cluster.json").read_text())["zookeeper_port"]
    return f"127.0.0.1:{port}"


def leaders(cluster: LocalCluster) -> set[int]:
    watched = json.loads(cluster.run("partitions watch --topic t --json"))
    return {partition["leader"] for partition in watched}


@pytest.mark.timeout(600)
def test_zs_3_a_cluster_survives_the_loss_of_its_zookeeper_and_of_a_broker(tmp_path: Path) -> None:
    """ZS-2, ZS-3: sessions continue after kill -9, and the next failure leads to an election."""
    with local_cluster(tmp_path) as cluster:
        cluster.start("--brokers", "3")
        cluster.run("topics create t --partitions 3")
        with SyncProducer(cluster.servers, acks=-1) as producer:

            def send(count: int) -> None:
                for number in range(count):
                    producer.send("t", b"%d" % number, partition=number % 3)
                producer.flush()

            send(30)
            cluster.kill("zookeeper")
            send(30)
            cluster.cluster("start-zookeeper")
            cluster.kill("broker-2")
            wait_until(lambda: cluster.isr_sizes("t") == {2}, FAILOVER_SECONDS)
            wait_until(lambda: 2 not in leaders(cluster), FAILOVER_SECONDS)
            send(30)
            cluster.cluster("start-broker 2")
            wait_until(lambda: cluster.isr_sizes("t") == {3}, FAILOVER_SECONDS)
        watched = json.loads(cluster.run("partitions watch --topic t --json"))
        ends = {each["log_end_offset"] for partition in watched for each in partition["replicas"]}
        assert ends == {30}
        assert cluster.stop() == 0
        assert (cluster.directory / "zookeeper" / "zookeeper.journal").stat().st_size > 0
        assert not (cluster.directory / "zookeeper" / "version-2").exists()


@pytest.mark.timeout(600)
@pytest.mark.skipif(IS_SECURED, reason="it secures its cluster itself")
def test_zs_3_a_secure_cluster_closes_its_tree(tmp_path: Path) -> None:
    """ZS-3, SE-6: who has no credentials neither reads passwords nor changes anything."""
    with local_cluster(tmp_path) as cluster:
        cluster.start("--brokers", "1", "--secure")
        stranger = KazooClient(keeper_of(cluster))
        stranger.start()
        try:
            for path in ("/brokers/topics/t", "/config/topics/t", "/kafka-acl/Topic/t"):
                with pytest.raises(NoAuthError):
                    stranger.create(path, b"{}")
            with pytest.raises(NoAuthError):
                stranger.get_children("/config/users")
        finally:
            stranger.stop()
            stranger.close()
        assert cluster.stop() == 0


@pytest.mark.timeout(600)
def test_zs_3_a_cluster_uses_a_zookeeper_that_already_runs(tmp_path: Path) -> None:
    """It starts and stops none itself, and keeps using it without the option."""
    with own_zookeeper(tmp_path / "keeper") as keeper, local_cluster(tmp_path) as cluster:
        connect = f"{keeper.connect}/chroot"
        said = cluster.start("--brokers", "1", "--zookeeper-connect", connect)
        assert said[0] == f"zookeeper on {connect}"
        cluster.run("topics create t")
        assert cluster.run(f"metadata ls /brokers/topics --zookeeper-connect {connect}") == "t\n"
        for command in ("stop-zookeeper", "start-zookeeper"):
            assert f"it uses the one on {connect}" in cluster.cluster(command, code=1)
        cluster.kill("broker-1")
        assert cluster.cluster("start-broker 1").startswith("broker 1 pid ")
        assert cluster.stop() == 0
        assert not (cluster.directory / "zookeeper").exists()
        assert cluster.start()[0] == f"zookeeper on {connect}"
        assert cluster.run("topics list") == "t\n"
        assert cluster.stop() == 0
    assert f"{keeper.connect} (Connection refused)" in cluster.cluster("start", code=1)


@pytest.mark.timeout(600)
def test_a_cluster_runs_in_the_background(tmp_path: Path) -> None:
    """The command ends when the cluster is ready, with the errors of one that does not start."""
    with local_cluster(tmp_path) as cluster:
        cluster.directory.mkdir()
        start = f"start -daemon --brokers 1 --port {cluster.port}"
        assert "num.partitions" in cluster.cluster(f"{start} --override num.partitions=x", code=1)
        said = cluster.cluster(start).splitlines()
        log = f"{cluster.directory}.log"
        assert said[-2:] == [
            f"barnabas cluster ready on 127.0.0.1:{cluster.port}",
            f"process {cluster.pid('.')}, its log is {log}",
        ]
        assert "is already running in" in cluster.cluster(start, code=1)
        assert cluster.cluster("stop") == "Stopped broker 1.\nStopped zookeeper.\n"


@pytest.mark.foreign
@pytest.mark.timeout(600)
def test_a_cluster_that_began_with_javas_zookeeper_keeps_it(tmp_path: Path) -> None:
    with local_cluster(tmp_path, javas_zookeeper=True) as cluster:
        cluster.start("--brokers", "1")
        cluster.run("topics create t")
        command = Path(f"/proc/{cluster.pid('zookeeper')}/cmdline").read_bytes()
        assert b"org.apache.zookeeper.server.quorum.QuorumPeerMain" in command
        assert cluster.stop() == 0
        cluster.start()
        assert cluster.run("topics list") == "t\n"
        assert cluster.stop() == 0
