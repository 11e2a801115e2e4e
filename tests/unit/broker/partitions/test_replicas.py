"""The replicas of a broker: what the controller's requests make of them, and whom they notify."""

from __future__ import annotations

import asyncio
import gc
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from barnabas import Broker
from barnabas.broker.partitions.replica import Replica
from barnabas.broker.partitions.replica_listener import ReplicaListener
from barnabas.broker.partitions.replicas import ReadFailures
from barnabas.broker.partitions.role_changes import Codes
from barnabas.broker.runtime.steps import Steps, in_turns
from barnabas.clock import SystemClock
from barnabas.cluster.controller_requests import (
    IsrAnswer,
    LeaderAndIsr,
    PartitionState,
    StopReplica,
)
from barnabas.cluster.image import PartitionImage, TopicImage
from barnabas.config import BrokerConfig
from barnabas.config.topic_keys import LONG_MAX
from barnabas.errors import (
    InconsistentTopicId,
    InvalidUpdateVersion,
    KafkaStorageError,
    UnknownTopicOrPartition,
)
from barnabas.storage.files import OsFiles
from barnabas.storage.store import LogStore
from barnabas.types import TopicPartition
from simulation.whole.files import SimFiles
from tests.kit.broker.hosted_parts import HostedParts
from tests.kit.broker.loops import inside, replicas_of
from tests.kit.broker.on_disks import TOPIC_ID, OnDisks
from tests.kit.broker.replicated import EPOCHS, Follower, Shared, fill, meet, parts_of
from tests.kit.raw_client import RawClient, batch
from tests.kit.set_clock import SetClock

News = list[tuple[str, str, int]]


class _Notified(ReplicaListener):
    """Notes which replicas follow."""

    __slots__ = ("news",)

    def __init__(self) -> None:
        self.news: News = []

    def on_following(self, replica: Replica, leader_id: int) -> None:
        assert not replica.partition.is_leader
        self.news.append(("follows", replica.topic_partition.topic, leader_id))

    def on_unfollowing(self, replica: Replica) -> None:
        self.news.append(("stopped", replica.topic_partition.topic, -1))


class Roles:
    """A partition with replicas on brokers 0, which is the one here, and 1."""

    def __init__(self, directory: Path) -> None:
        config = BrokerConfig({})
        self.store = LogStore.open(
            OsFiles(), [directory], config=config.log_config({}), broker_id=0, now_ms=0
        )
        listener = _Notified()
        self.news = listener.news
        self.parts = HostedParts(self.store, config, SystemClock(), lambda _: [listener])
        self.name = TopicPartition("t", 0)
        self._leader_epoch = self._partition_epoch = 10
        self.apply()

    @property
    def replica(self) -> Replica:
        return self.parts.replicas.replica_of(self.name)

    def apply(
        self, leader: int = 0, isr: tuple[int, ...] = (0, 1), *, is_new_epoch: bool = True
    ) -> None:
        self._leader_epoch += is_new_epoch
        self._partition_epoch += 1
        image = PartitionImage(leader, self._leader_epoch, isr, (0, 1), self._partition_epoch, 1)
        state = PartitionState(self.name, TOPIC_ID, image, {}, is_new=False)
        codes = self.parts.role_changes.apply_leader_and_isr(LeaderAndIsr(0, 1, (state,)))
        assert codes == {self.name: 0}

    def stop(self) -> None:
        stop = StopReplica(0, 1, (self.name,), delete=True)
        assert self.parts.role_changes.apply_stop_replica(stop) == {self.name: 0}


@pytest.fixture
def roles(tmp_path: Path) -> Iterator[Roles]:
    made = Roles(tmp_path)
    yield made
    made.store.close()


def _kinds(news: News) -> list[str | int]:
    return [leader if kind == "follows" else kind for kind, _, leader in news]


