"""SP-3: a query of Spark into a real Kafka 3.9.1, from which it reads, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from barnabas.client import NewTopic, SyncAdmin, SyncProducer
from barnabas.client.producer.batch import ProducerRecord
from tests.kit.clients.kafka_process import kafka_broker
from tests.kit.pipeline.streams import records_of
from tests.kit.pipeline.topics import numbered
from tests.kit.processes.cluster_load import committed_values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.foreign, pytest.mark.timeout(600)]

SOURCE, PARTITIONS = "kafka-in", 3
ROWS, PER_BATCH = 1_000, 400


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Kafka's broker, with records in all partitions of the source."""
    with kafka_broker(tmp_path_factory.mktemp("kafka")) as servers:
        with SyncAdmin(servers) as admin:
            admin.create_topics([NewTopic(SOURCE, PARTITIONS)])
        with SyncProducer(servers) as producer:
            producer.send_many(
                ProducerRecord(SOURCE, value, partition=number % PARTITIONS)
                for number, value in enumerate(numbered(0, ROWS))
            )
            producer.flush()
        yield servers


@pytest.mark.parametrize(
    ("exactly_once", "replayed"),
    [("true", 0), pytest.param("false", ROWS % PER_BATCH, marks=pytest.mark.soak)],
)
def test_sp_3_a_micro_batch_that_runs_again_into_kafka(
    spark: SparkSession, servers: str, tmp_path: Path, exactly_once: str, replayed: int
) -> None:
    """The last one; without the option its rows are there twice."""
    target = f"kafka-out-{exactly_once}"
    with SyncAdmin(servers) as admin:
        admin.create_topics([NewTopic(target, PARTITIONS)])

    def run() -> None:
        records = records_of(spark, servers, SOURCE, PER_BATCH)
        query = (
            records.select("key", "value")
            .writeStream.format("barnabas")
            .option("kafka.bootstrap.servers", servers)
            .option("topic", target)
            .option("exactlyOnce", exactly_once)
            .option("checkpointLocation", str(tmp_path))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(240)

    run()
    assert sorted(committed_values(servers, target, PARTITIONS)) == sorted(numbered(0, ROWS))
    # As a driver leaves it that dies when the rows are written and Spark has not noted it yet.
    last = max(int(path.name) for path in (tmp_path / "commits").glob("[0-9]*"))
    for name in (f"{last}", f".{last}.crc"):
        (tmp_path / "commits" / name).unlink()
    run()
    found = committed_values(servers, target, PARTITIONS)
    assert set(found) == set(numbered(0, ROWS))
    assert len(found) == ROWS + replayed
