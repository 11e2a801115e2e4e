"""`barnabas cluster`: real brokers and a ZooKeeper under one command, killed and brought back."""

from __future__ import annotations

import json
import os
import re
import signal
import time
import urllib.request
from pathlib import Path

import pytest

from barnabas.cli.server.pid_file import process_began_ticks, read_pid_file
from barnabas.client.sync.producer import SyncAdmin, SyncProducer
from tests.kit.processes.broker_process import free_port
from tests.kit.processes.local_cluster import local_cluster
from tests.kit.waiting import wait_until

pytestmark = [pytest.mark.secured, pytest.mark.foreign]

PROMPT_SECONDS = 25.0  # who waits for somebody who has gone waits for 30 s
FAILOVER_SECONDS = 120


@pytest.mark.timeout(600)
def test_a_cluster_is_started_loses_a_broker_and_has_it_again(tmp_path: Path) -> None:
    """TP-4, RE-10, RE-14, UX: one of three is killed, and the filters show which partitions lack
    it until it is back."""
    with local_cluster(tmp_path) as cluster:
        said = cluster.start("--brokers", "3")
        keeper = json.loads((cluster.directory / "cluster.json").read_text())["zookeeper_port"]
        assert said == [
            f"zookeeper pid {cluster.pid('zookeeper')} on 127.0.0.1:{keeper}",
            *(f"broker {id_} pid {cluster.pid(f'broker-{id_}')} on {address}"
              for id_, address in enumerate(cluster.servers.split(","), 1)),
            f"barnabas cluster ready on {cluster.servers}",
        ]  # fmt: skip
        cluster.run("topics create t --partitions 3")
        assert "\tReplicationFactor: 3\tConfigs: min.insync.replicas=2\n" in cluster.run(
            "topics describe t"
        )
        with SyncProducer(cluster.servers, acks=-1) as producer:
            for number in range(30):
                producer.send("t", b"%d" % number, partition=number % 3)
            producer.flush()
            assert cluster.run("topics describe --under-replicated-partitions") == ""
            cluster.kill("broker-2")
            for number in range(30, 60):
                producer.send("t", b"%d" % number, partition=number % 3)
            producer.flush()
        wait_until(lambda: cluster.isr_sizes("t") == {2}, FAILOVER_SECONDS)
        for filter_ in ("under-replicated", "at-min-isr"):
            found = cluster.run(f"topics describe --{filter_}-partitions --exclude-internal")
            assert [line.split("\t")[2] for line in found.splitlines()] == [
                "Partition: 0",
                "Partition: 1",
                "Partition: 2",
            ]
        for filter_ in ("unavailable", "under-min-isr"):
            assert cluster.run(f"topics describe --{filter_}-partitions") == ""
        assert "broker 2, process" in cluster.errors.read_text()
        assert "`barnabas cluster start-broker 2" in cluster.errors.read_text()
        said_again = cluster.cluster("start-broker 2")
        address = cluster.servers.split(",")[1]
        assert said_again == f"broker 2 pid {cluster.pid('broker-2')} on {address}\n"
        wait_until(lambda: cluster.isr_sizes("t") == {3}, FAILOVER_SECONDS)
        assert cluster.run("topics describe --under-replicated-partitions") == ""
        ends = json.loads(cluster.run("partitions watch --topic t --json"))
        assert {
            replica["log_end_offset"] for partition in ends for replica in partition["replicas"]
        } == {20}
        began_at = time.monotonic()
        assert cluster.stop() == 0, "with the broker that another command has started"
        assert time.monotonic() - began_at < PROMPT_SECONDS
        for name in ("broker-1", "broker-2", "broker-3", "zookeeper"):
            assert read_pid_file(cluster.directory / name) is None, f"{name} has stopped in order"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_restart_has_the_same_ports_and_records(tmp_path: Path) -> None:
    """And Ctrl-C ends it as SIGTERM does. RE-14: every broker serves its own metrics."""
    with local_cluster(tmp_path) as cluster:
        options = ("--override", "num.partitions=4", "--override")
        metrics = f"barnabas.metrics.port={free_port() + 6000}"
        said = cluster.start("--brokers", "2", *options, metrics)
        before = said[-1]
        pages = re.findall(r"metrics on (\S+)", "\n".join(said))
        assert len(set(pages)) == 2
        for page in pages:
            with urllib.request.urlopen(f"http://{page}/metrics", timeout=60) as answer:
                assert b"kafka_server_replicamanager_partitioncount" in answer.read()
        cluster.run("topics create t")
        with SyncProducer(cluster.servers, acks=-1) as producer:
            producer.send("t", b"kept", partition=3)
            producer.flush()
        assert cluster.stop(signal.SIGINT) == 0
        assert cluster.start()[-1] == before
        with SyncAdmin(cluster.servers) as admin:
            (described,) = admin.describe_topics(["t"])
        assert len(described.partitions) == 4
        assert all(partition.leader > 0 for partition in described.partitions), "ready is ready"
        assert cluster.run("consume t --from-beginning --max-messages 1").startswith("kept\n")
        assert "already" in cluster.cluster("start --port 1", code=1)
        assert cluster.stop() == 0


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_single_processes_are_stopped_and_started(tmp_path: Path) -> None:
    """RE-13, ZK-5: what was acknowledged by two stays readable without ZooKeeper."""
    with local_cluster(tmp_path) as cluster:
        cluster.start()
        cluster.run("topics create t --partitions 3")
        with SyncProducer(cluster.servers, acks=-1, enable_idempotence=False) as producer:
            assert cluster.cluster("stop-broker 3") == "Stopped broker 3.\n"
            assert "broker 3 is not running" in cluster.cluster("stop-broker 3", code=1)
            assert cluster.isr_sizes("t") == {2}, "it has said that it leaves"
            assert cluster.cluster("stop-zookeeper") == "Stopped zookeeper.\n"
            for partition in range(3):
                producer.send("t", b"x", partition=partition)
            producer.flush()
        assert "no zookeeper is running" in cluster.cluster("start-broker 3", code=1)
        said = cluster.cluster("start-zookeeper")
        assert said.startswith(f"zookeeper pid {cluster.pid('zookeeper')} on 127.0.0.1:")
        cluster.cluster("start-broker 3")
        wait_until(lambda: cluster.isr_sizes("t") == {3}, FAILOVER_SECONDS)
        assert "is already running, as process" in cluster.cluster("start-broker 3", code=1)
        assert "has brokers 1 to 3" in cluster.cluster("start-broker 4", code=1)
        stopped = cluster.cluster("stop").splitlines()
        assert stopped == [f"Stopped {name}." for name in
                           ("broker 1", "broker 2", "broker 3", "zookeeper")]  # fmt: skip
        assert cluster.ended() == 0, "the command that had started it has ended with it"
        assert "nothing is running in" in cluster.cluster("stop", code=1)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_it_can_be_stopped_though_its_command_was_killed(tmp_path: Path) -> None:
    with local_cluster(tmp_path) as cluster:
        cluster.start("--brokers", "1")
        broker = cluster.pid("broker-1")
        assert cluster.process is not None
        cluster.process.kill()
        cluster.ended()
        assert process_began_ticks(broker) is not None
        assert f"broker 1, process {broker}, is already running in" in cluster.cluster(
            "start", code=1
        )
        assert cluster.cluster("stop") == "Stopped broker 1.\nStopped zookeeper.\n"
        assert process_began_ticks(broker) is None


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_all_brokers_can_be_stopped_at_once_and_without_zookeeper(tmp_path: Path) -> None:
    """RE-13: no broker waits for another that has gone."""
    with local_cluster(tmp_path) as cluster:
        cluster.start()
        cluster.run("topics create t --partitions 6")
        pids = [cluster.pid(f"broker-{id_}") for id_ in (1, 2, 3)]
        for pid in pids:
            os.kill(pid, signal.SIGTERM)
        wait_until(lambda: not any(map(process_began_ticks, pids)), PROMPT_SECONDS)
        for id_ in (1, 2, 3):
            cluster.cluster(f"start-broker {id_}")
        cluster.kill("zookeeper")
        began_at = time.monotonic()
        assert cluster.stop() == 0
        assert time.monotonic() - began_at < PROMPT_SECONDS
        assert "is being killed" not in cluster.errors.read_text()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_prevents_a_broker_from_starting_is_printed(tmp_path: Path) -> None:
    """And nothing is left running."""
    with local_cluster(tmp_path) as cluster:
        said = cluster.cluster(
            f"start --port {cluster.port} --brokers 2 --override num.partitions=none", code=1
        )
        assert "broker 1 ended with code 1 while starting: " in said
        assert "num.partitions" in said
        for name in ("broker-1", "broker-2", "zookeeper"):
            recorded = read_pid_file(cluster.directory / name)
            assert recorded is None or not recorded.is_alive
        said = cluster.cluster("start --override broker.id=7", code=1)
        assert "--override broker.id: the cluster sets this config" in said
        assert "not KEY=VALUE" in cluster.cluster("start --override x", code=2)
