"""The log directories: who owns them, starts, clean stops, creation and deletion (TP-3, ST-8)."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Thread

import pytest

from barnabas.config import LogConfig
from barnabas.errors import ConfigError, CorruptData
from barnabas.records.record import iterate_records
from barnabas.storage.files import Entry, Lock, OsFiles
from barnabas.storage.new_log import NewLog
from barnabas.storage.store import LogStore
from barnabas.types import TopicPartition
from tests.kit.broker.hosting import HeldFiles
from tests.kit.raw_client import PATIENCE_S
from tests.kit.storage.disk import QuickFiles, WatchedFiles, append, batch, read
from tests.kit.waiting import wait_until

CLUSTER = "Bym1qi5rRNGEX42HBFeknA"
TOPIC_ID = bytes(range(16))
OTHER_ID = bytes(reversed(TOPIC_ID))
T0, T1, T2 = (TopicPartition("t", partition) for partition in range(3))


def open_store(*directories: Path, broker_id: int = 0, files: OsFiles | None = None) -> LogStore:
    return LogStore.open(
        files or QuickFiles(), directories, config=LogConfig(), broker_id=broker_id, now_ms=0
    )


def test_tp_3_a_partition_is_a_directory_named_by_topic_and_number(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    for partition in range(3):
        store.create(TopicPartition("test", partition), TOPIC_ID, LogConfig())
    store.create(TopicPartition("a-b", 0), TOPIC_ID, LogConfig())
    store.close()
    names = sorted(path.name for path in tmp_path.iterdir() if path.is_dir())
    assert names == ["a-b-0", "test-0", "test-1", "test-2"]
    again = open_store(tmp_path)
    assert set(again.logs) == {
        TopicPartition("a-b", 0),
        *(TopicPartition("test", partition) for partition in range(3)),
    }
    again.close()


def test_st_1_the_small_files_have_kafkas_bytes(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.directories.set_cluster_id(CLUSTER)
    log = store.create(T0, TOPIC_ID, LogConfig())
    for name in ("recovery-point", "replication", "log-start", "cleaner"):
        assert (tmp_path / f"{name}-offset-checkpoint").read_text() == "0\n0\n"
    append(log, batch(3))
    store.checkpoint_high_watermarks({T0: 3})
    store.close()
    assert (tmp_path / "t-0" / "partition.metadata").read_text() == (
        "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    )
    assert (tmp_path / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":-1}'
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n1\nt 0 3\n"
    assert (tmp_path / "replication-offset-checkpoint").read_text() == "0\n1\nt 0 3\n"
    assert set((tmp_path / "meta.properties").read_text().splitlines()) == {
        "#",
        "version=0",
        "broker.id=0",
        f"cluster.id={CLUSTER}",
    }


def test_st_8_a_clean_stop_is_known_by_its_marker_alone(tmp_path: Path) -> None:
    marker = tmp_path / ".kafka_cleanshutdown"
    store = open_store(tmp_path)
    append(store.create(T0, TOPIC_ID, LogConfig()), batch(5))
    assert not marker.exists()
    store.close()
    assert marker.exists()
    # Older releases wrote it empty.
    marker.write_bytes(b"")
    files = WatchedFiles()
    store = open_store(tmp_path, files=files)
    assert not marker.exists()
    assert files.synced[0] == tmp_path.name  # the removal is durable before anything changes
    assert store.logs[T0].recovery_point == 5
    store.release()  # as a crash
    store = open_store(tmp_path)
    assert store.logs[T0].log_end_offset == 5
    store.close()


def test_what_is_in_the_logs_outlives_a_restart(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    log = store.create(T0, TOPIC_ID, LogConfig())
    log.assign_leader_epoch(0)
    append(log, batch(2))
    store.checkpoint_high_watermarks({T0: 1})
    store.close()
    store = open_store(tmp_path)
    log = store.logs[T0]
    assert (log.topic_id, log.log_end_offset, log.epochs.latest) == (TOPIC_ID, 2, 0)
    assert store.high_watermarks == {T0: 1}
    assert len(list(iterate_records(read(log, 0)))) == 2
    store.close()


def test_high_watermarks_of_partitions_that_are_not_named_are_kept(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    for name in (T0, T1):
        append(store.create(name, TOPIC_ID, LogConfig()), batch(9))
    store.checkpoint_high_watermarks({T0: 4, T1: 5})
    store.checkpoint_high_watermarks({T1: 6})
    store.close()
    store = open_store(tmp_path)
    assert store.high_watermarks == {T0: 4, T1: 6}
    store.close()


def test_a_high_watermark_above_the_log_is_not_believed(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    append(store.create(T0, TOPIC_ID, LogConfig()), batch(2))
    store.checkpoint_high_watermarks({T0: 99})
    store.close()
    store = open_store(tmp_path)
    assert store.high_watermarks == {T0: 2}
    store.close()


def test_an_idle_broker_does_not_touch_its_disk(tmp_path: Path) -> None:
    files = WatchedFiles()
    store = open_store(tmp_path, files=files)
    append(store.create(T0, TOPIC_ID, LogConfig()), batch(2))
    store.checkpoint_recovery_points()
    store.checkpoint_high_watermarks({T0: 2})
    files.synced.clear()
    for _ in range(3):
        store.checkpoint_recovery_points()
        store.checkpoint_high_watermarks({T0: 2})
    assert files.synced == []
    store.close()


# --- several directories -------------------------------------------------------------------------


def test_a_new_partition_goes_where_the_fewest_are(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    store = open_store(one, two)
    for partition in range(5):
        store.create(TopicPartition("t", partition), TOPIC_ID, LogConfig())
    homes = [len(list(path.glob("t-*"))) for path in (one, two)]
    assert homes == [3, 2]
    append(store.logs[T1], batch(4))
    store.checkpoint_high_watermarks({T0: 0, T1: 4})
    store.close()
    assert (two / "replication-offset-checkpoint").read_text() == "0\n1\nt 1 4\n"
    store = open_store(two, one)
    assert len(store.logs) == 5
    assert store.high_watermarks[T1] == 4
    store.close()


def test_a_log_is_made_where_it_was_placed(tmp_path: Path) -> None:
    """Its files may have been laid out there before, by a thread."""
    one, two = tmp_path / "one", tmp_path / "two"
    store = open_store(one, two)
    places = [store.place(TopicPartition("t", number), TOPIC_ID) for number in range(4)]
    for place in places[:2]:
        place.lay_out()
    assert [place.path.parent for place in places] == [one, two, one, two]
    assert store.place(T1, TOPIC_ID) is places[1]
    for number in (3, 2, 1, 0):
        store.create(TopicPartition("t", number), TOPIC_ID, LogConfig())
    assert sorted(path.name for path in one.glob("t-*")) == ["t-0", "t-2"]
    assert sorted(path.name for path in two.glob("t-*")) == ["t-1", "t-3"]
    assert [path.name for path in sorted((one / "t-0").iterdir())] == [
        path.name for path in sorted((one / "t-2").iterdir())
    ]
    append(store.logs[T1], batch(4))
    store.close()
    store = open_store(one, two)
    assert store.logs[T1].log_end_offset == 4
    store.close()


def test_re_8_a_slow_checkpoint_holds_up_no_other_and_no_new_log(tmp_path: Path) -> None:
    """Places are chosen on the event loop, and watermarks are of another file."""
    files = HeldFiles()
    store = open_store(tmp_path, files=files)
    store.create(T0, TOPIC_ID, LogConfig())
    append(store.logs[T0], batch(4))
    store.logs[T0].flush()
    files.is_held = lambda path: path.name.startswith("recovery-point")
    slow = Thread(target=store.checkpoint_recovery_points)
    slow.start()
    wait_until(lambda: files.arrived == 1)
    placed: list[NewLog] = []

    def others() -> None:
        store.checkpoint_high_watermarks({T0: 4})
        placed.append(store.place(T1, TOPIC_ID))

    beside = Thread(target=others)
    beside.start()
    beside.join(PATIENCE_S / 2)
    try:
        assert not beside.is_alive() and placed and slow.is_alive()
        assert (tmp_path / "replication-offset-checkpoint").read_text() == "0\n1\nt 0 4\n"
        # Its files wait, in a thread: the file that is being written may name an earlier log.
        laid_out = Thread(target=placed[0].lay_out)
        laid_out.start()
    finally:
        files.let_go()
        beside.join()
        slow.join()
    laid_out.join()
    assert placed[0].is_laid_out
    store.close()


def test_a_log_that_was_only_laid_out_has_nothing_of_its_namesake(tmp_path: Path) -> None:
    """The process dies before it is made: what the deleted one had reached is not in its way."""
    store = open_store(tmp_path)
    log = store.create(T0, TOPIC_ID, LogConfig())
    for _ in range(3):
        append(log, batch(4))
    log.flush()
    log.raise_log_start(8)
    store.checkpoint_recovery_points()
    store.checkpoint_high_watermarks({T0: 12})
    store.delete(T0)
    store.place(T0, OTHER_ID).lay_out()
    store.release()  # as kill -9
    store = open_store(tmp_path)
    assert (store.logs[T0].log_start_offset, store.logs[T0].log_end_offset) == (0, 0)
    store.close()


def test_a_place_is_given_up_with_its_directory_or_its_topic(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    store = open_store(one, two)
    placed = store.place(T0, TOPIC_ID)
    placed.lay_out()
    other = store.place(T0, OTHER_ID)
    assert other is not placed and other.path == placed.path
    assert store.create(T0, OTHER_ID, LogConfig()).topic_id == OTHER_ID
    placed = store.place(T1, TOPIC_ID)
    assert placed.path.parent == two
    store.fail_directory(two, OSError(5, "EIO"))
    assert store.place(T1, TOPIC_ID, is_new=True).path.parent == one
    with pytest.raises(OSError, match="may be in this log directory, but it is offline"):
        store.place(TopicPartition("t", 2), TOPIC_ID)
    store.close()


class HalfBroken(QuickFiles):
    """A machine on which one partition's part of the disk fails."""

    __slots__ = ("is_broken",)

    def __init__(self) -> None:
        self.is_broken = False

    def sync(self, path: Path) -> None:
        if self.is_broken and "t-1" in path.parts:
            raise OSError(5, "Input/output error")
        super().sync(path)