def test_listeners_are_notified_of_the_leader_a_replica_follows(roles: Roles) -> None:
    roles.apply(leader=1)
    roles.apply(leader=1, isr=(1,), is_new_epoch=False)  # the same leader, in the same epoch
    assert roles.replica.partition.isr == (1,)
    roles.apply(leader=1)
    roles.apply(leader=-1)
    roles.apply(leader=-1)
    roles.apply(leader=2)
    roles.apply(leader=0)
    roles.apply(leader=0)
    assert _kinds(roles.news) == [1, 1, "stopped", 2, "stopped"]


def test_a_replica_no_longer_hosted_follows_no_leader(roles: Roles) -> None:
    roles.apply(leader=1)
    roles.stop()
    assert _kinds(roles.news) == [1, "stopped"]
    with pytest.raises(UnknownTopicOrPartition):
        roles.parts.replicas.replica_of(roles.name)


def test_settings_that_changed_while_the_request_was_under_way_are_obeyed(roles: Roles) -> None:
    """TP-5: what was read for the request is older than what this broker has taken up since."""
    roles.stop()
    view = roles.parts.replicas.view
    for topic_id, flush_ms in ((bytes(16), LONG_MAX), (TOPIC_ID, 7)):
        topic = TopicImage("t", topic_id, {}, {"flush.ms": "7"})
        view.update(view.image._replace(topics={"t": topic}))
        roles.apply()
        assert roles.replica.log.config.flush_ms == flush_ms
        roles.stop()


def test_a_leader_that_stops_has_followed_no_leader(roles: Roles) -> None:
    roles.stop()
    assert roles.news == []


def test_another_isr_in_the_same_epoch_keeps_what_is_known_of_followers(
    node: Broker, client: RawClient, replicated: Shared
) -> None:
    """RE-5: the failure of a broker lets the high watermark rise, though no follower fetches."""
    replicated.replicas = (0, 1, 2)
    replicated.change_role(isr=(0, 1, 2))
    fill(client, replicated.name.topic, batch(b"a"))
    with RawClient(node.bootstrap_servers) as raw:
        Follower(raw, replicated, 1).fetch(1)
    assert replicated.replica.high_watermark == 0
    replicated.change_role(isr=(0, 1), is_new_epoch=False)
    assert replicated.replica.high_watermark == 0  # as far as is known here, 2 may still come back
    inside(node, lambda: meet(parts_of(node), {0: 100, 1: 101}))
    assert replicated.replica.high_watermark == 1
    assert replicated.replica.partition.follower_end_offset(1) == 1


def test_an_isr_that_is_older_than_what_is_known_changes_nothing(replicated: Shared) -> None:
    replicated.change_role(isr=(0,), is_new_epoch=False)
    replicated.partition_epoch -= 2
    replicated.change_role(isr=(0, 1), is_new_epoch=False)
    assert replicated.replica.partition.isr == (0,)


def test_re_8_who_does_not_keep_up_is_proposed_to_leave(
    node: Broker, client: RawClient, replicated: Shared
) -> None:
    before_ms = SystemClock().monotonic_ms()
    fill(client, replicated.name.topic, batch(b"a"))
    after_ms = SystemClock().monotonic_ms()
    inside(node, lambda: replicas_of(node).check_isr(before_ms + 29_000))
    assert replicated.proposed() == []
    inside(node, lambda: replicas_of(node).check_isr(after_ms + 31_000))
    inside(node, lambda: replicas_of(node).check_isr(after_ms + 31_001))
    assert replicated.proposed() == [(0,)]
    (proposal,) = replicated.proposals
    assert (proposal.leader_epoch, proposal.partition_epoch, proposal.topic_id) == (
        replicated.leader_epoch,
        replicated.partition_epoch,
        replicated.topic_id,
    )
    assert replicated.replica.high_watermark == 0
    replicated.agree()
    assert replicated.replica.partition.isr == (0,)
    assert replicated.replica.high_watermark == 1


