"""Failed replicas can be seen: three processes, one is killed and comes back (RE-14)."""

from __future__ import annotations

import re
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.clients import confluent_client
from tests.kit.processes.broker_process import COMMAND, free_port
from tests.kit.processes.cluster_load import wait_for_full_isr
from tests.kit.processes.cluster_process import ClusterProcess
from tests.kit.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.foreign]

PARTITIONS = 6
LAG_MS = 3_000
RE_8_SECONDS = 1.5 * LAG_MS / 1000
MOMENT_SECONDS = 25.0  # on a machine that does other things as well; the default is a lag of 30 s
UNDER_REPLICATED = "kafka_server_replicamanager_underreplicatedpartitions"
LAG = "kafka_server_fetcherlagmetrics_consumerlag"


class Watched:
    """A cluster of three whose brokers serve their metrics."""

    def __init__(self, directory: Path) -> None:
        self.cluster = ClusterProcess(directory, 3, f"replica.lag.time.max.ms={LAG_MS}")
        self.ports = {broker_id: free_port() for broker_id in self.cluster.brokers}
        for broker_id, broker in self.cluster.brokers.items():
            option = f"barnabas.metrics.port={self.ports[broker_id]}"
            broker.options = (*broker.options, option)

    @property
    def servers(self) -> str:
        return self.cluster.bootstrap_servers

    @property
    def running(self) -> list[int]:
        return [each for each, broker in self.cluster.brokers.items() if broker.process]

    def page(self, broker_id: int) -> str:
        url = f"http://127.0.0.1:{self.ports[broker_id]}/metrics"
        with urllib.request.urlopen(url, timeout=60) as answer:
            text: bytes = answer.read()
        return text.decode()

    def metric(self, name: str) -> dict[int, float]:
        """The sum of the metric's samples on each broker that runs."""
        pattern = re.compile(rf"^{name}(?:\{{.*\}})? (\S+)$", re.MULTILINE)
        return {
            broker_id: sum(map(float, pattern.findall(self.page(broker_id))))
            for broker_id in self.running
        }

    def listed(self, flag: str) -> set[int]:
        """The partitions that `topics describe` finds."""
        done = subprocess.run(
            [str(COMMAND), "topics", "describe", flag, "--bootstrap-server", self._some_servers],
            capture_output=True,
            text=True,
            timeout=180,
        )
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        found = [re.search(r"\tTopic: t\tPartition: (\d+)\t", line) for line in lines]
        assert all(found), lines
        return {int(each.group(1)) for each in found if each}

    @property
    def _some_servers(self) -> str:
        return ",".join(self.cluster.brokers[each].bootstrap_servers for each in self.running)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    found = Watched(tmp_path)
    try:
        found.cluster.start()
        confluent_client.create_topic(
            found.servers, "t", PARTITIONS, {"min.insync.replicas": "3"}, replicas=3
        )
        wait_for_full_isr(found.servers, "t")
        yield found
    finally:
        found.cluster.kill_all()


@pytest.mark.timeout(600)
def test_a_killed_broker_is_seen_in_metrics_and_lists(watched: Watched) -> None:
    """RE-8, RE-14, TP-4: within the time that a lag may take, and nothing of it once it is back."""
    wait_until(lambda: set(watched.metric(UNDER_REPLICATED).values()) == {0})
    assert (
        sum(watched.metric("kafka_controller_kafkacontroller_activecontrollercount").values()) == 1
    )
    assert watched.listed("--under-replicated-partitions") == set()
    counts = watched.metric("kafka_server_replicamanager_leadercount")
    assert counts == {1: 2, 2: 2, 3: 2}
    for broker_id in watched.running:
        leaders = set(re.findall(r"ReplicaFetcherThread-0-(\d)", watched.page(broker_id)))
        assert leaders == {"1", "2", "3"} - {str(broker_id)}
    assert sum(watched.metric(LAG).values()) == 0

    watched.cluster.brokers[3].kill()
    killed_at = time.monotonic()
    wait_until(lambda: sum(watched.metric(UNDER_REPLICATED).values()) == PARTITIONS)
    took_seconds = time.monotonic() - killed_at
    assert took_seconds <= RE_8_SECONDS + MOMENT_SECONDS
    lacking = watched.metric(UNDER_REPLICATED)
    assert lacking == watched.metric("kafka_server_replicamanager_leadercount")
    assert min(lacking.values()) > 0, "on both of the leaders that are left"
    assert watched.metric("kafka_server_replicamanager_underminisrpartitioncount") == lacking
    assert watched.listed("--under-replicated-partitions") == set(range(PARTITIONS))
    assert watched.listed("--under-min-isr-partitions") == set(range(PARTITIONS))
    assert watched.listed("--unavailable-partitions") == set()

    watched.cluster.brokers[3].start()
    wait_until(lambda: set(watched.metric(UNDER_REPLICATED).values()) == {0})
    assert set(
        watched.metric("kafka_server_replicamanager_underminisrpartitioncount").values()
    ) == {0}
    assert watched.listed("--under-replicated-partitions") == set()
    assert watched.listed("--under-min-isr-partitions") == set()
    assert (
        sum(watched.metric("kafka_server_replicamanager_isrexpands_total").values()) >= PARTITIONS
    )
    assert set(watched.metric("kafka_server_replicamanager_offlinereplicacount").values()) == {0}
    print(f"{PARTITIONS} partitions were seen to lack a replica after {took_seconds:.1f} s")


@pytest.mark.timeout(600)
def test_partitions_without_a_leader_are_seen_on_the_controller(watched: Watched) -> None:
    """RE-11, RE-14: the last member of their ISRs is dead."""
    cluster = watched.cluster
    active = watched.metric("kafka_controller_kafkacontroller_activecontrollercount")
    (controller,) = (broker_id for broker_id, count in active.items() if count)
    first, second = (broker_id for broker_id in cluster.brokers if broker_id != controller)
    assignment = f"{first}:{second}"
    subprocess.run(
        [
            str(COMMAND), "topics", "create", "u", "--replica-assignment", assignment,
            "--bootstrap-server", watched.servers,
        ],
        check=True,
        capture_output=True,
        timeout=180,
    )  # fmt: skip
    cluster.brokers[first].kill()
    wait_until(lambda: sum(watched.metric(UNDER_REPLICATED).values()) == PARTITIONS + 1)
    cluster.brokers[second].kill()
    offline = "kafka_controller_kafkacontroller_offlinepartitionscount"
    wait_until(lambda: watched.metric(offline) == {controller: 1})
    cluster.brokers[second].start()
    wait_until(lambda: watched.metric(offline) == {controller: 0, second: 0})
    cluster.brokers[first].start()
    wait_until(lambda: set(watched.metric(UNDER_REPLICATED).values()) == {0})
    unclean = "kafka_controller_controllerstats_uncleanleaderelections_total"
    assert set(watched.metric(unclean).values()) == {0}
