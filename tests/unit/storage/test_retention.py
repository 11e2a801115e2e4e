"""Retention (ST-6): what goes by age, by size and by request, and what is left after a crash."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from barnabas.config import LogConfig
from barnabas.errors import OffsetOutOfRange
from barnabas.records.batch import iterate_batches
from barnabas.storage.loading import Start
from barnabas.storage.log import Log
from tests.kit.storage.descriptors import open_files_below
from tests.kit.storage.disk import CRASHED, T0, WatchedFiles, append, batch, open_at, read
from tests.kit.storage.times import offset_for_timestamp

SIZE = len(batch(1, 100))
HOUR_MS = 3_600_000


def _config(**settings: object) -> LogConfig:
    """Two batches a segment."""
    return LogConfig(segment_bytes=2 * SIZE, retention_ms=-1)._replace(**settings)  # type: ignore[arg-type]


def _filled(directory: Path, config: LogConfig, batches: int = 10) -> Log:
    """One record an hour."""
    log = open_at(directory, config)
    log.assign_leader_epoch(0)
    for i in range(batches):
        append(log, batch(1, 100, timestamp=T0 + i * HOUR_MS, producer=(9, 0, i)), epoch=i // 3)
    return log


def _names(directory: Path, suffix: str) -> list[int]:
    return sorted(int(path.name[:20]) for path in directory.glob(f"*{suffix}"))


def test_st_6_whole_segments_go_by_the_age_of_their_youngest_record(tmp_path: Path) -> None:
    log = _filled(tmp_path, _config(retention_ms=2 * HOUR_MS))
    # The youngest record of the second segment is 2 h old and one ms more.
    assert log.enforce_retention(T0, 10, T0 + 3 * HOUR_MS + 2 * HOUR_MS).segments == 1
    assert log.enforce_retention(T0, 10, T0 + 3 * HOUR_MS + 2 * HOUR_MS + 1).segments == 1
    assert log.log_start_offset == 4
    assert [segment.base_offset for segment in log.segments] == [4, 6, 8]
    with pytest.raises(OffsetOutOfRange, match="4 to 10"):
        log.read(3, 100, 10)
    assert next(iterate_batches(read(log, 4)))[1].base_offset == 4
    assert log.epochs.entries[0] == (1, 4)


def test_st_6_a_log_that_is_old_altogether_rolls_and_is_empty(tmp_path: Path) -> None:
    log = _filled(tmp_path, _config(retention_ms=HOUR_MS))
    assert log.enforce_retention(T0, 10, T0 + 100 * HOUR_MS).segments == 5
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (10, 10, 0)
    assert log.enforce_retention(T0, 10, T0 + 100 * HOUR_MS).segments == 0
    assert append(log, batch(1, 100, timestamp=T0, producer=(9, 0, 10))).base_offset == 10
    log.close()
    assert open_at(tmp_path).log_start_offset == 10


def test_st_6_nothing_goes_at_or_above_the_high_watermark(tmp_path: Path) -> None:
    log = _filled(tmp_path, _config(retention_ms=0))
    for high_watermark, start in ((0, 0), (1, 0), (2, 2), (5, 4), (9, 8)):
        log.enforce_retention(T0, high_watermark, T0 + 100 * HOUR_MS)
        assert log.log_start_offset == start
    log.enforce_retention(T0, 10, T0 + 100 * HOUR_MS)
    assert log.log_start_offset == 10


@pytest.mark.parametrize(
    ("retention_bytes", "left"),
    [(10 * SIZE, 10), (9 * SIZE, 10), (8 * SIZE, 8), (8 * SIZE - 1, 8), (1, 2), (0, 0), (-1, 10)],
)
def test_st_6_by_size_no_more_goes_than_leaves_that_many_bytes(
    tmp_path: Path, retention_bytes: int, left: int
) -> None:
    log = _filled(tmp_path, _config(retention_bytes=retention_bytes))
    log.enforce_retention(T0, 10, T0)
    assert log.size_bytes == left * SIZE


def test_st_6_either_rule_is_enough(tmp_path: Path) -> None:
    log = _filled(tmp_path, _config(retention_bytes=8 * SIZE, retention_ms=4 * HOUR_MS))
    log.enforce_retention(T0, 10, T0 + 9 * HOUR_MS)  # by age: two segments, by size: one
    assert log.log_start_offset == 4


def test_st_6_a_compacted_log_forgets_only_what_was_asked(tmp_path: Path) -> None:
    config = _config(cleanup_policy="compact", retention_ms=0, retention_bytes=0)
    log = _filled(tmp_path, config)
    assert log.enforce_retention(T0, 10, T0 + 100 * HOUR_MS).segments == 0
    log.raise_log_start(5)
    assert log.log_start_offset == 5
    assert log.enforce_retention(T0, 10, T0).segments == 2
    log.config = _config(cleanup_policy="compact,delete", retention_bytes=0)
    assert log.enforce_retention(T0, 10, T0).segments == 3


def test_st_10_a_raised_log_start_outlives_the_log(tmp_path: Path) -> None:
    """DeleteRecords up to the end: the active segment stays, and is not read."""
    log = _filled(tmp_path, _config())
    log.raise_log_start(10)
    log.raise_log_start(3)
    assert log.enforce_retention(T0, 10, T0).segments == 4
    assert (log.log_start_offset, len(log.segments)) == (10, 1)
    assert log.read(10, 100, 10) == []
    assert offset_for_timestamp(log, 0, 10) is None
    log.close()
    log = open_at(tmp_path, start=Start(is_clean=True, log_start_offset=10))
    assert (log.log_start_offset, log.log_end_offset) == (10, 10)


def test_st_6_without_a_time_that_is_trusted_nothing_goes_for_its_age(tmp_path: Path) -> None:
    """What is too large goes, and what was deleted."""
    log = _filled(tmp_path, _config(retention_ms=0))
    assert log.enforce_retention(T0, 10, None).segments == 0
    log.raise_log_start(2)
    assert log.enforce_retention(T0, 10, None).segments == 1
    log.config = _config(retention_ms=0, retention_bytes=4 * SIZE)
    assert log.enforce_retention(T0, 10, None).segments == 2
    assert log.enforce_retention(T0, 10, T0 + 100 * HOUR_MS).segments == 2


def test_records_without_a_time_are_as_old_as_their_file(tmp_path: Path) -> None:
    log = open_at(tmp_path, _config(retention_ms=1000))
    for _ in range(3):
        append(log, batch(1, 100, timestamp=-1))
    os.utime(log.segments[0].paths()[0], (1000, 1000))
    assert log.enforce_retention(T0, 3, 1_000_000 + 1000).segments == 0
    assert log.enforce_retention(T0, 3, 1_000_000 + 1001).segments == 1
    assert log.log_start_offset == 2


def test_st_6_files_are_renamed_at_once_and_removed_after_their_delay(tmp_path: Path) -> None:
    config = _config(retention_bytes=4 * SIZE, file_delete_delay_ms=60_000)
    log = _filled(tmp_path, config)
    slices = log.read(0, 2 * SIZE, 10)
    log.enforce_retention(T0, 10, T0)
    assert _names(tmp_path, ".log.deleted") == [0, 2, 4]
    assert _names(tmp_path, ".timeindex.deleted") == [0, 2, 4]
    assert _names(tmp_path, ".log") == [6, 8]
    assert _names(tmp_path, ".snapshot") == [6, 8]
    assert log.remove_discarded(T0 + 59_999) == 0
    assert log.remove_discarded(T0 + 60_000) == 9
    assert not list(tmp_path.glob("*.deleted"))
    # Who was about to read them still can.
    assert len(b"".join(each.read() for each in slices)) == 2 * SIZE
    for each in slices:
        each.release()


def test_st_6_what_a_crash_left_for_removal_goes_at_the_start(tmp_path: Path) -> None:
    log = _filled(tmp_path, _config(retention_bytes=4 * SIZE))
    log.enforce_retention(T0, 10, T0)
    log.release()
    log = open_at(tmp_path, start=CRASHED)
    assert not list(tmp_path.glob("*.deleted"))
    assert (log.log_start_offset, log.log_end_offset) == (6, 10)
    assert append(log, batch(1, 100, producer=(9, 0, 9))).is_duplicate


def test_retention_looks_at_no_record(tmp_path: Path) -> None:
    """And holds no descriptors of what it looked at."""
    _filled(tmp_path, _config()).close()
    files = WatchedFiles()
    log = open_at(tmp_path, _config(retention_ms=HOUR_MS * 1000), files=files)
    files.bytes_read.clear()
    before = open_files_below(tmp_path)
    assert log.enforce_retention(T0, 10, T0 + 20 * HOUR_MS).segments == 0
    assert not [name for name in files.bytes_read if name.endswith(".log")]
    assert open_files_below(tmp_path) <= before + 1


def test_a_flush_that_meets_retention_is_harmless(tmp_path: Path) -> None:
    """It runs in a thread; a segment may be renamed before it is synced."""
    log = _filled(tmp_path, _config(retention_bytes=4 * SIZE))
    flush = log.take_flush()
    log.enforce_retention(T0, 10, T0)
    flush()
    assert log.recovery_point == 10
