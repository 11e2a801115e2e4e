"""ST-7: which logs are cleaned, and up to where."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.config import LogConfig
from barnabas.storage.cleaner import Checkpoints, dirtiest, examine
from barnabas.storage.log import Log
from tests.kit.storage.disk import T0, QuickFiles, append, batch, make_transactional, open_at

HOUR_MS = 3_600_000


def compacted(directory: Path, **settings: object) -> Log:
    config = LogConfig(cleanup_policy="compact", **settings)  # type: ignore[arg-type]
    return open_at(directory, config)


def fill(log: Log, count: int, *, first_ms: int = T0, step_ms: int = 0) -> None:
    """So many segments of ten records, and an active one that is empty."""
    for number in range(count):
        append(log, batch(10, timestamp=first_ms + number * step_ms))
        log.roll()


def test_the_active_segment_is_not_cleaned_st_7(tmp_path: Path) -> None:
    log = compacted(tmp_path)
    append(log, batch(10))
    found = examine(log, 10, T0)
    assert (found.sources, found.dirty_bytes, found.is_due) == ((), 0, False)
    log.roll()
    found = examine(log, 10, T0)
    assert [each.base_offset for each in found.sources] == [0]
    assert found.end_offset == 10
    assert found.is_due


def test_a_log_is_due_when_more_of_it_is_dirty_than_the_ratio_st_7(tmp_path: Path) -> None:
    log = compacted(tmp_path, min_cleanable_dirty_ratio=0.5)
    fill(log, 4)
    log.first_dirty_offset = 20
    found = examine(log, 40, T0)
    assert found.dirty_ratio == pytest.approx(0.5)
    assert not found.is_due, "half of it is not more than half"
    fill(log, 1)
    found = examine(log, 50, T0)
    assert found.dirty_ratio == pytest.approx(0.6)
    assert found.is_due
    assert len(found.sources) == 5, "a pass begins at the first segment, clean or not"


def test_what_comes_after_a_truncation_is_dirty_st_7(tmp_path: Path) -> None:
    """ST-7: a pass has not seen it, though it lies below where the last one ended."""
    log = compacted(tmp_path)
    fill(log, 4)
    log.first_dirty_offset = 40
    log.truncate(20)
    fill(log, 4)
    found = examine(log, 60, T0)
    assert (found.first_dirty_offset, found.end_offset) == (20, 60)
    log.truncate(50)
    assert examine(log, 50, T0).first_dirty_offset == 20, "what was dirty before still is"


def test_what_is_younger_than_the_lag_waits_and_all_behind_it_st_7(tmp_path: Path) -> None:
    log = compacted(tmp_path, min_compaction_lag_ms=HOUR_MS)
    fill(log, 4, step_ms=HOUR_MS)
    now_ms = T0 + 3 * HOUR_MS  # the third segment is an hour old, the fourth is new
    found = examine(log, 40, now_ms)
    assert [each.base_offset for each in found.sources] == [0, 10, 20]
    assert not examine(log, 40, T0 - 1).sources
    assert len(examine(log, 40, now_ms + 2 * HOUR_MS).sources) == 4


def test_what_is_older_than_the_longest_lag_is_cleaned_at_any_ratio_st_7(tmp_path: Path) -> None:
    """KIP-354"""
    log = compacted(tmp_path, max_compaction_lag_ms=HOUR_MS, min_cleanable_dirty_ratio=1.0)
    fill(log, 2)
    assert not examine(log, 20, T0 + HOUR_MS).is_due
    assert examine(log, 20, T0 + HOUR_MS + 1).is_due
    log.first_dirty_offset = 20
    assert not examine(log, 20, T0 + HOUR_MS + 1).is_due, "nothing of it is dirty"


def test_nothing_from_the_last_stable_offset_on_is_cleaned_st_7(tmp_path: Path) -> None:
    log = compacted(tmp_path)
    fill(log, 1)
    opened = batch(1, producer=(7, 0, 0))
    make_transactional(opened)
    append(log, opened)
    log.roll()
    fill(log, 2)
    stable = log.last_stable_offset(log.log_end_offset)
    assert stable == 10
    found = examine(log, stable, T0)
    assert [each.base_offset for each in found.sources] == [0]
    assert examine(log, 5, T0).sources == (), "nor above the high watermark"


def test_a_first_dirty_offset_that_the_log_does_not_have_means_all_of_it(tmp_path: Path) -> None:
    log = compacted(tmp_path)
    fill(log, 3)
    log.first_dirty_offset = 1000
    assert examine(log, 30, T0).first_dirty_offset == 0
    log.first_dirty_offset = 20
    assert examine(log, 30, T0).first_dirty_offset == 20


def test_the_dirtiest_log_comes_first_st_7(tmp_path: Path) -> None:
    directories = (tmp_path / "a", tmp_path / "b")
    for directory in directories:
        directory.mkdir()
    clean, dirty = map(compacted, directories)
    for log in (clean, dirty):
        fill(log, 4)
    clean.first_dirty_offset = 10
    found = [examine(log, 40, T0) for log in (clean, dirty)]
    assert dirtiest(found) is found[1]
    assert dirtiest(found[:1]) is found[0]
    dirty.first_dirty_offset = clean.first_dirty_offset = 40
    assert dirtiest([examine(log, 40, T0) for log in (clean, dirty)]) is None


def test_a_log_that_was_truncated_before_its_checkpoint_was_read_is_cleaned_whole_st_7(
    tmp_path: Path,
) -> None:
    """What is there now below the checkpointed offset no pass has seen."""
    directory = tmp_path / "t-0"
    directory.mkdir()
    log = compacted(directory)
    fill(log, 4)
    checkpoints = Checkpoints(QuickFiles())
    checkpoints.write(tmp_path, {log.topic_partition: 40})
    log.truncate(10)
    fill(log, 5)
    checkpoints.recall(log, tmp_path)
    found = examine(log, log.log_end_offset, T0)
    assert found.is_due
    assert found.first_dirty_offset <= 10
