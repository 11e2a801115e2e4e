"""The process dies between any two calls on the disk; what it had acknowledged is there (ST-8).

A disk that raises at the n-th change stands for `kill -9`: what was written stays written, nothing
more comes. Every n is tried, for a whole life of a store and for the recovery after it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from barnabas.config import LogConfig
from barnabas.records.batch import iterate_batches
from barnabas.records.record import iterate_records
from barnabas.storage.store import LogStore
from barnabas.types import TopicPartition
from tests.kit.effort import places
from tests.kit.storage.disk import QuickFiles, append, batch, read
from tests.kit.storage.dying_files import DyingFiles, Killed

NAME = TopicPartition("t", 0)
CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=50)


def _open(files: QuickFiles, directory: Path) -> LogStore:
    return LogStore.open(files, [directory], config=CONFIG, broker_id=0, now_ms=0)


def _live(files: QuickFiles, directory: Path, acknowledged: list[int]) -> None:
    """A store's life: made, written, rolled, checkpointed, stopped in order, and a second time."""
    for _ in range(2):
        store = _open(files, directory)
        try:
            store.directories.set_cluster_id("a" * 22)
            log = store.logs.get(NAME) or store.create(NAME, bytes(range(16)), CONFIG)
            log.assign_leader_epoch(len(acknowledged))
            for _ in range(5):
                sequence = len(acknowledged)
                append(log, batch(1, 100, producer=(9, 0, sequence)), epoch=log.epochs.latest)
                acknowledged.append(sequence)
                if sequence % 3 == 1:
                    for flush in log.take_unflushed():
                        flush()
                    store.checkpoint_recovery_points()
                    store.checkpoint_high_watermarks({NAME: log.log_end_offset})
            store.close()
        finally:
            store.release()


def _check(directory: Path, acknowledged: list[int]) -> None:
    store = _open(QuickFiles(), directory)
    try:
        log = store.logs.get(NAME)
        if log is None:
            assert acknowledged == []
            return
        end = log.log_end_offset
        # What was being written when it died may be there too.
        assert len(acknowledged) <= end <= len(acknowledged) + 1
        assert [record.offset for record in iterate_records(read(log, 0))] == list(range(end))
        for offset in range(end):
            assert next(iterate_records(read(log, offset, max_bytes=1))).offset == offset
        assert store.high_watermarks.get(NAME, 0) <= end
        if end:
            again = append(log, batch(1, 100, producer=(9, 0, end - 1)))
            assert (again.is_duplicate, again.base_offset) == (True, end - 1)
        assert append(log, batch(1, 100, producer=(9, 0, end))).base_offset == end
    finally:
        store.close()


def _changes(directory: Path) -> int:
    files = DyingFiles(left=10**9)
    _live(files, directory, [])
    return files.changes


@pytest.mark.slow
def test_st_8_a_store_dies_at_any_moment_of_its_life(tmp_path: Path) -> None:
    total = _changes(tmp_path / "whole")
    assert total > 100
    for left in range(total):
        directory = tmp_path / str(left)
        acknowledged: list[int] = []
        try:
            _live(DyingFiles(left), directory, acknowledged)
        except Killed:
            _check(directory, acknowledged)
        else:
            raise AssertionError("it was not killed")
        shutil.rmtree(directory)


def test_st_8_recovery_dies_at_any_moment_and_is_repeated(tmp_path: Path) -> None:
    """Three segments, the second with a bad batch: everything behind it must stay away."""
    origin = tmp_path / "origin"
    _live(QuickFiles(), origin, [])
    (origin / ".kafka_cleanshutdown").unlink()
    (origin / "recovery-point-offset-checkpoint").unlink()
    log_files = sorted((origin / "t-0").glob("*.log"))
    assert len(log_files) >= 4
    raw = bytearray(log_files[1].read_bytes())
    raw[-1] ^= 1
    log_files[1].write_bytes(raw)

    def end_after_recovery(files: QuickFiles, directory: Path) -> int:
        store = _open(files, directory)
        end = store.logs[NAME].log_end_offset
        store.release()
        return end

    shutil.copytree(origin, tmp_path / "whole")
    counting = DyingFiles(left=10**9)
    end = end_after_recovery(counting, tmp_path / "whole")
    assert counting.changes > 5
    for left in places(counting.changes):
        directory = tmp_path / str(left)
        shutil.copytree(origin, directory)
        try:
            end_after_recovery(DyingFiles(left), directory)
        except Killed:
            assert end_after_recovery(QuickFiles(), directory) == end, left
        _check(directory, list(range(end)))
        shutil.rmtree(directory)


@pytest.mark.parametrize("offset", [3, 500])
def test_st_8_a_log_that_is_emptied_dies_at_any_moment(tmp_path: Path, offset: int) -> None:
    """What is found then is a part of what was, or nothing; and its epochs are known, without which
    it would not notice that its leader's log is another."""
    origin = tmp_path / "origin"
    _live(QuickFiles(), origin, [])
    store = _open(QuickFiles(), origin)
    before = read(store.logs[NAME], store.logs[NAME].log_start_offset)
    assert len(store.logs[NAME].segments) > 3
    store.release()

    def start_again(directory: Path, left: int) -> bool:
        """Whether that many changes are enough."""
        files = DyingFiles(10**9)
        opened = _open(files, directory)
        files.left = files.changes + left
        try:
            opened.truncations.start_at(NAME, offset)
        except Killed:
            return False
        finally:
            opened.release()
        return True

    for left in places(1000):
        directory = tmp_path / str(left)
        shutil.copytree(origin, directory)
        is_done = start_again(directory, left)
        again = _open(QuickFiles(), directory)
        log = again.logs[NAME]
        found = read(log, log.log_start_offset)
        assert before.startswith(found), left
        for _, header in iterate_batches(found):
            epoch = log.epochs.epoch_at(header.base_offset)
            assert epoch == header.partition_leader_epoch, left
        assert append(log, batch(1), epoch=99).base_offset == log.log_end_offset - 1
        if is_done:
            assert (found, log.log_start_offset) == (b"", offset)
        again.release()
        shutil.rmtree(directory)
        if is_done:
            assert left > 10
            return
    raise AssertionError("it never came to an end")
