"""The swap of what compaction left: at whatever step the process dies, the log is the old one or
the new one, and the next pass brings it to the same end (ST-7)."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.config import LogConfig
from barnabas.records.control_records import ABORT, COMMIT
from barnabas.records.record import Record
from barnabas.storage.loading import Start
from barnabas.storage.log import Log
from barnabas.storage.segment import Sizes
from tests.kit.effort import places
from tests.kit.storage.disk import (
    CLEAN,
    CRASHED,
    T0,
    QuickFiles,
    append,
    open_at,
    read,
    records,
)
from tests.kit.storage.dying_files import DyingFiles, Killed
from tests.kit.storage.passes import clean, end, keyed, write

CONFIG = LogConfig(cleanup_policy="compact", segment_bytes=400, index_interval_bytes=100)


def make(directory: Path, files: QuickFiles | None = None) -> Log:
    """Several segments of ten keys, transactions of both kinds among them."""
    directory.mkdir(exist_ok=True)
    log = open_at(directory, CONFIG, files=files)
    for i in range(12):
        write(log, *[(b"k%d" % ((i + j) % 10), b"value %d" % i) for j in range(3)])
        if i % 4 == 1:
            producer = (7, 0, i // 4)
            pair = (b"t%d" % (i % 8), b"transaction %d" % i)
            append(log, keyed(pair, producer=producer, is_transactional=True))
            end(log, ABORT if i % 8 == 1 else COMMIT, 7)
    log.roll()
    return log


def newest(found: list[Record]) -> dict[bytes | None, Record]:
    """Of each key; t1 was only written in transactions that were aborted."""
    return {each.key: each for each in found if each.key != b"t1"}


def contents(log: Log) -> tuple[bytes, list[int], list[object]]:
    """All that readers see."""
    raw = read(log, log.log_start_offset)
    bases = [each.base_offset for each in log.segments if each.size_bytes]
    return raw, bases, list(log.aborted_transactions(0, log.log_end_offset))


def test_small_segments_become_one(tmp_path: Path) -> None:
    """And the producers' snapshots of those that are gone go with them."""
    log = make(tmp_path)
    before, producer = records(log), log.producers.get(7)
    assert producer is not None
    count = len(log.segments)
    clean(log)
    clean(log)
    assert len(log.segments) < count
    assert newest(records(log)) == newest(before)
    bases = {each.base_offset for each in log.segments}
    snapshots = {int(path.stem) for path in tmp_path.glob("*.snapshot")}
    assert snapshots <= bases | {log.log_end_offset}
    log.close()
    again = open_at(tmp_path, CONFIG, CLEAN)
    assert contents(again) == contents(log)
    found = again.producers.get(7)
    assert found is not None and found.last_sequence == producer.last_sequence
    log.release()
    again.release()


@pytest.mark.thorough
def test_st_7_the_process_dies_at_any_step(tmp_path: Path) -> None:
    counting = DyingFiles(left=10**9)
    log = make(tmp_path / "counted", counting)
    before = counting.changes
    clean(log, files=counting)
    total = counting.changes - before
    expected = records(log)
    log.release()
    assert total > 60
    origin = tmp_path / "origin"
    make(origin).release()
    for left in places(total):
        directory = tmp_path / str(left)
        shutil.copytree(origin, directory)
        files = DyingFiles(left=10**9)
        log = open_at(directory, CONFIG, CLEAN, files=files)
        whole = records(log)
        files.left = files.changes + left
        with pytest.raises(Killed):
            clean(log, files=files)
        log.release()
        log = open_at(directory, CONFIG, CRASHED)
        found = records(log)
        assert newest(found) == newest(whole)
        assert set(expected) <= set(found) <= set(whole)
        assert not [p for p in directory.iterdir() if p.suffix in (".cleaned", ".swap", ".deleted")]
        clean(log)
        assert records(log) == expected, left
        log.release()
        shutil.rmtree(directory)
    print(f"{len(places(total))} steps at which the process died")


def begun(log: Log) -> None:
    """A swap of the first two segments by an empty one, up to the decision."""
    for suffix in (".log", ".index", ".timeindex"):
        (log.directory / f"{0:020}{suffix}.cleaned").write_bytes(b"")
    assert log.swaps.begin(log.segments[:2], Sizes(0, 0, 0))
    assert (log.directory / f"{0:020}.log.swap").exists()


def truncate(log: Log) -> None:
    log.truncate(log.segments[-2].base_offset)


def retain(log: Log) -> None:
    log.config = CONFIG._replace(cleanup_policy="compact,delete", retention_bytes=1)
    assert log.enforce_retention(T0, log.log_end_offset, T0).segments


@pytest.mark.parametrize("change", [truncate, retain, Log.close])
def test_a_swap_that_has_begun_is_undone(tmp_path: Path, change: Callable[[Log], None]) -> None:
    """The log was cut, lost its first segments, or was closed: not even a crash may swap now."""
    log = make(tmp_path)
    begun(log)
    change(log)
    if change is not Log.close:
        assert log.finish_swap(T0) is False
    assert not [p for p in tmp_path.iterdir() if p.suffix in (".cleaned", ".swap")]
    kept = contents(log)
    log.release()
    start = Start(is_clean=False, log_start_offset=log.log_start_offset)
    again = open_at(tmp_path, CONFIG, start)
    assert contents(again) == kept
    again.release()


def test_an_undoing_that_dies_leaves_nothing_to_finish(tmp_path: Path) -> None:
    counting = DyingFiles(left=10**9)
    log = make(tmp_path / "counted", counting)
    kept = contents(log)
    begun(log)
    before = counting.changes
    log.swaps.undo()
    total = counting.changes - before
    log.release()
    assert total >= 4
    for left in range(1, total):  # before the first step it is decided
        files = DyingFiles(left=10**9)
        log = make(tmp_path / str(left), files)
        begun(log)
        files.left = files.changes + left
        with pytest.raises(Killed):
            log.swaps.undo()
        log.release()
        again = open_at(tmp_path / str(left), CONFIG, CRASHED)
        assert contents(again) == kept
        again.release()


def test_segments_that_are_not_there_any_more_are_not_replaced(tmp_path: Path) -> None:
    log = make(tmp_path)
    first, second, third, *_ = log.segments
    assert not log.swaps.begin([first, third], Sizes(0, 0, 0))
    assert not log.swaps.begin([log.segments[-1]], Sizes(0, 0, 0))
    log.truncate(third.base_offset)
    assert not log.swaps.begin([second, third], Sizes(0, 0, 0))
    log.release()


def test_a_flush_under_way_does_not_miss_what_was_replaced(tmp_path: Path) -> None:
    """Its files have other names by now; what replaces them is durable."""
    log = make(tmp_path)
    flush = log.take_flush()
    end_offset = log.log_end_offset
    clean(log)
    flush()
    assert not log.health.is_failed
    assert log.recovery_point == end_offset
    log.release()


def test_a_flush_still_misses_what_was_not_replaced(tmp_path: Path) -> None:
    log = make(tmp_path)
    flush = log.take_flush()
    log.segments[1].path(".log").unlink()
    with pytest.raises(FileNotFoundError):
        flush()
    log.release()
