"""AlterReplicaLogDirs: what begins a move, what is refused, and that a moved replica is served."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas import Broker
from barnabas.client.admin.configs import BROKER, ConfigResource
from barnabas.client.sync.admin import SyncAdmin
from barnabas.errors import (
    ClusterAuthorizationFailed,
    InvalidTopic,
    KafkaStorageError,
    LogDirNotFound,
    UnknownTopicOrPartition,
)
from barnabas.protocol.api import ALTER_REPLICA_LOG_DIRS, DESCRIBE_LOG_DIRS, FETCH
from barnabas.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from barnabas.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from tests.kit.broker.fetches import fetch_request
from tests.kit.broker.produces import fill
from tests.kit.broker.topics import create
from tests.kit.raw_client import RawClient, batch
from tests.kit.waiting import wait_until

LATEST = ALTER_REPLICA_LOG_DIRS.max_version
RATE = "replica.alter.log.dirs.io.max.bytes.per.second"


@pytest.fixture
def directories(tmp_path: Path) -> list[Path]:
    return [tmp_path / "one", tmp_path / "two"]


@pytest.fixture
def jbod(directories: list[Path]) -> Iterator[Broker]:
    with Broker(config={"log.dirs": ",".join(map(str, directories))}) as broker:
        yield broker


@pytest.fixture
def admin(jbod: Broker) -> Iterator[RawClient]:
    with RawClient(jbod.bootstrap_servers) as client:
        yield client


def move(
    client: RawClient, wanted: dict[Path | str, dict[str, list[int]]], version: int = LATEST
) -> dict[tuple[str, int], int]:
    """The error codes by partition."""
    dirs = [
        AlterReplicaLogDir(
            path=str(path),
            topics=[AlterReplicaLogDirTopic(name=t, partitions=p) for t, p in topics.items()],
        )
        for path, topics in wanted.items()
    ]
    answer = client.call(ALTER_REPLICA_LOG_DIRS, version, AlterReplicaLogDirsRequest(dirs=dirs))
    return {
        (topic.topic_name, each.partition_index): each.error_code
        for topic in answer.results
        for each in topic.partitions
    }


def places(client: RawClient, topic: str = "t") -> dict[Path, tuple[int, int, bool]]:
    """The size, lag and future mark of partition 0, by directory."""
    answer = client.call(DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(topics=None))
    return {
        Path(result.log_dir): (each.partition_size, each.offset_lag, each.is_future_key)
        for result in answer.results
        for found in result.topics
        for each in found.partitions
        if found.name == topic and each.partition_index == 0
    }


def home_and_other(client: RawClient, directories: list[Path]) -> tuple[Path, Path]:
    (home,) = places(client)
    (other,) = set(directories) - {home}
    return home, other


def slow_down(broker: Broker) -> None:
    """One turn is copied, and the next one waits for longer than any test."""
    with SyncAdmin(broker.bootstrap_servers) as client:
        client.alter_configs(ConfigResource(BROKER, "0"), {RATE: "1"})


def fill_several_turns(client: RawClient) -> int:
    """Its size in bytes."""
    data = batch(bytes(20_000))
    fill(client, "t", *[data] * 10)
    return 10 * len(data)


@pytest.mark.parametrize("version", range(LATEST + 1))
def test_a_replica_is_moved_in_every_version(
    admin: RawClient, directories: list[Path], version: int
) -> None:
    create(admin, "t")
    fill(admin, "t", batch(b"before"))
    _, other = home_and_other(admin, directories)
    assert move(admin, {other: {"t": [0]}}, version) == {("t", 0): 0}
    wait_until(lambda: list(places(admin)) == [other])
    fill(admin, "t", batch(b"after"))
    found = admin.call(FETCH, 12, fetch_request("t", 0)).responses[0].partitions[0]
    assert (found.error_code, found.high_watermark) == (0, 2)
    records = bytes(found.records)
    assert b"before" in records
    assert b"after" in records


def test_what_is_refused(
    jbod: Broker, admin: RawClient, directories: list[Path], tmp_path: Path
) -> None:
    create(admin, "t", 2)
    long = "x" * 220
    create(admin, long)
    home, other = home_and_other(admin, directories)
    assert move(
        admin, {tmp_path / "three": {"t": [0]}, other: {"no": [0], "t": [9], long: [0]}}
    ) == {
        ("t", 0): LogDirNotFound.code,
        ("no", 0): UnknownTopicOrPartition.code,
        ("t", 9): UnknownTopicOrPartition.code,
        (long, 0): InvalidTopic.code,
    }
    assert move(admin, {home.name: {"t": [0]}}) == {("t", 0): LogDirNotFound.code}
    assert move(admin, {home: {"t": [0]}}) == {("t", 0): 0}, "it is there"
    assert list(places(admin)) == [home]
    jbod.server.node.replicas.store.fail_directory(other, OSError(5, "Input/output error"))
    assert move(admin, {other: {"t": [0]}}) == {("t", 0): KafkaStorageError.code}


def test_a_denied_client_moves_nothing(
    admin: RawClient,
    directories: list[Path],
    deny: Callable[..., None],
) -> None:
    create(admin, "t")
    _, other = home_and_other(admin, directories)
    deny("kafka-cluster")
    assert move(admin, {other: {"t": [0]}}) == {("t", 0): ClusterAuthorizationFailed.code}
    assert not list(other.glob("t-0.*"))


def test_a_directory_that_was_wished_for_is_taken_at_the_creation(
    admin: RawClient, directories: list[Path]
) -> None:
    for each in reversed(directories):
        name = f"in-{each.name}"
        assert move(admin, {each: {name: [0]}}) == {(name, 0): UnknownTopicOrPartition.code}
    for each in directories:
        create(admin, f"in-{each.name}")
        assert list(places(admin, f"in-{each.name}")) == [each]


def test_a_move_under_way_is_shown_and_given_up(
    jbod: Broker, admin: RawClient, directories: list[Path]
) -> None:
    create(admin, "t")
    size_bytes = fill_several_turns(admin)
    home, other = home_and_other(admin, directories)
    slow_down(jbod)
    assert move(admin, {other: {"t": [0]}}) == {("t", 0): 0}
    wait_until(lambda: places(admin)[other][0] > 0)
    assert places(admin)[home] == (size_bytes, 0, False)
    copied_bytes, lag, is_future = places(admin)[other]
    assert is_future
    assert 0 < lag < 10
    assert copied_bytes * 10 == size_bytes * (10 - lag)
    (future,) = other.glob("t-0.*-future")
    assert move(admin, {other: {"t": [0]}}) == {("t", 0): 0}, "it goes there"
    assert [future] == list(other.glob("t-0.*-future"))
    assert move(admin, {home: {"t": [0]}}) == {("t", 0): 0}
    assert list(places(admin)) == [home]
    assert not list(other.glob("t-0.*-future"))
