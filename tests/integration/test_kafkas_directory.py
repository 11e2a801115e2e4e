"""ZK-6: a broker on a real Kafka's log directory, after its metadata has been imported."""

from __future__ import annotations

import asyncio
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas import Broker
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.importing import ImportSummary, import_tree
from barnabas.protocol.api import (
    CREATE_PARTITIONS,
    DESCRIBE_CONFIGS,
    FETCH,
    LIST_OFFSETS,
    METADATA,
    PRODUCE,
)
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.records.batch import iterate_batches
from barnabas.records.record import iterate_records
from barnabas.storage.epochs import LeaderEpochs
from barnabas.storage.files import OsFiles
from barnabas.types import TopicPartition, uuid_from_text
from tests.kit.raw_client import RawClient, batch

pytestmark = pytest.mark.foreign

# The records are from 2023: nothing may be thought too old to be kept, and no transaction that was
# open then may be ended now; nor is anything to be compacted further than Kafka had.
CONFIG = {
    "log.cleaner.enable": "false",
    "log.retention.ms": "-1",
    "offsets.retention.minutes": "2147483647",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2147483647",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "2147483647",
}


def take_over(fixtures: Path, logs: str, tree: str, directory: Path) -> tuple[Path, ImportSummary]:
    """Unpack a log directory, and import its tree as a tool would, while no broker runs."""
    with tarfile.open(fixtures / logs) as archive:
        archive.extractall(directory)
    log_dir = directory / "logs"
    nodes = json.loads((fixtures / "zookeeper" / tree).read_text())

    def newest_epoch(name: TopicPartition) -> int:
        path = log_dir / str(name)
        return LeaderEpochs(OsFiles(), path).latest if path.is_dir() else -1

    async def import_() -> ImportSummary:
        store = EmbeddedStore.open(log_dir)
        try:
            return await import_tree(store, nodes, newest_epoch)
        finally:
            await store.close()

    return log_dir, asyncio.run(import_())


@pytest.fixture(scope="module")
def fixtures(shared: Path) -> Path:
    return shared / "fixtures" / "kafka-3.9"


@pytest.fixture(scope="module")
def batches(fixtures: Path) -> dict[str, Any]:
    """What is known of each partition; the one that Kafka was about to delete is none."""
    facts: dict[str, Any] = json.loads((fixtures / "expected" / "single-batches.json").read_text())
    return {
        name: each
        for name, each in facts.items()
        if isinstance(each, dict) and "segments" in each and not name.endswith("-delete")
    }


@pytest.fixture(scope="module")
def taken(
    fixtures: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Broker, ImportSummary]]:
    log_dir, summary = take_over(
        fixtures, "single/logs.tar.gz", "single-stopped.json", tmp_path_factory.mktemp("single")
    )
    with Broker(data_dir=log_dir, config=CONFIG) as broker:
        yield broker, summary


@pytest.fixture
def client(taken: tuple[Broker, ImportSummary]) -> Iterator[RawClient]:
    with RawClient(taken[0].bootstrap_servers) as raw:
        yield raw


def named(name: str) -> TopicPartition:
    topic, _, partition = name.rpartition("-")
    return TopicPartition(topic, int(partition))


def offset_of(client: RawClient, name: TopicPartition, timestamp: int, committed: bool) -> int:
    wanted = ListOffsetsPartition(partition_index=name.partition, timestamp=timestamp)
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=int(committed),
        topics=[ListOffsetsTopic(name=name.topic, partitions=[wanted])],
    )
    answer = client.call(LIST_OFFSETS, 9, request).topics[0].partitions[0]
    assert answer.error_code == 0, name
    return int(answer.offset)


def read(client: RawClient, name: TopicPartition, offset: int, end: int) -> list[int]:
    """The offsets of all data records from one to the other, as a consumer sees them."""
    offsets: list[int] = []
    while offset < end:
        partition = FetchPartition(
            partition=name.partition, fetch_offset=offset, partition_max_bytes=1 << 20
        )
        request = FetchRequest(
            replica_id=-1,
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=1 << 20,
            session_epoch=-1,
            topics=[FetchTopic(topic=name.topic, partitions=[partition])],
        )
        answer = client.call(FETCH, 11, request).responses[0].partitions[0]
        assert answer.error_code == 0, name
        raw = bytes(answer.records or b"")
        assert raw, f"{name} ends at {offset}, before {end}"
        for record in iterate_records(raw):
            if record.offset >= offset:
                offsets.append(record.offset)
        *_, (_, last) = iterate_batches(raw)
        offset = last.last_offset + 1
    return offsets


