"""SP-3: a checkpoint that goes on where its micro-batches are not: on another cluster, or after a
time without `exactlyOnce`. And micro-batches without rows, which count as any other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import barnabas
from barnabas.client import SyncAdmin, TopicPartition
from barnabas.client.admin.admin import NewTopic
from pyspark_barnabas.staging import staging_topic
from pyspark_barnabas.token import NotExactlyOnce
from tests.kit.pipeline.streams import records_of
from tests.kit.pipeline.topics import create, numbered, send
from tests.kit.processes.cluster_load import committed_values
from tests.kit.raw_client import NO_TIDYING
from tests.pipeline.micro_batches import end, options_of, task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ID = "moves"


@pytest.fixture
def two() -> Iterator[tuple[str, str]]:
    """Two clusters that know nothing of each other, with a topic `t` each."""
    with barnabas.Broker(config=NO_TIDYING) as one, barnabas.Broker(config=NO_TIDYING) as other:
        for servers in (one.bootstrap_servers, other.bootstrap_servers):
            with SyncAdmin(servers) as admin:
                admin.create_topics([NewTopic("t", 1)])
        yield one.bootstrap_servers, other.bootstrap_servers


def write(servers: str, batch: int, **options: str) -> bool:
    """Micro-batch `batch`, which has ten rows of its own."""
    sink = options_of(servers, topic="t", **options)
    return end(sink, batch, task(sink, numbered(10 * batch, 10 * batch + 10)))


def test_sp_3_a_cluster_that_knows_nothing_of_a_query_refuses_it(two: tuple[str, str]) -> None:
    here, there = two
    for batch in range(3):
        assert write(here, batch)
    with pytest.raises(NotExactlyOnce, match="has no progress, but this is batch 3"):
        write(there, 3)
    assert committed_values(there, "t", 1) == []


def test_sp_3_a_cluster_whose_progress_is_older_refuses_a_query(two: tuple[str, str]) -> None:
    """The checkpoint was there before, went on here, and comes back: batches 1 to 4 are here."""
    here, there = two
    assert write(there, 0)
    for batch in range(5):
        assert write(here, batch)
    for batch in (2, 5):
        with pytest.raises(NotExactlyOnce, match=f"this is batch {batch}, but batch 0 is the last"):
            write(there, batch)
    assert committed_values(there, "t", 1) == numbered(0, 10)
    assert write(there, 5, exactlyOnceBegins="5")
    assert write(there, 6, exactlyOnceBegins="5")
    assert not write(there, 6, exactlyOnceBegins="5")
    assert committed_values(there, "t", 1) == [*numbered(0, 10), *numbered(50, 70)]


def test_sp_3_the_same_number_on_another_cluster_is_that_cluster_s(two: tuple[str, str]) -> None:
    """It has had the batch from a copy of the checkpoint, so it is not written again."""
    for servers in two:
        for batch in range(2):
            assert write(servers, batch)
    for servers in two:
        assert not write(servers, 1)
        assert write(servers, 2)
        assert committed_values(servers, "t", 1) == numbered(0, 30)


ONCE = {"exactlyOnce": "true", "kafka.transactional.id": ID}


def run(spark: SparkSession, servers: str, checkpoint: Path, sink: Mapping[str, str]) -> None:
    """A query from `in` to `t` of the even numbers, until it has read what there is."""
    records = records_of(spark, servers, "in")
    (
        records.where("cast(cast(value as string) as int) % 2 = 0")
        .select("value")
        .writeStream.format("barnabas")
        .options(**{"kafka.bootstrap.servers": servers, "topic": "t", **sink})
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
        .awaitTermination()
    )


def progress(servers: str) -> int:
    """The number of the next micro-batch, as the cluster has it."""
    with SyncAdmin(servers) as admin:
        return admin.list_group_offsets(ID)[TopicPartition(staging_topic(ID), 0)][0]


def test_sp_3_a_batch_without_rows_leaves_its_number(spark: SparkSession, tmp_path: Path) -> None:
    """So that a number which is left out is a gap, and not a batch that had nothing to say."""
    with barnabas.Broker(config=NO_TIDYING) as broker:
        for topic in ("in", "t"):
            create(broker, topic)
        for batch, values in enumerate(([b"0", b"1"], [b"1", b"3"], [b"5"], [b"6", b"7"])):
            send(broker, "in", values)
            run(spark, broker.bootstrap_servers, tmp_path / "checkpoint", ONCE)
            assert progress(broker.bootstrap_servers) == batch + 1
        assert committed_values(broker.bootstrap_servers, "t", 1) == [b"0", b"6"]


def test_sp_3_exactly_once_that_was_off_for_a_while_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Whether the last batch, which ran without it, is in the topic cannot be known."""
    checkpoint = tmp_path / "checkpoint"
    with barnabas.Broker(config=NO_TIDYING) as broker:
        servers = broker.bootstrap_servers
        for topic in ("in", "t"):
            create(broker, topic)
        for batch, is_on in enumerate((True, False, False)):
            send(broker, "in", [b"%d" % (2 * batch)])
            run(spark, servers, checkpoint, ONCE if is_on else {})
        (checkpoint / "commits" / "2").unlink()
        (checkpoint / "commits" / ".2.crc").unlink(missing_ok=True)
        with pytest.raises(Exception, match="this is batch 2, but batch 0 is the last"):
            run(spark, servers, checkpoint, ONCE)
        run(spark, servers, checkpoint, {**ONCE, "exactlyOnceBegins": "3"})
        assert committed_values(servers, "t", 1) == [b"0", b"2", b"4"]