def test_a_refused_proposal_waits_for_the_controller(
    node: Broker, client: RawClient, replicated: Shared
) -> None:
    fill(client, replicated.name.topic, batch(b"a"))
    later_ms = SystemClock().monotonic_ms() + 31_000
    inside(node, lambda: replicas_of(node).check_isr(later_ms))
    refused = IsrAnswer(InvalidUpdateVersion.code)
    replicated.answer(refused)
    inside(node, lambda: replicas_of(node).check_isr(later_ms))
    assert len(replicated.proposals) == 1
    replicated.change_role(isr=(0, 1), is_new_epoch=False)
    inside(node, lambda: replicas_of(node).check_isr(later_ms))
    assert replicated.proposed() == [(0,), (0,)]


def test_what_is_not_led_here_any_more_is_not_looked_at(
    node: Broker, client: RawClient, replicated: Shared
) -> None:
    fill(client, replicated.name.topic, batch(b"a"))
    later_ms = SystemClock().monotonic_ms() + 31_000
    inside(node, lambda: replicas_of(node).check_isr(later_ms))
    (proposal,) = replicated.proposals
    replicated.change_role(leader=1)
    inside(node, lambda: replicas_of(node).check_isr(later_ms))
    assert len(replicated.proposals) == 1
    answer = IsrAnswer(0, 0, proposal.leader_epoch, (0,), proposal.partition_epoch + 1)
    future = replicated.pending[-1].answer
    assert future.cancelled(), f"the leader waits for {answer} no longer"
    assert replicated.replica.partition.isr == (0, 1)


def test_the_registration_is_known_to_every_partition(node: Broker, replicated: Shared) -> None:
    def register() -> tuple[int, dict[int, int]]:
        meet(parts_of(node), {0: 7})
        partition = replicated.replica.partition
        return partition.broker_epoch, dict(partition.live)

    assert inside(node, register) == (7, {0: 7})
    assert EPOCHS == {0: 100, 1: 101, 2: 102}


# --- log directories that are out of reach -------------------------------------------------------

FIRST, SECOND, THIRD = (TopicPartition("t", number) for number in range(3))


def test_a_deleted_partition_is_gone_without_the_cycle_collector(tmp_path: Path) -> None:
    """The collector is kept from looking at partitions again, once there are many."""
    disks = OnDisks([tmp_path])
    disks.host(FIRST)
    disks.stop(FIRST)
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        disks.host(SECOND, THIRD)
        log = disks.replicas.replica_of(SECOND).log
        log.append(memoryview(bytearray(batch(b"v"))), 0, 0)
        log.flush()
        del log
        disks.stop(SECOND, THIRD)
        gc.collect()
        ours = [each for each in gc.garbage if type(each).__module__.startswith("barnabas")]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert ours == []


def test_many_new_partitions_are_kept_from_the_cycle_collector(tmp_path: Path) -> None:
    disks = OnDisks([tmp_path])
    disks.host(*(TopicPartition("few", number) for number in range(255)))
    assert disks.kept_count == 0
    disks.host(*(TopicPartition("many", number) for number in range(256)))
    assert disks.kept_count == 1
    disks.store.close()


@pytest.fixture
def directories(tmp_path: Path) -> list[Path]:
    return [tmp_path / "a", tmp_path / "b"]


@pytest.mark.parametrize("delete", [False, True])
def test_st_10_who_is_out_of_reach_is_not_stopped(directories: list[Path], delete: bool) -> None:
    """As Kafka's broker answers: its log would come back with the disk. IN-1: it is an event."""
    disks = OnDisks(directories)
    assert disks.host(FIRST, SECOND) == 0
    home = disks.store.directory_of(FIRST)
    assert home != disks.store.directory_of(SECOND)
    disks.parts.failures.on_error(home, OSError(5, "EIO"))
    event = disks.replicas.events.after(0, 100)[-1]
    assert (event.kind, event.cause, event.is_harmless) == (
        "directory-lost",
        "[Errno 5] EIO",
        False,
    )
    assert event.text.startswith(f"log directory {home} is offline, and 1 partition with it: ")
    for _ in range(2):
        assert disks.stop(FIRST, SECOND, delete=delete) == [KafkaStorageError.code, 0]
    assert disks.stop(FIRST) == [KafkaStorageError.code], "though it had to stop it before"
    with pytest.raises(KafkaStorageError):
        disks.replicas.replica_of(FIRST)
    assert disks.replicas.offline == {FIRST}
    assert (home / "t-0").is_dir()


