"""RE-12: a broker of Kafka 2.3.1 in our cluster is left out, as it cannot carry our requests.

It registers in the same ZooKeeper. No partition is placed on it or led by it, and it is named in
the log and by `barnabas cluster health`, until a broker that knows our versions has its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.cli.main import main
from barnabas.client import NewTopic, SyncAdmin, SyncConsumer, SyncProducer
from barnabas.errors import InvalidReplicationFactor
from tests.kit import foreign
from tests.kit.clients.kafka_2_3_tools import OldTools
from tests.kit.clients.kafka_process import KafkaProcess
from tests.kit.processes.cluster_process import ClusterProcess
from tests.kit.waiting import wait_until

pytestmark = [pytest.mark.foreign, pytest.mark.slow]

Capture = pytest.CaptureFixture[str]
OLD = 3


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ClusterProcess]:
    """Brokers 1 and 2 run; the third one's place is free."""
    cluster = ClusterProcess(tmp_path, 3)
    try:
        cluster.zookeeper.start()
        cluster.brokers[1].start()
        cluster.brokers[2].start()
        yield cluster
    finally:
        cluster.kill_all()


@pytest.fixture
def old(cluster: ClusterProcess) -> Iterator[KafkaProcess]:
    """A broker of Kafka 2.3.1 in that place."""
    process = KafkaProcess(cluster.brokers[OLD], foreign.require_kafka_2_3_jars())
    try:
        process.wait_until_ready()
        yield process
    finally:
        process.kill()


def ours(cluster: ClusterProcess) -> str:
    return f"{cluster.brokers[1].bootstrap_servers},{cluster.brokers[2].bootstrap_servers}"


def health(cluster: ClusterProcess, capfd: Capture) -> tuple[int, str]:
    capfd.readouterr()
    code = main(["cluster", "health", "--bootstrap-server", ours(cluster)])
    return code, capfd.readouterr().out


def test_re_12_a_broker_of_kafka_2_3_1_stalls_no_partition(
    cluster: ClusterProcess, old: KafkaProcess, tmp_path: Path, capfd: Capture
) -> None:
    def said() -> list[str]:
        logs = (cluster.brokers[each].log.read_text() for each in (1, 2))
        return [line for log in logs for line in log.splitlines() if "is excluded" in line]

    wait_until(lambda: said() != [])
    with SyncAdmin(ours(cluster)) as admin:
        with pytest.raises(InvalidReplicationFactor, match="larger than the number of live"):
            admin.create_topics([NewTopic("three", 1, 3)])
        admin.create_topics([NewTopic("placed", 6, 1)])
        with OldTools(tmp_path) as tools:
            at = ("--zookeeper", cluster.zookeeper.connect, "--create", "--topic", "written")
            tools.run("kafka-topics", *at, "--replica-assignment", f"{OLD}:1,{OLD}:2")

        def leaders() -> set[int]:
            topics = admin.describe_topics(["placed", "written"])
            return {each.leader for topic in topics for each in topic.partitions}

        wait_until(lambda: leaders() == {1, 2})
    with SyncProducer(ours(cluster)) as producer:
        for number in range(6):
            producer.send("placed", b"value", partition=number)
            producer.send("written", b"value", partition=number % 2)
    with SyncConsumer(ours(cluster), auto_offset_reset="earliest") as consumer:
        consumer.assign([("placed", each) for each in range(6)] + [("written", 0), ("written", 1)])
        assert len([consumer.getone() for _ in range(12)]) == 12
    (line,) = said()
    assert "WARNING" in line and f"broker {OLD} is excluded" in line, line
    code, output = health(cluster, capfd)
    assert code == 1
    assert output.startswith(
        f"left-out: broker {OLD} is excluded because it does not support LeaderAndIsr"
    )
    old.stop()
    cluster.brokers[OLD].start()
    wait_until(lambda: health(cluster, capfd)[0] == 0)
    assert len(said()) == 1
