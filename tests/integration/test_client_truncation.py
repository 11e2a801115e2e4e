"""Consumers whose leader's log turns out to be shorter than what they have read (KIP-320)."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import time
from collections.abc import Iterator
from types import ModuleType

import pytest

import barnabas
from barnabas.client import SyncAdmin, SyncConsumer, SyncProducer, metadata
from barnabas.client.admin.admin import NewTopic
from barnabas.client.admin.partition_admin import PREFERRED, UNCLEAN
from barnabas.client.consumer import truncation
from barnabas.client.consumer.committed import OffsetAndMetadata
from barnabas.client.errors import LogTruncated
from barnabas.client.view import PartitionView
from barnabas.errors import ConfigError
from barnabas.protocol.api import Api
from barnabas.types import TopicPartition
from tests.kit.raw_client import PATIENCE_S
from tests.kit.waiting import wait_until

pytestmark = pytest.mark.secured

CONFIG = {
    "auto.leader.rebalance.enable": "false",
    "controlled.shutdown.retry.backoff.ms": "100",
    "group.initial.rebalance.delay.ms": "0",
    "replica.lag.time.max.ms": "2000",
    "offsets.topic.num.partitions": "2",
}
NAMES = itertools.count()

COMMON = [(n, b"common") for n in range(5)]
LOST = [(n, b"lost") for n in range(5, 10)]
KEPT = [(n, b"kept") for n in range(5, 13)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[barnabas.Cluster]:
    with barnabas.Cluster(brokers=3, config=CONFIG) as cluster:
        with SyncAdmin(cluster.bootstrap_servers) as admin:
            admin.list_group_offsets("none")  # makes the topic while all brokers are there
        yield cluster


@pytest.fixture
def admin(cluster: barnabas.Cluster) -> Iterator[SyncAdmin]:
    with SyncAdmin(cluster.bootstrap_servers) as admin:
        yield admin


class Partition:
    """One partition that brokers 1 and 2 have, led by 1. The third broker is there for groups."""

    def __init__(self, cluster: barnabas.Cluster, admin: SyncAdmin) -> None:
        self.name = TopicPartition(f"cut-{next(NAMES)}", 0)
        self._cluster = cluster
        self._admin = admin
        admin.create_topics([NewTopic(self.name.topic, assignment={0: [1, 2]})])
        self.wait_for([1, 2])

    def wait_for(self, isr: list[int]) -> None:
        wait_until(lambda: sorted(self._described().isr) == isr)

    def wait_for_leader(self, leader: int) -> None:
        wait_until(lambda: self._described().leader == leader)

    def _described(self) -> PartitionView:
        (topic,) = self._admin.describe_topics([self.name.topic])
        return topic.partitions[0]

    def fill(self) -> None:
        """Ten records, of which only broker 1 has the last five."""
        write(self._cluster, self.name, COMMON)
        self._cluster.stop_broker(2)
        self.wait_for([1])
        write(self._cluster, self.name, LOST)

    def lose_the_end(self) -> None:
        """RE-11: broker 2 leads without being in sync, and writes eight records of its own."""
        self._cluster.stop_broker(1)
        self._cluster.start_broker(2)
        self.wait_for_leader(-1)
        self._admin.elect_leaders(UNCLEAN, [self.name])
        self.wait_for_leader(2)
        write(self._cluster, self.name, KEPT)


@pytest.fixture
def partition(cluster: barnabas.Cluster, admin: SyncAdmin) -> Iterator[Partition]:
    made = Partition(cluster, admin)
    yield made
    for broker_id in (1, 2):
        with contextlib.suppress(ConfigError):  # it runs
            cluster.start_broker(broker_id)
    made.wait_for([1, 2])


def write(
    cluster: barnabas.Cluster, name: TopicPartition, records: list[tuple[int, bytes]]
) -> None:
    """Each at the offset that is said."""
    with SyncProducer(cluster.bootstrap_servers, acks=-1) as producer:
        for offset, value in records:
            assert producer.send(name.topic, value, partition=0).result().offset == offset


def read(consumer: SyncConsumer, count: int) -> list[tuple[int, bytes | None]]:
    found: list[tuple[int, bytes | None]] = []
    until = time.monotonic() + PATIENCE_S
    while len(found) < count:
        assert time.monotonic() < until, found
        found += [(record.offset, record.value) for record in consumer.poll(500)]
    return found


@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_co_5_re_11_a_reader_goes_back_to_where_the_logs_part(
    cluster: barnabas.Cluster, partition: Partition, reset: str
) -> None:
    """Whatever the reset policy: nothing of the new log is skipped, nothing of the old one doubled.

    Without the question it would read on at 10, behind five records that it has not seen.
    """
    partition.fill()
    with SyncConsumer(cluster.bootstrap_servers, auto_offset_reset=reset) as consumer:
        consumer.assign([partition.name])
        consumer.seek(partition.name, 0)
        assert read(consumer, 10) == COMMON + LOST
        partition.lose_the_end()
        assert read(consumer, 8) == KEPT
        assert consumer.position(partition.name) == 13


def test_co_5_a_reader_without_a_reset_learns_where_the_logs_part(
    cluster: barnabas.Cluster, partition: Partition
) -> None:
    """Again and again, until it has gone elsewhere; three lost records that it has fetched already
    are not given any more."""
    partition.fill()
    with SyncConsumer(
        cluster.bootstrap_servers, auto_offset_reset="none", max_poll_records=7
    ) as consumer:
        consumer.assign([partition.name])
        consumer.seek(partition.name, 0)
        assert read(consumer, 7) == (COMMON + LOST)[:7]
        partition.lose_the_end()
        consumer.partitions_for(partition.name.topic)  # it hears of the new leader
        for _ in range(2):
            with pytest.raises(LogTruncated, match="was truncated at offset 5") as caught:
                read(consumer, 1)
            assert caught.value.topic_partition == partition.name
            assert (caught.value.offset, caught.value.diverged_at) == (7, 5)
        consumer.seek(partition.name, 5)
        assert read(consumer, 8) == KEPT


@pytest.mark.parametrize(
    ("where", "api", "version"),
    [(metadata, "METADATA", 8), (truncation, "OFFSET_FOR_LEADER_EPOCH", 2)],
)
def test_brokers_before_2_4_are_read_as_they_were(
    cluster: barnabas.Cluster,
    partition: Partition,
    monkeypatch: pytest.MonkeyPatch,
    where: ModuleType,
    api: str,
    version: int,
) -> None:
    """CO-2: they give no reliable epochs, or judge no epoch for consumers; so the position
    is all that counts, and the reader does not wait for an answer that never comes."""
    known: Api = getattr(where, api)
    older = Api(known.key, known.name, (known.min_version, version), known.flexible_from)
    monkeypatch.setattr(where, api, older)
    partition.fill()
    with SyncConsumer(cluster.bootstrap_servers, auto_offset_reset="none") as consumer:
        consumer.assign([partition.name])
        consumer.seek(partition.name, 0)
        assert read(consumer, 10) == COMMON + LOST
        partition.lose_the_end()
        assert read(consumer, 3) == KEPT[5:]


def test_co_4_a_group_goes_back_behind_what_it_has_committed(
    cluster: barnabas.Cluster, partition: Partition
) -> None:
    """CO-5: the epoch is committed with the offset, so a later life can ask too."""
    servers, group = cluster.bootstrap_servers, partition.name.topic
    partition.fill()
    with SyncConsumer(servers, group_id=group, auto_offset_reset="earliest") as consumer:
        consumer.assign([partition.name])
        assert read(consumer, 10) == COMMON + LOST
        consumer.commit_sync()
        committed = consumer.committed(partition.name)[partition.name]
        assert committed is not None and committed.offset == 10 and committed.leader_epoch > 0
    partition.lose_the_end()
    servers = cluster.bootstrap_servers
    with SyncConsumer(servers, group_id=group, auto_offset_reset="earliest") as consumer:
        consumer.assign([partition.name])
        assert read(consumer, 8) == KEPT
        consumer.commit_sync()
        after = consumer.committed(partition.name)[partition.name]
        assert after is not None and after.offset == 13
        assert after.leader_epoch > committed.leader_epoch


def test_co_2_a_leader_that_has_everything_is_read_on(
    cluster: barnabas.Cluster, partition: Partition, admin: SyncAdmin
) -> None:
    """PR-9: leadership goes away and comes back while no client asks: the old epoch is refused
    (FENCED_LEADER_EPOCH), and the new one found; the user sees nothing of it."""
    write(cluster, partition.name, COMMON)
    with SyncConsumer(cluster.bootstrap_servers, auto_offset_reset="none") as consumer:
        consumer.assign([partition.name])
        consumer.seek(partition.name, 0)
        assert read(consumer, 5) == COMMON
        for replicas in ([2, 1], [1, 2]):
            admin.alter_partition_reassignments({partition.name: replicas})
            wait_until(lambda: not admin.list_partition_reassignments())
            admin.elect_leaders(PREFERRED, [partition.name])
            partition.wait_for_leader(replicas[0])
        assert consumer.end_offsets([partition.name]) == {partition.name: 5}
        write(cluster, partition.name, KEPT)
        assert read(consumer, 8) == KEPT


@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_co_5_a_reader_starts_over_where_the_disk_was_lost(
    cluster: barnabas.Cluster, admin: SyncAdmin, reset: str
) -> None:
    """The only replica comes back empty, and writes more than there was before."""
    name = TopicPartition(f"gone-{next(NAMES)}", 0)
    admin.create_topics([NewTopic(name.topic, assignment={0: [1]})])
    write(cluster, name, [(n, b"lost") for n in range(5)])
    with SyncConsumer(cluster.bootstrap_servers, auto_offset_reset=reset) as consumer:
        consumer.assign([name])
        consumer.seek(name, 0)
        assert read(consumer, 5) == [(n, b"lost") for n in range(5)]
        cluster.stop_broker(1)
        (directory,) = cluster.data_dir.rglob(f"{name.topic}-0")
        shutil.rmtree(directory)
        cluster.start_broker(1)
        again = [(n, b"again") for n in range(8)]
        write(cluster, name, again)
        assert read(consumer, 8) == again


def test_why_a_reader_waits_in_vain_is_logged(
    cluster: barnabas.Cluster, admin: SyncAdmin, caplog: pytest.LogCaptureFixture
) -> None:
    """An offset that a group committed of a topic which is not there any more, but its namesake;
    and a partition without a leader."""
    name = TopicPartition(f"anew-{next(NAMES)}", 0)
    admin.create_topics([NewTopic(name.topic, assignment={0: [1]})])
    with SyncConsumer(cluster.bootstrap_servers, group_id=name.topic) as consumer:
        consumer.assign([name])
        consumer.commit_sync({name: OffsetAndMetadata(3, leader_epoch=7)})
        wait_until(lambda: not consumer.poll(100) and "created again" in caplog.text)
        assert f"{name} is led in epoch 0, but offset 3 was read in epoch 7" in caplog.text
        write(cluster, name, [(n, b"new") for n in range(2)])
        consumer.seek(name, 0)
        assert [offset for offset, _ in read(consumer, 2)] == [0, 1]
        cluster.stop_broker(1)
        wait_until(lambda: not consumer.poll(100) and f"{name} has no leader" in caplog.text)
        cluster.start_broker(1)
        write(cluster, name, [(2, b"later")])
        assert read(consumer, 1) == [(2, b"later")]
