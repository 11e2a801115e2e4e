"""Several log directories: a failed one goes offline alone, the last one stops the broker (ST-10).

A directory is made to fail as disks do, under the running broker: its files are gone, so the next
segment cannot be made.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas import Broker
from barnabas.client import SyncAdmin
from barnabas.errors import CorruptData, KafkaStorageError
from barnabas.protocol.api import DESCRIBE_LOG_DIRS, LIST_OFFSETS, METADATA, PRODUCE
from barnabas.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.kit.broker.topics import create
from tests.kit.processes.reported_events import the_event
from tests.kit.raw_client import RawClient, batch
from tests.kit.waiting import wait_until

PARTITIONS = 4


@pytest.fixture
def directories(tmp_path: Path) -> list[Path]:
    return [tmp_path / "first", tmp_path / "second"]


@pytest.fixture
def broker(directories: list[Path]) -> Iterator[Broker]:
    config = {"log.dirs": ",".join(map(str, directories)), "log.segment.bytes": "2000"}
    started = Broker(config=config)
    started.start()
    yield started
    started.stop()


def produce(client: RawClient, partition: int) -> int:
    """One batch that fills half a segment; its error code."""
    data = PartitionProduceData(index=partition, records=batch(bytes(900)))
    topics = [TopicProduceData(name="spread", partition_data=[data])]
    request = ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=topics)
    answer = client.call(PRODUCE, 9, request)
    code: int = answer.responses[0].partition_responses[0].error_code
    return code


def refuses(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 60).close()
    except ConnectionRefusedError:
        return True
    return False


def homes(directories: list[Path]) -> dict[int, Path]:
    return {
        number: directory
        for directory in directories
        for number in range(PARTITIONS)
        if (directory / f"spread-{number}").is_dir()
    }


def test_st_10_a_failed_directory_goes_offline_alone(
    broker: Broker, directories: list[Path]
) -> None:
    with RawClient(broker.bootstrap_servers) as client:
        create(client, "spread", PARTITIONS)
        home = homes(directories)
        assert {len([n for n in home if home[n] == each]) for each in directories} == {2}
        for number in range(PARTITIONS):
            assert produce(client, number) == 0
        shutil.rmtree(directories[1])
        lost = [number for number in home if home[number] == directories[1]]
        kept = [number for number in home if home[number] == directories[0]]
        codes = [produce(client, lost[0]) for _ in range(4)]
        assert codes[-1] == KafkaStorageError.code, codes
        assert produce(client, lost[1]) == KafkaStorageError.code, "the whole directory is offline"
        for number in kept:
            for _ in range(5):
                assert produce(client, number) == 0
        dirs = client.call(DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(topics=None)).results
        states = {each.log_dir: each.error_code for each in dirs}
        assert states == {str(directories[0]): 0, str(directories[1]): KafkaStorageError.code}
        wanted = MetadataRequest(topics=[MetadataRequestTopic(name="spread")])
        expected = {n: -1 if n in lost else 0 for n in range(PARTITIONS)}

        def is_known() -> bool:
            found = client.call(METADATA, 12, wanted).topics[0].partitions
            return {each.partition_index: each.leader_id for each in found} == expected

        wait_until(is_known)  # the controller hears of it by the metadata store
    with SyncAdmin(broker.bootstrap_servers) as admin:
        event = the_event(admin, lambda each: each.kind == "directory-lost")
    assert event.text.startswith(f"log directory {directories[1]} is offline, and 2 partitions")
    assert "No such file or directory" in event.cause, "IN-1: the error of the disk"
    assert event.is_harmless is False


def test_st_10_the_last_directory_stops_the_broker(broker: Broker, directories: list[Path]) -> None:
    with RawClient(broker.bootstrap_servers) as client:
        create(client, "spread", PARTITIONS)
        home = homes(directories)
        for directory in directories:
            shutil.rmtree(directory)
        for number in home:
            try:
                codes = [produce(client, number) for _ in range(4)]
            except (ConnectionError, CorruptData):  # it has gone while we asked
                break
            assert codes[-1] == KafkaStorageError.code
        wait_until(lambda: refuses(broker.port))
    with pytest.raises(OSError, match="all log directories have failed"):
        broker.stop()


def _end_offsets(client: RawClient) -> dict[int, int]:
    partitions = [
        ListOffsetsPartition(partition_index=number, timestamp=-1) for number in range(PARTITIONS)
    ]
    topics = [ListOffsetsTopic(name="spread", partitions=partitions)]
    request = ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=topics)
    answer = client.call(LIST_OFFSETS, 9, request)
    return {each.partition_index: each.offset for each in answer.topics[0].partitions}


def test_st_10_an_emptied_first_directory_costs_what_was_in_it_only(
    broker: Broker, directories: list[Path]
) -> None:
    """The metadata come from the other one, which is not taken for a stranger's."""
    with RawClient(broker.bootstrap_servers) as client:
        create(client, "spread", partitions=PARTITIONS)
        assert [produce(client, number) for number in range(PARTITIONS)] == [0] * PARTITIONS
        lost = [number for number, home in homes(directories).items() if home == directories[0]]
    broker.stop()
    shutil.rmtree(directories[0])
    directories[0].mkdir()
    broker.start()
    with RawClient(broker.bootstrap_servers) as client:
        ends = _end_offsets(client)
        assert ends == {number: 0 if number in lost else 1 for number in range(PARTITIONS)}
        assert [produce(client, number) for number in range(PARTITIONS)] == [0] * PARTITIONS
    assert not list(directories[1].glob("*-stray"))
    names = "barnabas-metadata.journal", "meta.properties"
    assert all((directories[0] / name).stat().st_size for name in names)


def test_st_10_a_flipped_bit_in_the_metadata_is_repaired_from_the_other_directory(
    broker: Broker, directories: list[Path], caplog: pytest.LogCaptureFixture
) -> None:
    with RawClient(broker.bootstrap_servers) as client:
        create(client, "spread", partitions=PARTITIONS)
        assert produce(client, 0) == 0
    broker.stop()
    path = directories[0] / "barnabas-metadata.journal"
    content = bytearray(path.read_bytes())
    content[30] ^= 8
    path.write_bytes(content)
    broker.start()
    with RawClient(broker.bootstrap_servers) as client:
        assert _end_offsets(client)[0] == 1
    assert f"{directories[0]}: the metadata was damaged" in caplog.text
    assert path.with_name(f"{path.name}.damaged").read_bytes() == content


def test_log_directories_are_their_owners_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """SE-6: the broker's, a partition's, and the metadata; one that is wider is logged."""
    directory = tmp_path / "new"
    before = os.umask(0)
    try:
        with Broker(directory) as started, RawClient(started.bootstrap_servers) as client:
            create(client, "spread")
    finally:
        os.umask(before)
    for path, mode in (
        (directory, 0o700),
        (directory / "spread-0", 0o700),
        (directory / "barnabas-metadata.journal", 0o600),
    ):
        assert path.stat().st_mode & 0o777 == mode, path
    assert "can be read by other users" not in caplog.text
    directory.chmod(0o755)
    with Broker(directory):
        pass
    assert f"log directory {directory} can be read by other users" in caplog.text
    assert "(mode 0755)" in caplog.text
    assert directory.stat().st_mode & 0o777 == 0o755, "it may be meant"