def test_st_10_what_may_lie_in_a_directory_that_was_never_read_is_not_called_deleted(
    directories: list[Path],
) -> None:
    before = OnDisks(directories)
    before.host(FIRST, SECOND)
    home = before.store.directory_of(FIRST)
    before.store.close()
    home.rename(home.with_name("away"))
    home.write_bytes(b"not a directory")
    disks = OnDisks(directories)
    assert disks.store.directories.failed == (home,)
    assert disks.host(SECOND, is_new=False) == 0
    assert disks.stop(FIRST, SECOND) == [KafkaStorageError.code, 0]
    assert disks.stop(THIRD, delete=False) == [0], "nothing is said of what is there"
    disks.store.close()


def test_st_10_a_disk_that_refuses_the_deletion_has_failed(directories: list[Path]) -> None:
    disks = OnDisks(directories)
    disks.host(FIRST, SECOND, THIRD)
    home = disks.store.directory_of(FIRST)
    shutil.rmtree(home)
    assert disks.stop(FIRST) == [KafkaStorageError.code]
    assert disks.store.directories.failed == (home,)
    assert disks.replicas.offline == {FIRST, THIRD}
    assert disks.stop(FIRST, SECOND) == [KafkaStorageError.code, 0]


OTHER_ID = b"\2" * 16


def set_aside(home: Path) -> list[str]:
    """What lies in a log directory under a name of Kafka's for what is out of use."""
    return [path.name for path in home.iterdir() if path.name.endswith(("-stray", "-delete"))]


def test_zk_4_another_topic_s_log_is_set_aside_when_its_namesake_is_made(
    directories: list[Path], caplog: pytest.LogCaptureFixture
) -> None:
    """After a restart: a power cut has undone its deletion, or this broker missed that."""
    before = OnDisks(directories)
    before.host(FIRST)
    put(before, FIRST)
    home = before.store.directory_of(FIRST)
    before.store.close()
    disks = OnDisks(directories)
    assert disks.host(FIRST, topic_id=OTHER_ID) == 0
    replica = disks.replicas.leader_of(FIRST)
    assert (replica.log.topic_id, replica.log.log_end_offset) == (OTHER_ID, 0)
    (stray,) = set_aside(home)
    assert stray == f"t-0.{TOPIC_ID.hex()}-stray"
    assert (home / stray / "00000000000000000000.log").stat().st_size, "no data is lost"
    assert f"{home / 't-0'} belongs to an earlier topic" in caplog.text
    disks.store.close()
    disks = OnDisks(directories)
    assert disks.host(FIRST, topic_id=OTHER_ID) == 0
    assert set_aside(home) == [stray]
    assert disks.stop(FIRST) == [0]
    disks.store.directories.purge_deleted()
    assert set_aside(home) == [stray]
    disks.store.close()


def put(disks: OnDisks, name: TopicPartition) -> None:
    disks.store.logs[name].append(memoryview(bytearray(batch(b"a"))), 1, 0)
    disks.store.logs[name].write_staged()