def test_everything_is_read_as_kafka_read_it(
    client: RawClient, fixtures: Path, batches: dict[str, Any]
) -> None:
    """Every partition with records: where it begins and ends, and each offset between."""
    facts = json.loads((fixtures / "expected" / "single-read.json").read_text())
    read_by_kafka = {name: each for name, each in facts.items() if name != "_meaning"}
    for name, each in read_by_kafka.items():
        partition, known = named(name), batches.get(name)
        start = offset_of(client, partition, -2, committed=False)
        end = offset_of(client, partition, -1, committed=False)
        if known is not None:
            assert (start, end) == (known["log_start"], known["log_end"]), name
            assert offset_of(client, partition, -1, committed=True) == known["lso"], name
        expected = [n for first, last in each["read_uncommitted"] for n in range(first, last + 1)]
        assert read(client, partition, start, end) == expected, name
    print(f"{len(read_by_kafka)} partitions read")
    assert len(read_by_kafka) >= 40


def test_topics_are_the_same_ones(
    client: RawClient, taken: tuple[Broker, ImportSummary], batches: dict[str, Any]
) -> None:
    """Ids, leaders and the internal topics with all of their partitions."""
    answer = client.call(METADATA, 12, MetadataRequest(topics=None))
    assert answer.cluster_id == "Bym1qi5rRNGEX42HBFeknA"
    topics = {topic.name: topic for topic in answer.topics}
    for internal in ("__consumer_offsets", "__transaction_state"):
        assert topics[internal].is_internal
        assert len(topics[internal].partitions) == 50
    for name, facts in batches.items():
        assert topics[named(name).topic].topic_id == uuid_from_text(facts["topic_id"])
    for topic in answer.topics:
        for partition in topic.partitions:
            assert (partition.error_code, partition.leader_id) == (0, 0)
    _, summary = taken
    assert len(topics) == summary.topics
    assert {name.topic for name in summary.new_states} == {
        "__consumer_offsets",
        "__transaction_state",
    }


def test_no_epoch_is_assigned_again(client: RawClient, batches: dict[str, Any]) -> None:
    """ZK-6: what the metadata did not say begins above every epoch of its log."""
    answer = client.call(METADATA, 12, MetadataRequest(topics=None))
    epochs = {
        f"{topic.name}-{partition.partition_index}": partition.leader_epoch
        for topic in answer.topics
        for partition in topic.partitions
    }
    for name, facts in batches.items():
        newest = max((epoch for epoch, _ in facts["leader_epochs"]), default=-1)
        is_left_out = name.startswith("__") and named(name).partition > 1
        assert epochs[name] >= newest + is_left_out, name


def test_settings_are_in_force(client: RawClient) -> None:
    wanted = DescribeConfigsResource(
        resource_type=2, resource_name="segs", configuration_keys=["segment.bytes"]
    )
    answer = client.call(DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(resources=[wanted]))
    (config,) = answer.results[0].configs
    assert (config.value, config.config_source) == ("8192", 1)


def test_life_goes_on(client: RawClient) -> None:
    """A topic of Kafka's is written to behind its records, and grows."""
    topic = TopicPartition("a-b-0", 0)
    records = TopicProduceData(
        name=topic.topic, partition_data=[PartitionProduceData(index=0, records=batch(b"new"))]
    )
    request = ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=[records])
    answer = client.call(PRODUCE, 9, request).responses[0].partition_responses[0]
    assert (answer.error_code, answer.base_offset) == (0, 2)
    assert read(client, topic, 0, 3) == [0, 1, 2]
    grown = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=topic.topic, count=3)], timeout_ms=60_000
    )
    result = client.call(CREATE_PARTITIONS, 3, grown).results[0]
    assert (result.error_code, result.error_message) == (0, None)
    assert read(client, TopicPartition(topic.topic, 2), 0, 0) == []


def test_topics_of_an_old_kafka_get_ids(fixtures: Path, tmp_path: Path) -> None:
    """inter.broker.protocol.version=2.0: no topic ids, message formats 0, 1 and 2."""
    log_dir, _ = take_over(
        fixtures, "single-ibp2.0/logs.tar.gz", "single-ibp2.0-running.json", tmp_path
    )
    ids: list[dict[str, bytes]] = []
    for _ in range(2):
        with (
            Broker(data_dir=log_dir, config=CONFIG) as broker,
            RawClient(broker.bootstrap_servers) as client,
        ):
            answer = client.call(METADATA, 12, MetadataRequest(topics=None))
            ids.append({topic.name: topic.topic_id for topic in answer.topics})
            for name, end in (("legacy-v0", 14), ("legacy-v1", 14), ("legacy-v2", 12)):
                assert offset_of(client, TopicPartition(name, 0), -1, committed=False) == end
    assert ids[0] == ids[1], "an id is for life"
    assert bytes(16) not in ids[0].values()
    assert len(set(ids[0].values())) == len(ids[0])