def test_st_8_a_directory_that_failed_gets_no_marker_and_its_neighbour_does(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    files = HalfBroken()
    store = open_store(one, two, files=files)
    for name in (T0, T1, T2):
        append(store.create(name, TOPIC_ID, LogConfig()), batch(4))
    files.is_broken = True
    with pytest.raises(OSError, match="Input/output"):
        store.close()
    assert (one / ".kafka_cleanshutdown").exists()
    assert not (two / ".kafka_cleanshutdown").exists()
    store = open_store(one, two)
    assert [store.logs[name].log_end_offset for name in (T0, T1, T2)] == [4, 4, 4]
    assert [store.logs[name].recovery_point for name in (T0, T1, T2)] == [4, 0, 4]
    store.close()


def test_a_partition_in_two_directories_is_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        store = open_store(tmp_path / name)
        store.create(T0, TOPIC_ID, LogConfig())
        store.close()
    with pytest.raises(ConfigError, match=r"t-0 is in both .*one and .*two"):
        open_store(tmp_path / "one", tmp_path / "two")


# --- deletion ------------------------------------------------------------------------------------


def test_a_deleted_partition_makes_room_at_once(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    log = store.create(T0, TOPIC_ID, LogConfig())
    append(log, batch(3))
    slices = log.read(0, 1000, 3)
    store.delete(T0)
    assert T0 not in store.logs
    names = [path.name for path in tmp_path.iterdir() if path.is_dir()]
    assert names == [f"t-0.{TOPIC_ID.hex()}-delete"]
    assert len(slices[0].read()) == len(batch(3))
    slices[0].release()
    again = store.create(T0, OTHER_ID, LogConfig())
    assert (again.log_end_offset, again.topic_id) == (0, OTHER_ID)
    store.directories.purge_deleted()
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["t-0"]
    store.close()


class Listed(QuickFiles):
    """Counts how often a directory is listed."""

    __slots__ = ("times",)

    def __init__(self) -> None:
        self.times = 0

    def list(self, path: Path) -> list[Entry]:
        self.times += 1
        return super().list(path)


def test_a_deletion_does_not_look_through_its_directory(tmp_path: Path) -> None:
    """ZK-4: of thousands of partitions each would look through all the others' names."""
    files = Listed()
    store = open_store(tmp_path, files=files)
    names = [TopicPartition("t", number) for number in range(20)]
    for name in names:
        store.create(name, TOPIC_ID, LogConfig())
    files.times = 0
    store.delete(*names)
    assert files.times == 0
    assert store.logs == {}
    store.close()


def test_a_flush_that_meets_a_deletion_is_harmless(tmp_path: Path) -> None:
    """It runs in a thread; the partition may go before it is done."""
    store = open_store(tmp_path, files=OsFiles())
    log = store.create(T0, TOPIC_ID, LogConfig(segment_bytes=200))
    for _ in range(3):
        append(log, batch(1, 100))
    flushes = log.take_unflushed()
    store.delete(T0)
    for flush in flushes:
        flush()
    store.close()


def test_what_a_crash_left_of_a_deletion_is_removed_at_the_start(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.create(T0, TOPIC_ID, LogConfig())
    store.delete(T0)
    store.release()
    store = open_store(tmp_path)
    assert not store.logs
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]
    store.close()


def test_a_long_topic_is_cut_when_it_is_set_aside(tmp_path: Path) -> None:
    name = TopicPartition("x" * 249, 123)
    store = open_store(tmp_path)
    store.create(name, TOPIC_ID, LogConfig())
    store.delete(name)
    (left,) = [path.name for path in tmp_path.iterdir() if path.is_dir()]
    assert len(left) == 255
    assert left.endswith(f"x-123.{TOPIC_ID.hex()}-delete")
    store.close()


# --- bad input -----------------------------------------------------------------------------------


def test_a_directory_in_use_is_refused_in_one_line(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(ConfigError, match="locked by another broker") as caught:
        open_store(tmp_path)
    assert "\n" not in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    store.close()
    open_store(tmp_path).close()


def test_nothing_is_begun_unless_all_directories_can_be_had(tmp_path: Path) -> None:
    """Or the first one would need a scan because the second one was locked."""
    one, two = tmp_path / "one", tmp_path / "two"
    open_store(one).close()
    other = open_store(two)
    with pytest.raises(ConfigError, match="locked"):
        open_store(one, two)
    assert (one / ".kafka_cleanshutdown").exists()
    other.close()
    open_store(one, two).close()


class Forbidden(QuickFiles):
    """What a user finds who is not the owner."""

    __slots__ = ()

    def lock(self, path: Path) -> Lock:
        raise PermissionError(13, "Permission denied", str(path))


def test_a_directory_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written: Permission denied") as caught:
        open_store(tmp_path / "logs", files=Forbidden())
    assert str(tmp_path / "logs") in str(caught.value)


def test_a_file_is_no_log_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match="file cannot be written: Not a directory"):
        open_store(tmp_path / "file")
    with pytest.raises(ConfigError, match="cannot be written: Not a directory"):
        open_store(tmp_path / "file" / "logs")


def test_another_brokers_directory_is_refused(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.directories.set_cluster_id(CLUSTER)
    store.close()
    with pytest.raises(ConfigError, match=r"belongs to broker\.id 0.* broker\.id 7"):
        open_store(tmp_path, broker_id=7)
    store = open_store(tmp_path)
    assert store.directories.cluster_id == CLUSTER
    store.directories.set_cluster_id(CLUSTER)
    with pytest.raises(ConfigError, match=f"belongs to cluster {CLUSTER}"):
        store.directories.set_cluster_id("A" * 22)
    store.close()


def test_directories_of_two_clusters_are_refused(tmp_path: Path) -> None:
    for name in ("A", "B"):
        store = open_store(tmp_path / name)
        store.directories.set_cluster_id(name * 22)
        store.close()
    with pytest.raises(ConfigError, match="different clusters"):
        open_store(tmp_path / "A", tmp_path / "B")


def test_a_directory_of_kraft_is_refused(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=1\n")
    with pytest.raises(ConfigError, match="KRaft"):
        open_store(tmp_path)
    (tmp_path / "meta.properties").unlink()
    (tmp_path / "__cluster_metadata-0").mkdir()
    with pytest.raises(ConfigError, match="KRaft"):
        open_store(tmp_path)


@pytest.mark.parametrize("name", ["photos", "t-", "-1", "t-x", "t-1-"])
def test_a_directory_that_is_no_partition_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(ConfigError, match="<topic>-<partition>"):
        open_store(tmp_path)
    (tmp_path / name).rmdir()
    open_store(tmp_path).close()


def test_directories_that_are_known_are_left_alone(tmp_path: Path) -> None:
    names = ["lost+found", "remote-log-index-cache", f"t-0.{'0' * 32}-stray"]
    for name in names:
        (tmp_path / name).mkdir()
    store = open_store(tmp_path)
    assert not store.logs
    store.close()
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == sorted(names)


def test_a_directory_is_not_listed_twice(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="listed twice"):
        open_store(tmp_path, tmp_path)


@pytest.mark.parametrize("cut", ["truncate", "start_at"])
def test_a_log_that_goes_back_below_its_start_keeps_what_is_written_there(
    tmp_path: Path, cut: str
) -> None:
    """RE-12: the checkpointed start is of a past that the new leader does not share."""
    store = open_store(tmp_path)
    log = store.create(T0, TOPIC_ID, LogConfig())
    for _ in range(9):
        append(log, batch(2))
    log.roll()
    log.flush()
    log.raise_log_start(15)
    store.checkpoint_recovery_points()
    assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n1\nt 0 15\n"
    if cut == "truncate":
        store.truncations.truncate(T0, 8)
    else:
        store.truncations.start_at(T0, 8)
    append(log, batch(2))
    assert (log.log_start_offset, log.log_end_offset) == (8, 10)
    store.release()  # as kill -9
    again = open_store(tmp_path)
    assert (again.logs[T0].log_start_offset, again.logs[T0].log_end_offset) == (8, 10)
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n1\nt 0 8\n"
    again.close()


def test_st_8_a_damaged_index_keeps_no_other_log_from_its_clean_stop(tmp_path: Path) -> None:
    """Its directory is scanned at the next start, which rebuilds the index."""
    directories = (tmp_path / "a", tmp_path / "b")
    store = open_store(*directories)
    for name in (T0, T1):
        append(store.create(name, TOPIC_ID, LogConfig()), batch(2))
    store.close()
    store = open_store(*directories)
    append(store.logs[T1], batch(2))
    damaged, sound = (store.directory_of(name) for name in (T0, T1))
    os.truncate(damaged / "t-0" / f"{0:020}.timeindex", 0)
    with pytest.raises(CorruptData):
        store.close()
    assert not (damaged / ".kafka_cleanshutdown").exists()
    assert (sound / ".kafka_cleanshutdown").exists()
    assert (sound / "recovery-point-offset-checkpoint").read_text() == "0\n1\nt 1 4\n"
    store = open_store(*directories)
    assert [store.logs[name].log_end_offset for name in (T0, T1)] == [2, 4]
    store.close()