def test_st_10_another_topic_s_log_does_not_keep_its_namesake_from_an_unread_directory(
    directories: list[Path],
) -> None:
    """A broker that may have the new one's records elsewhere does not begin an empty log."""
    before = OnDisks(directories)
    before.host(FIRST)
    home = before.store.directory_of(FIRST)
    before.store.close()
    (away,) = set(directories) - {home}
    shutil.rmtree(away)
    away.write_bytes(b"not a directory")
    disks = OnDisks(directories)
    assert disks.store.directories.failed == (away,)
    assert disks.host(FIRST, topic_id=OTHER_ID, is_new=False) == KafkaStorageError.code
    assert set_aside(home) == [f"t-0.{TOPIC_ID.hex()}-stray"]
    assert disks.stop(FIRST) == [KafkaStorageError.code]
    disks.store.close()


def test_zk_4_a_namesake_is_not_served_from_the_log_of_a_deleted_topic(
    directories: list[Path],
) -> None:
    """A broker that missed the deletion still hosts the old one when the new one begins."""
    before = OnDisks(directories)
    before.host(FIRST, SECOND)
    put(before, FIRST)
    before.store.close()
    disks = OnDisks(directories)
    disks.host(FIRST, SECOND)
    assert disks.host(FIRST, topic_id=OTHER_ID) == 0
    assert disks.replicas.leader_of(FIRST).log.log_end_offset == 0
    assert disks.replicas.leader_of(SECOND)
    disks.store.close()


def test_zk_5_a_namesake_that_lies_on_other_brokers_ends_the_deleted_topic_here(
    tmp_path: Path,
) -> None:
    """Its epochs begin again, so only the topic id tells that what is hosted has gone."""
    disks = OnDisks([tmp_path])
    disks.host(FIRST)
    elsewhere = PartitionImage(1, 0, (1,), (1,), 0, 1)

    def learn(topic_id: bytes) -> None:
        numbers = {FIRST.partition: elsewhere}
        disks.parts.role_changes.stop_what_moved([TopicImage(FIRST.topic, topic_id, numbers, {})])

    learn(TOPIC_ID)
    assert disks.replicas.leader_of(FIRST), "of its own topic it is no newer"
    learn(OTHER_ID)
    assert disks.replicas.get(FIRST) is None
    assert FIRST in disks.store.logs, "the log stays"
    disks.store.close()


def test_zk_4_a_late_word_of_a_deleted_topic_does_not_take_its_namesake_s_log(
    directories: list[Path],
) -> None:
    """It was sent before, on a connection that the controller has given up."""
    disks = OnDisks(directories)
    disks.host(FIRST)
    put(disks, FIRST)
    home = disks.store.directory_of(FIRST)
    assert disks.host(FIRST, topic_id=OTHER_ID) == InconsistentTopicId.code
    assert disks.replicas.leader_of(FIRST).log.log_end_offset == 1
    assert set_aside(home) == []
    disks.parts.view.on_registered(
        7
    )  # what is said to this registration, the other one never heard
    assert disks.host(FIRST, topic_id=OTHER_ID) == 0
    assert set_aside(home) == [f"t-0.{TOPIC_ID.hex()}-stray"]
    disks.store.close()


class NamesThatFail(OsFiles):
    """No log directory syncs its names any more."""

    __slots__ = ("failing",)

    def __init__(self) -> None:
        self.failing: list[Path] = []

    def sync(self, path: Path) -> None:
        if path in self.failing:
            raise OSError(5, "EIO")
        super().sync(path)


def test_st_10_a_deletion_that_may_be_undone_is_not_reported(directories: list[Path]) -> None:
    files = NamesThatFail()
    disks = OnDisks(directories, files)
    disks.host(FIRST, SECOND)
    home = disks.store.directory_of(FIRST)
    files.failing.append(home)
    assert disks.stop(FIRST, SECOND) == [KafkaStorageError.code, 0]
    assert disks.store.directories.failed == (home,)
    assert disks.replicas.offline == {FIRST}


