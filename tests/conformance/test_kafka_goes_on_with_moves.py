"""A move between log directories that we have begun is completed by Kafka, and the other way round.

The future replica's directory is all that tells of it (ST-10, KIP-113).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.client import ConfigResource, NewTopic, SyncAdmin, SyncProducer, TopicPartition
from barnabas.client.admin.configs import BROKER
from tests.kit.clients import confluent_client
from tests.kit.clients.kafka_process import KafkaCluster
from tests.kit.processes.cluster_process import cluster_process
from tests.kit.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.foreign]

NAME = TopicPartition("moving", 0)
RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
OWN = ConfigResource(BROKER, "1")
RECORDS, SIZE = 60, 50_000  # more than Kafka copies at once


def fill(servers: str) -> None:
    with SyncProducer(servers) as producer:
        for number in range(RECORDS):
            producer.send(NAME.topic, b"%d|" % number + bytes(SIZE))
        producer.flush()


def values(servers: str, count: int) -> list[int]:
    seen = confluent_client.consume(servers, NAME.topic, 1, count)
    return [int((each.value or b"").partition(b"|")[0]) for each in seen]


def begin(servers: str, target: Path, rate: int) -> None:
    """A move that is under way for as long as the rate stays."""
    with SyncAdmin(servers) as admin:
        admin.alter_configs(OWN, {RATE: rate})
        outcomes = admin.alter_replica_log_dirs(1, {NAME: str(target)})
        assert outcomes == {NAME: None}
        wait_until(lambda: any(path.stat().st_size for path in future_logs(target)))


def future_logs(target: Path) -> list[Path]:
    return list(target.glob(f"{NAME}.*-future/*.log"))


def end(servers: str, target: Path, source: Path) -> None:
    with SyncAdmin(servers) as admin:
        admin.alter_configs(OWN, {RATE: None})
    wait_until(lambda: (target / str(NAME)).is_dir() and not (source / str(NAME)).is_dir())
    assert not future_logs(target)


def test_st_10_either_completes_what_the_other_has_begun(tmp_path: Path) -> None:
    paths = [tmp_path / "one", tmp_path / "two"]
    options = (f"log.dirs={paths[0]},{paths[1]}", "log.segment.bytes=300000")
    with cluster_process(tmp_path, 1, *options) as cluster:
        (broker,) = cluster.brokers.values()
        servers = cluster.bootstrap_servers
        with SyncAdmin(servers) as admin:
            admin.create_topics(NewTopic(NAME.topic, 1))
        fill(servers)
        (home,) = [path for path in paths if (path / str(NAME)).is_dir()]
        (other,) = set(paths) - {home}
        begin(servers, other, 1)
        assert broker.stop() == 0
        kafka = KafkaCluster(cluster)
        try:
            kafka.start()
            end(servers, other, home)
            assert values(servers, RECORDS) == list(range(RECORDS))
            fill(servers)
            begin(servers, home, 1)
            kafka.stop()
        finally:
            kafka.kill_all()
        assert future_logs(home)
        broker.start()
        end(servers, home, other)
        assert values(servers, 2 * RECORDS) == 2 * list(range(RECORDS))
