"""DescribeLogDirs: sizes per directory and partition, and directories that are offline."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from barnabas import Broker
from barnabas.cli.log_dirs.strays_command import strays_of
from barnabas.errors import KafkaStorageError
from barnabas.protocol.api import DESCRIBE_LOG_DIRS
from barnabas.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResult,
)
from barnabas.types import TopicPartition
from tests.kit.broker.produces import fill
from tests.kit.broker.topics import create
from tests.kit.raw_client import RawClient, batch

LATEST = DESCRIBE_LOG_DIRS.max_version


def ask(
    client: RawClient, topics: dict[str, list[int]] | None, version: int = LATEST
) -> list[DescribeLogDirsResult]:
    wanted = None
    if topics is not None:
        wanted = [DescribableLogDirTopic(topic=t, partitions=p) for t, p in topics.items()]
    answer = client.call(DESCRIBE_LOG_DIRS, version, DescribeLogDirsRequest(topics=wanted))
    assert answer.error_code == 0
    return list(answer.results)


def sizes(result: DescribeLogDirsResult) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic.name, partition.partition_index): partition.partition_size
        for topic in result.topics
        for partition in topic.partitions
    }


@pytest.mark.parametrize("version", range(LATEST + 1))
def test_sizes_in_every_version(node: Broker, client: RawClient, topic: str, version: int) -> None:
    data = batch(b"x" * 100)
    fill(client, topic, data, data)
    (result,) = ask(client, None, version)
    assert (result.error_code, result.log_dir) == (0, str(node.data_dir.absolute()))
    found = sizes(result)
    assert found[TopicPartition(topic, 0)] == 2 * len(data)
    assert found[TopicPartition(topic, 1)] == 0
    for partition in (part for each in result.topics for part in each.partitions):
        assert (partition.offset_lag, partition.is_future_key) == (0, False)
    if version >= 4:
        assert 0 < result.usable_bytes <= result.total_bytes
    else:
        assert (result.total_bytes, result.usable_bytes) == (-1, -1)


def test_named_partitions_alone(client: RawClient, topic: str) -> None:
    (result,) = ask(client, {topic: [1, 7], "no-such-topic": [0]})
    assert list(sizes(result)) == [TopicPartition(topic, 1)]
    (nothing,) = ask(client, {})
    assert (nothing.error_code, nothing.topics) == (0, [])


def test_logs_that_were_set_aside_are_listed_and_go_by_a_command_st_10(tmp_path: Path) -> None:
    """ST-10: they take space that belongs to no topic; no broker deletes them by itself."""
    name = f"old-0.{'0' * 32}-stray"
    with Broker(config={"log.dirs": str(tmp_path)}) as broker:
        (tmp_path / name).mkdir()
        (tmp_path / name / "00000000000000000000.log").write_bytes(b"x" * 1000)
        with RawClient(broker.bootstrap_servers) as client:
            create(client, "t")
            for version in range(LATEST + 1):
                (result,) = ask(client, None, version)
                found = [(each.name, each.size) for each in result.strays]
                assert found == ([(name, 1000)] if version >= 2 else [])
            (result,) = ask(client, {"t": [0]})
            assert not result.strays
            run = CliRunner()
            listed = run.invoke(strays_of, [str(tmp_path)])
            assert listed.output == f"{tmp_path / name}  1000 bytes\n"
            refused = run.invoke(strays_of, [str(tmp_path), "--delete", "t-0"])
            assert "--delete t-0: no such stray log" in refused.output
            deleted = run.invoke(strays_of, [str(tmp_path), "--delete", name])
            assert deleted.output == f"deleted {tmp_path / name}  1000 bytes\n"
            assert not (tmp_path / name).exists()
            assert (tmp_path / "t-0").exists()
            (result,) = ask(client, None)
            assert not result.strays


def test_several_directories_and_one_that_fails(tmp_path: Path) -> None:
    """ST-10: the answer names the disk that is to be repaired."""
    first, second = tmp_path / "one", tmp_path / "two"
    config = {"log.dirs": f"{first},{second}"}
    with Broker(config=config) as broker, RawClient(broker.bootstrap_servers) as client:
        create(client, "t", 4)
        results = {each.log_dir: each for each in ask(client, None)}
        assert set(results) == {str(first), str(second)}
        assert [len(sizes(each)) for each in results.values()] == [2, 2]
        store = broker.server.node.replicas.store
        store.fail_directory(second, OSError(5, "Input/output error"))
        results = {each.log_dir: each for each in ask(client, None)}
        failed = results[str(second)]
        assert (failed.error_code, failed.topics) == (KafkaStorageError.code, [])
        assert len(sizes(results[str(first)])) == 2