def test_st_10_what_was_reported_as_deleted_is_not_back_after_a_power_cut() -> None:
    """Or it would be another topic's log under the name of one that is made again."""
    for seed in range(40):
        machine = SimFiles(SetClock(), [Path("/a"), Path("/b")])
        disks = OnDisks([Path("/a"), Path("/b")], machine.mounted())
        disks.host(FIRST, SECOND, THIRD)
        for name in (FIRST, SECOND, THIRD):
            put(disks, name)
            disks.store.logs[name].flush()
        assert disks.stop(FIRST, SECOND) == [0, 0]
        machine.power_cut(Random(seed))
        disks = OnDisks([Path("/a"), Path("/b")], machine.mounted())
        assert set(disks.store.logs) == {THIRD}, seed
        assert disks.host(FIRST, topic_id=OTHER_ID) == 0
        assert disks.replicas.leader_of(FIRST).log.log_end_offset == 0


class FilesByThread(OsFiles):
    """Notes which thread made each file."""

    __slots__ = ("made_by",)

    def __init__(self) -> None:
        self.made_by: dict[Path, threading.Thread] = {}

    def make_directory(self, path: Path) -> None:
        self.made_by[path] = threading.current_thread()
        super().make_directory(path)

    def write(self, path: Path, data: bytes, *, sync: bool = False) -> None:
        self.made_by[path] = threading.current_thread()
        super().write(path, data, sync=sync)


def test_the_files_of_new_logs_are_made_beside_the_loop(directories: list[Path]) -> None:
    """On a disk that takes a millisecond for each, the loop would serve no client for as long."""
    files = FilesByThread()
    disks = OnDisks(directories, files)
    files.made_by.clear()
    names = tuple(TopicPartition("t", number) for number in range(100))
    led = PartitionImage(0, 0, (0,), (0,), 0, 1)
    states = tuple(PartitionState(name, TOPIC_ID, led, {}, is_new=True) for name in names)
    steps = disks.parts.role_changes.leader_and_isr(LeaderAndIsr(1, 1, states))
    assert set(asyncio.run(in_turns(steps)).values()) == {0}
    of_logs = [path for path in files.made_by if path.parent.name.startswith("t-")]
    assert len(of_logs) >= 500
    assert threading.current_thread() not in {files.made_by[path] for path in of_logs}
    assert len({disks.store.directory_of(name) for name in names}) == 2
    disks.store.close()


@pytest.mark.thorough
def test_a_topic_of_many_partitions_does_not_keep_the_broker_from_its_clients(
    directories: list[Path],
) -> None:
    names = tuple(TopicPartition("t", number) for number in range(400))
    led = PartitionImage(0, 0, (0,), (0,), 0, 1)
    states = tuple(PartitionState(name, TOPIC_ID, led, {}, is_new=True) for name in names)
    disks = OnDisks(directories)

    async def turns_during(steps: Steps[Codes]) -> int:
        turns = 0
        task = asyncio.ensure_future(in_turns(steps))
        while not task.done():
            await asyncio.sleep(0)
            turns += 1
        assert set(task.result().values()) == {0}
        return turns

    assert (
        asyncio.run(
            turns_during(disks.parts.role_changes.leader_and_isr(LeaderAndIsr(1, 1, states)))
        )
        > 20
    )
    stop = StopReplica(1, 1, names, delete=True)
    assert asyncio.run(turns_during(disks.parts.role_changes.stop_replica(stop))) > 20
    disks.store.close()


def test_a_read_that_fails_is_logged_once_a_minute_for_a_partition(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = SetClock()
    failures = ReadFailures(clock)
    for name in (TopicPartition("t", 0), TopicPartition("t", 1)):
        for _ in range(1000):
            failures.on_failure("read", name, ValueError("damage"))
    assert caplog.messages == ["read of t-0 failed: damage", "read of t-1 failed: damage"]
    caplog.clear()
    clock.at_ms += 60_000
    failures.on_failure("read", TopicPartition("t", 0), ValueError("damage"))
    assert caplog.messages == ["read of t-0 failed: damage (999 more in the last minute)"]
