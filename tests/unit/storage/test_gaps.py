"""A hole after a power cut is distinguished from one of compaction (ST-8, decision 15)."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from barnabas.config import LogConfig
from barnabas.records.batch import assign_in_place
from barnabas.records.record import iterate_records
from barnabas.storage.gaps import FILE_NAME, UNKNOWN, begin_without_gaps
from barnabas.storage.log import Log
from barnabas.storage.store import LogStore
from tests.kit.storage.disk import (
    CRASHED,
    NAME,
    T0,
    QuickFiles,
    WatchedFiles,
    append,
    batch,
    open_at,
    read,
)
from tests.kit.storage.passes import clean, keyed

CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=100)
COMPACTED = LogConfig(segment_bytes=400, cleanup_policy="compact", index_interval_bytes=100)
FAR = 3_000_000_000


def _opened(directory: Path, config: LogConfig = CONFIG) -> tuple[LogStore, Log]:
    store = LogStore.open(QuickFiles(), [directory], config=config, broker_id=0, now_ms=0)
    return store, store.logs.get(NAME) or store.create(NAME, bytes(16), config)


def _three_segments(directory: Path) -> Path:
    """Of three batches each, nothing of which was flushed; returns the log's directory."""
    store, log = _opened(directory)
    for i in range(9):
        append(log, batch(1, 100, producer=(9, 0, i)))
    assert _bases(log) == [0, 3, 6]
    store.release()
    return log.directory


def _bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def _offsets(log: Log) -> list[int]:
    return [record.offset for record in iterate_records(read(log, log.log_start_offset))]


