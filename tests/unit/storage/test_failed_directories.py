"""Several log directories of which one is broken: at the start, or later (ST-10)."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from barnabas.config import LogConfig
from barnabas.errors import ConfigError
from barnabas.storage.directory import DirectoryError
from barnabas.storage.files import Lock, OsFiles
from barnabas.storage.store import LogStore
from barnabas.types import TopicPartition
from tests.kit.storage.disk import QuickFiles, append, batch, records
from tests.kit.storage.times import offset_for_timestamp

T = [TopicPartition("t", partition) for partition in range(4)]
TOPIC_ID = bytes(range(16))


class PartlyBroken(QuickFiles):
    """A machine with several disks; whatever lies under `broken` cannot be read or written."""

    __slots__ = ("broken",)

    def __init__(self, broken: Path | None = None) -> None:
        self.broken = broken

    def _check(self, path: Path) -> None:
        if self.broken is not None and path.is_relative_to(self.broken):
            raise OSError(5, "Input/output error", str(path))

    def lock(self, path: Path) -> Lock:
        self._check(path)
        return super().lock(path)

    def read(self, path: Path) -> bytes:
        self._check(path)
        return super().read(path)

    def write(self, path: Path, data: bytes, *, sync: bool = False) -> None:
        self._check(path)
        super().write(path, data)

    def make_directory(self, path: Path) -> None:
        self._check(path)
        super().make_directory(path)


def _open(*directories: Path, files: OsFiles | None = None) -> LogStore:
    return LogStore.open(
        files or QuickFiles(), directories, config=LogConfig(), broker_id=0, now_ms=0
    )


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """t-0 and t-2 in the first, t-1 and t-3 in the second; stopped in order."""
    one, two = tmp_path / "one", tmp_path / "two"
    store = _open(one, two)
    for name in T:
        append(store.create(name, TOPIC_ID, LogConfig()), batch(3))
    store.checkpoint_high_watermarks(dict.fromkeys(T, 3))
    store.close()
    return one, two


# --- at the start --------------------------------------------------------------------------------


def test_st_10_the_broker_starts_on_the_directories_that_are_left(
    two: tuple[Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    one, other = two
    store = _open(one, other, files=PartlyBroken(one))
    assert list(store.logs) == [T[1], T[3]]
    assert store.directories.online == (other,)
    assert store.directories.failed == (one,)
    (line,) = [each.message for each in caplog.records if each.levelno == logging.ERROR]
    assert str(one) in line and "Input/output error" in line and "\n" not in line
    store.close()
    assert (one / ".kafka_cleanshutdown").exists()
    assert (other / ".kafka_cleanshutdown").exists()
    store = _open(one, other)
    assert [store.logs[name].log_end_offset for name in T] == [3, 3, 3, 3]
    store.close()


def test_a_partition_that_may_lie_there_is_not_made_a_second_time(
    two: tuple[Path, Path],
) -> None:
    store = _open(*two, files=PartlyBroken(two[0]))
    with pytest.raises(OSError, match="t-0 may be in this log directory, but it is offline"):
        store.create(T[0], TOPIC_ID, LogConfig())
    new = store.create(TopicPartition("new", 0), TOPIC_ID, LogConfig(), is_new=True)
    assert new.directory == two[1] / "new-0"
    store.close()


def test_without_any_directory_it_does_not_start(two: tuple[Path, Path]) -> None:
    with pytest.raises(ConfigError, match="Input/output error"):
        _open(*two, files=PartlyBroken(two[0].parent))


def test_another_brokers_directory_is_no_matter_of_disks(two: tuple[Path, Path]) -> None:
    (two[0] / "meta.properties").write_text("version=0\nbroker.id=7\n")
    with pytest.raises(ConfigError, match=r"belongs to broker\.id 7"):
        _open(*two)
    assert (two[1] / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("meta.properties", b"\xff\xfe\x00"),
        ("log-start-offset-checkpoint", b"0\nmany\n"),
    ],
)
def test_a_file_that_cannot_be_done_without_takes_its_directory_offline(
    two: tuple[Path, Path], name: str, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (two[0] / name).write_bytes(content)
    (two[0] / ".barnabas_topic_ids").unlink()  # as of a log that is older than this file
    store = _open(*two)
    assert store.directories.failed == (two[0],)
    assert list(store.logs) == [T[1], T[3]]
    (line,) = [each.message for each in caplog.records if each.levelno == logging.ERROR]
    assert name.rpartition("/")[2] in line
    assert "restore it" in line or "repair it" in line
    store.close()
    assert (two[0] / name).read_bytes() == content
    with pytest.raises(ConfigError, match=name.rpartition("/")[2]):
        _open(two[0])


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("recovery-point-offset-checkpoint", b"7\n"),
        ("replication-offset-checkpoint", b"0\n1\nt 0\n"),
        ("cleaner-offset-checkpoint", b"\xff"),
        ("t-0/leader-epoch-checkpoint", b"0\n9\n"),
        ("t-0/00000000000000000000.index", b"odd"),
        ("t-0/00000000000000000000.timeindex", b"odd"),
        ("t-0/00000000000000000000.txnindex", b"odd"),
        ("t-0/00000000000000000003.snapshot", b"odd"),
    ],
)
def test_st_8_a_file_that_the_log_can_replace_is_rebuilt_and_that_is_logged(
    two: tuple[Path, Path],
    name: str,
    content: bytes,
    is_clean: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (two[0] / name).write_bytes(content)
    if not is_clean:
        (two[0] / ".kafka_cleanshutdown").unlink()
    store = _open(*two)
    assert store.directories.failed == ()
    log = store.logs[T[0]]
    assert [record.offset for record in records(log)] == [0, 1, 2]
    assert list(log.epochs.entries) == [(0, 0)]
    found = offset_for_timestamp(log, 0, 3)
    assert found is not None and found.offset == 0
    # (What is read after a crash alone, or not yet at all, is not missed otherwise.)
    if is_clean and not name.startswith("cleaner") and not name.endswith(".snapshot"):
        (line,) = {each.message for each in caplog.records}
        assert str(two[0]) in line and ("rebuilding" in line or "ignoring" in line)
    store.checkpoint_high_watermarks({})
    store.close()
    caplog.clear()
    _open(*two).close()
    assert [each.message for each in caplog.records if "cleaner" not in each.message] == []


# --- while it runs -------------------------------------------------------------------------------


def test_st_10_a_directory_that_fails_goes_alone(two: tuple[Path, Path]) -> None:
    one, other = two
    store = _open(one, other)
    lost, kept = store.logs[T[0]], store.logs[T[1]]
    slices = lost.read(0, 1000, 3)
    lost.append(memoryview(batch(1)), 0, 0)
    assert store.directory_of(T[0]) == one
    names = store.fail_directory(one, OSError(5, "Input/output error"))
    assert names == [T[0], T[2]]
    assert store.fail_directory(one, OSError(5, "again")) == []
    assert (store.directories.online, store.directories.failed) == ((other,), (one,))
    assert list(store.logs) == [T[1], T[3]]
    assert len(slices[0].read()) == len(batch(3))  # who was about to read still can
    slices[0].release()
    assert lost.health.is_failed
    with pytest.raises(OSError, match="no longer in use"):
        lost.append(memoryview(batch(1)), 0, 0)
    append(kept, batch(1))
    store.checkpoint_high_watermarks({T[1]: 4})
    store.checkpoint_recovery_points()
    store.close()
    assert not (one / ".kafka_cleanshutdown").exists()
    assert (other / ".kafka_cleanshutdown").exists()
    assert "t 0 3" in (one / "replication-offset-checkpoint").read_text()
    store = _open(one, other)
    assert [store.logs[name].log_end_offset for name in T] == [3, 4, 3, 3]
    store.close()


def test_st_10_without_any_directory_nothing_new_is_made(two: tuple[Path, Path]) -> None:
    """The last one fails, and until the broker has stopped the controller may want more of it."""
    store = _open(*two)
    for path in two:
        store.fail_directory(path, OSError(5, "Input/output error"))
    with pytest.raises(OSError, match="t-9 has no other log directory, but it is offline"):
        store.create(TopicPartition("t", 9), TOPIC_ID, LogConfig(), is_new=True)
    store.close()


def test_the_lock_of_a_failed_directory_is_given_back(two: tuple[Path, Path]) -> None:
    store = _open(*two)
    store.fail_directory(two[0], OSError(5, "Input/output error"))
    _open(two[0]).close()
    store.close()


def test_a_checkpoint_that_fails_names_its_directory_and_spares_the_others(
    two: tuple[Path, Path],
) -> None:
    one, other = two
    files = PartlyBroken()
    store = _open(one, other, files=files)
    files.broken = one
    with pytest.raises(DirectoryError, match="Input/output") as caught:
        store.checkpoint_high_watermarks(dict.fromkeys(T, 2))
    assert caught.value.directory == one
    assert "t 1 2" in (other / "replication-offset-checkpoint").read_text()
    with pytest.raises(DirectoryError) as caught:
        store.create(TopicPartition("new", 0), TOPIC_ID, LogConfig(), is_new=True)
    assert caught.value.directory == one
    store.release()


def test_sizes_are_listed_by_directory(two: tuple[Path, Path]) -> None:
    store = _open(*two)
    size = store.logs[T[0]].size_bytes
    assert store.sizes(two[0]) == {T[0]: (size, 0, False), T[2]: (size, 0, False)}
    space, strays = store.directories.volume(two[0])
    assert space.total_bytes > space.usable_bytes > 0
    assert strays == {}
    store.close()


def test_partitions_that_are_not_in_the_metadata_are_logged_and_left_alone(
    two: tuple[Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    store = _open(*two)
    assert store.unknown_to([T[0], T[1], TopicPartition("elsewhere", 0)]) == [T[2], T[3]]
    lines = [each.message for each in caplog.records]
    assert [
        str(store.logs[name].directory) in line for name, line in zip(T[2:], lines, strict=True)
    ]
    assert set(store.logs) == set(T)
    store.close()
