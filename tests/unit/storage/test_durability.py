"""When a log has to be flushed, and what a flush covers (ST-10)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from barnabas.config import LogConfig
from tests.kit.storage.disk import CRASHED, WatchedFiles, append, batch, open_at

SMALL = LogConfig(segment_bytes=400)


def test_st_10_by_default_nothing_is_ever_due(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    for i in range(100):
        append(log, batch(10))
        assert not log.due_flush(i * 10**9)


def test_st_10_flush_messages_counts_from_the_last_flush(tmp_path: Path) -> None:
    log = open_at(tmp_path, LogConfig(flush_messages=5))
    due = []
    for _ in range(8):
        append(log, batch(2))
        due.append(log.due_flush(0))
        if due[-1]:
            log.flush()
    assert due == [False, False, True] * 2 + [False, False]


def test_st_10_flush_messages_1_is_due_after_each_append(tmp_path: Path) -> None:
    log = open_at(tmp_path, LogConfig(flush_messages=1))
    assert not log.due_flush(0)
    for _ in range(3):
        append(log, batch(1))
        assert log.due_flush(0)
        log.take_flush()()
        assert not log.due_flush(0)


def test_st_10_flush_ms_bounds_the_age_of_what_is_not_flushed(tmp_path: Path) -> None:
    log = open_at(tmp_path, LogConfig(flush_ms=100))
    assert not log.due_flush(0)
    append(log, batch(1))
    assert not log.due_flush(1000)
    append(log, batch(1))
    assert not log.due_flush(1099)
    assert log.due_flush(1100)
    log.flush()
    assert not log.due_flush(5000)
    append(log, batch(1))
    assert not log.due_flush(6000)
    assert log.due_flush(6100)


def test_a_flush_covers_what_was_there_when_it_was_taken(tmp_path: Path) -> None:
    files = WatchedFiles()
    log = open_at(tmp_path, SMALL, files=files)
    append(log, batch(1, 100))
    flush = log.take_flush()
    assert files.synced == []
    append(log, batch(1, 100))
    flush()
    assert log.recovery_point == 1
    assert f"{0:020}.log" in files.synced


def test_a_flush_while_the_log_grows_syncs_no_index(tmp_path: Path) -> None:
    """A segment in which the recovery point lies is scanned, so one file is enough."""
    files = WatchedFiles()
    log = open_at(tmp_path, files=files)
    append(log, batch(1))
    log.take_flush()()
    append(log, batch(1))
    files.synced.clear()
    log.take_flush()()
    assert files.synced == [f"{0:020}.log"]
    log.close()
    assert f"{0:020}.timeindex" in files.synced


def test_indexes_that_are_completed_by_a_roll_are_synced_after_it(tmp_path: Path) -> None:
    """All records of the segment were flushed before; the end of its indexes was not."""
    files = WatchedFiles()
    log = open_at(tmp_path, SMALL, files=files)
    append(log, batch(1, 100))
    log.take_flush()()
    append(log, batch(1, 300))  # rolls
    assert log.recovery_point == log.segments[1].base_offset
    files.synced.clear()
    (flush,) = log.take_unflushed()
    flush()
    assert f"{0:020}.timeindex" in files.synced
    assert log.take_unflushed() == []


def test_what_was_durable_before_the_start_is_not_synced_again(tmp_path: Path) -> None:
    log = open_at(tmp_path, SMALL)
    for _ in range(10):
        append(log, batch(1, 100))
    log.close()
    files = WatchedFiles()
    log = open_at(tmp_path, SMALL, files=files)
    assert log.take_unflushed() == []
    append(log, batch(1, 100))
    log.take_flush()()
    assert {name for name in files.synced if name.endswith(".log")} == {
        log.segments[-1].paths()[0].name,
        log.segments[-2].paths()[0].name,
    }


def test_a_log_that_did_not_change_is_closed_without_waiting(tmp_path: Path) -> None:
    log = open_at(tmp_path, SMALL)
    append(log, batch(1, 100))
    log.close()
    files = WatchedFiles()
    open_at(tmp_path, SMALL, files=files).close()
    assert files.synced == []


def test_syncs_need_no_order_among_themselves(tmp_path: Path) -> None:
    """The later one may be done first, and must not rely on the other."""
    files = WatchedFiles()
    log = open_at(tmp_path, SMALL, files=files)
    for _ in range(4):
        append(log, batch(1, 100))
    (early,) = log.take_unflushed()
    late = log.take_flush()
    late()
    assert log.recovery_point == 4
    assert tmp_path.name in files.synced
    assert {f"{0:020}.log", f"{2:020}.log", f"{2:020}.snapshot"} <= set(files.synced)
    early()
    assert log.recovery_point == 4


def test_a_segment_that_began_during_a_sync_is_not_taken_for_listed(tmp_path: Path) -> None:
    files = WatchedFiles()
    log = open_at(tmp_path, SMALL, files=files)
    append(log, batch(1, 100))
    flush = log.take_flush()
    append(log, batch(1, 300))  # rolls
    flush()
    files.synced.clear()
    log.flush()
    assert tmp_path.name in files.synced


def test_a_truncation_during_a_sync_is_not_undone_by_it(tmp_path: Path) -> None:
    log = open_at(tmp_path, SMALL)
    for _ in range(6):
        append(log, batch(1, 100))
    flush = log.take_flush()
    log.truncate(1)
    flush()
    assert log.recovery_point <= 1
    log.release()
    assert open_at(tmp_path, SMALL, CRASHED).log_end_offset == 1


class _Interrupting(int):
    """An offset at whose comparison another thread has its turn."""

    turn: Callable[[], object]

    def __new__(cls, offset: int, turn: Callable[[], object]) -> _Interrupting:
        made = super().__new__(cls, offset)
        made.turn = turn
        return made

    def __gt__(self, other: int) -> bool:
        self.turn()
        return int(self) > other


def test_st_8_a_sync_does_not_put_the_recovery_point_above_a_cut_made_meanwhile(
    tmp_path: Path,
) -> None:
    """The loop cuts the log when the thread has asked whether it was cut, and not yet counted."""
    log = open_at(tmp_path)
    append(log, batch(10))
    durability = log._durability
    cut = threading.Thread(target=durability.on_truncated, args=(4,))

    def turn() -> None:
        cut.start()
        cut.join(0.2)

    taken = durability.take(10)
    durability.sync(taken._replace(snapshot_offset=_Interrupting(-1, turn)))
    cut.join()
    assert log.recovery_point == 4