def _lose(directory: Path, base_offset: int, batches: int) -> None:
    """As many as a segment of three has at its end."""
    path = directory / f"{base_offset:020}.log"
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(size // 3 * (3 - batches))


def _noted(directory: Path) -> str:
    return (directory / FILE_NAME).read_text()


@pytest.mark.parametrize("lost", [1, 2, 3])
@pytest.mark.parametrize("segment", [0, 3])
def test_st_8_a_log_ends_where_a_segment_has_lost_whole_batches(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, segment: int, lost: int
) -> None:
    directory = _three_segments(tmp_path)
    _lose(directory, segment, lost)
    end = segment + 3 - lost
    store, log = _opened(tmp_path)
    assert (_offsets(log), log.log_end_offset) == (list(range(end)), end)
    assert "its end was lost" in caplog.text
    again = append(log, batch(1, 100, producer=(9, 0, end)))
    assert (again.base_offset, again.is_duplicate) == (end, False)
    store.close()


def test_st_8_what_is_behind_a_segment_whose_name_was_lost_goes(tmp_path: Path) -> None:
    directory = _three_segments(tmp_path)
    for path in directory.glob(f"{3:020}.*"):
        path.unlink()
    _, log = _opened(tmp_path)
    assert (_offsets(log), log.log_end_offset) == ([0, 1, 2], 3)


def test_st_8_a_last_segment_that_is_left_alone_is_not_the_log_end(tmp_path: Path) -> None:
    directory = _three_segments(tmp_path)
    for base_offset, batches in ((0, 2), (3, 3), (6, 3)):
        _lose(directory, base_offset, batches)
    _, log = _opened(tmp_path)
    assert (_bases(log), log.log_end_offset) == ([0], 1)


def test_st_8_below_the_recovery_point_no_hole_is_looked_for(tmp_path: Path) -> None:
    """What is there is all that there was; the disk said so."""
    store, log = _opened(tmp_path)
    for _ in range(9):
        append(log, batch(1, 100))
    log.flush()
    store.checkpoint_recovery_points()
    store.release()
    _lose(log.directory, 0, 1)
    assert _opened(tmp_path)[1].log_end_offset == 9


# --- compaction ----------------------------------------------------------------------------------


def _cleaned(directory: Path) -> tuple[LogStore, Log]:
    """A log whose first segments have given way to one that ends before the next one begins."""
    store, log = _opened(directory, COMPACTED)
    for i in range(12):
        append(log, keyed((b"k", bytes(60)), (b"only", b""), timestamp=T0 + i))
    log.roll()
    clean(log)
    append(log, keyed((b"k", b""), (b"only", b"")))
    return store, log


def _has_gaps(log: Log) -> bool:
    segments = log.segments
    return any(each.end_offset() < following.base_offset for each, following in pairwise(segments))


def test_st_8_what_compaction_took_is_no_loss(tmp_path: Path) -> None:
    """Also where no recovery point was checkpointed, and where the checkpoint is lost."""
    store, log = _cleaned(tmp_path)
    assert _has_gaps(log)
    before, bases = read(log, 0), _bases(log)
    for recovery_points in (None, b"0\n0\n", b"0\n1\nt 0 3\n"):
        store.release()
        path = tmp_path / "recovery-point-offset-checkpoint"
        path.unlink()
        if recovery_points is not None:
            path.write_bytes(recovery_points)
        store, log = _opened(tmp_path, COMPACTED)
        assert (read(log, 0), _bases(log)) == (before, bases)


def test_st_8_a_hole_above_what_was_compacted_is_one(tmp_path: Path) -> None:
    store, log = _cleaned(tmp_path)
    for _ in range(6):
        append(log, keyed((b"k", bytes(60)), (b"only", b"")))
    before = _bases(log)
    lossy = log.segments[-2]
    store.release()
    with (log.directory / f"{lossy.base_offset:020}.log").open("r+b") as file:
        file.truncate(0)
    _, log = _opened(tmp_path, COMPACTED)
    assert _bases(log) == before[:-1]
    assert log.log_end_offset == lossy.base_offset


def test_a_log_that_is_cut_back_has_no_gaps_above_its_new_end(tmp_path: Path) -> None:
    store, log = _cleaned(tmp_path)
    assert log.gaps.end == 24
    store.truncations.truncate(NAME, 10)
    assert log.gaps.end == log.log_end_offset < 24
    store.release()
    store, log = _opened(tmp_path, COMPACTED)
    assert int(_noted(log.directory)) == log.gaps.end == log.log_end_offset
    store.truncations.start_at(NAME, 0)
    assert log.gaps.end == 0


# --- followers -----------------------------------------------------------------------------------


def _copy(log: Log, *placed: tuple[int, bytearray]) -> None:
    for base_offset, each in placed:
        assign_in_place(each, 0, base_offset, base_offset // 25)
        log.append_as_follower(memoryview(each), T0)
    log.write_staged()


def test_st_8_a_follower_that_rolls_at_a_gap_leaves_none_between_segments(tmp_path: Path) -> None:
    """Kafka's begins the segment where the batch begins."""
    store, log = _opened(tmp_path)
    _copy(log, *((10 * i, batch(1, 100)) for i in range(7)))
    assert _bases(log) == [0, 21, 51]
    assert not _has_gaps(log)
    before = read(log, 0)
    for offset in range(62):
        for each in log.read(offset, 1, 62)[:1]:
            each.release()
    store.release()
    _, log = _opened(tmp_path)
    assert (read(log, 0), log.log_end_offset) == (before, 61)
    assert list(log.epochs.entries) == [(0, 0), (1, 30), (2, 50)]


@pytest.mark.parametrize("leads", [True, False])
def test_st_8_a_log_that_was_cut_within_a_gap_rolls_where_its_records_end(
    tmp_path: Path, leads: bool
) -> None:
    store, log = _opened(tmp_path)
    _copy(log, *((10 * i, batch(1, 100)) for i in range(3)), (100, batch(1, 1)))
    store.truncations.truncate(NAME, 60)
    assert log.log_end_offset == 60
    if leads:
        append(log, batch(1, 500), epoch=9)
    else:
        _copy(log, (70, batch(1, 500)))
    assert _bases(log) == [0, 21]
    before = _offsets(log)
    store.release()
    _, log = _opened(tmp_path)
    assert _offsets(log) == before


def test_st_8_a_gap_that_no_index_can_span_is_noted(tmp_path: Path) -> None:
    """And what lies before it is on disk then."""
    store, log = _opened(tmp_path)
    _copy(log, (0, batch(1, 100)), (FAR, batch(1, 100)), (FAR + 1, batch(1, 100)))
    assert _bases(log) == [0, FAR]
    assert (log.recovery_point, _noted(log.directory)) == (1, str(FAR))
    store.release()
    store, log = _opened(tmp_path)
    assert _offsets(log) == [0, FAR, FAR + 1]
    store.release()
    (log.directory / FILE_NAME).write_bytes(b"")
    assert _offsets(_opened(tmp_path)[1]) == [0], "else it is a hole"


# --- whose log it is -----------------------------------------------------------------------------


def _as_kafka_leaves_it(directory: Path) -> None:
    """Kafka removes such files before it reads a log."""
    for path in directory.glob("*.deleted"):
        path.unlink()


def test_zk_6_gaps_of_a_kafka_that_was_killed_stay(tmp_path: Path) -> None:
    """It compacts what it has not flushed; what we write behind that has no gaps."""
    directory = _three_segments(tmp_path)
    _lose(directory, 0, 1)
    _as_kafka_leaves_it(directory)
    store, log = _opened(tmp_path)
    assert _offsets(log) == [0, 1, 3, 4, 5, 6, 7, 8]
    assert (_noted(directory), log.gaps.end, log.recovery_point) == ("9", 9, 9)
    for _ in range(6):
        append(log, batch(1, 100))
    assert _bases(log) == [0, 3, 6, 9, 12]
    store.release()
    _lose(directory, 9, 1)
    _, log = _opened(tmp_path)
    assert _offsets(log) == [0, 1, 3, 4, 5, 6, 7, 8, 9, 10]


def test_a_directory_that_kafka_left_in_order_is_not_read(tmp_path: Path) -> None:
    directory = _three_segments(tmp_path)
    _opened(tmp_path)[0].close()
    _as_kafka_leaves_it(directory)
    files = WatchedFiles()
    store = LogStore.open(files, [tmp_path], config=CONFIG, broker_id=0, now_ms=0)
    assert _noted(directory) == "9"
    assert not [name for name in files.synced if name.endswith((".log", "index"))]
    store.release()


@pytest.mark.parametrize("content", [b"ten", b"\0\0", b"-3", b"10"])
def test_what_cannot_be_is_not_believed(tmp_path: Path, content: bytes) -> None:
    directory = _three_segments(tmp_path)
    (directory / FILE_NAME).write_bytes(content)
    store, log = _opened(tmp_path)
    assert (_noted(directory), log.gaps.end, log.recovery_point) == ("9", 9, 9)
    store.close()


def test_a_log_of_which_nothing_is_known_is_opened_as_it_is(tmp_path: Path) -> None:
    log = open_at(tmp_path, CONFIG)
    for _ in range(9):
        append(log, batch(1, 100))
    log.release()
    _lose(tmp_path, 0, 1)
    log = open_at(tmp_path, CONFIG, CRASHED)
    assert (log.gaps.end, log.log_end_offset) == (UNKNOWN, 9)
    log.release()
    begin_without_gaps(QuickFiles(), tmp_path)
    log = open_at(tmp_path, CONFIG, CRASHED)
    assert (log.gaps.end, log.log_end_offset) == (0, 2)


# --- the names of directories --------------------------------------------------------------------


def test_st_10_a_new_log_directory_is_synced_by_name(tmp_path: Path) -> None:
    """With those above it that were made for it; what was there is left alone."""
    files = WatchedFiles()
    store = LogStore.open(files, [tmp_path / "a" / "b"], config=CONFIG, broker_id=0, now_ms=0)
    assert sorted({"a", tmp_path.name} & set(files.synced)) == sorted(["a", tmp_path.name])
    store.close()
    files.synced.clear()
    LogStore.open(files, [tmp_path / "a" / "b"], config=CONFIG, broker_id=0, now_ms=0).close()
    assert not {"a", tmp_path.name} & set(files.synced)
