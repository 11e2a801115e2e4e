"""The store of logs on a simulated disk: what is left of it after a kill, and after a power cut."""

from __future__ import annotations

import errno
from pathlib import Path
from random import Random

import pytest

from barnabas.config import LogConfig
from barnabas.records.record import iterate_records
from barnabas.storage.log import Log
from barnabas.storage.seen_time import read_seen_ms, write_seen_ms
from barnabas.storage.store import LogStore
from barnabas.types import TopicPartition
from simulation.whole.files import SimFiles
from tests.kit.set_clock import SetClock
from tests.kit.storage.disk import append, batch, read

NAME = TopicPartition("t", 0)
CONFIG = LogConfig(segment_bytes=3000, index_interval_bytes=300)
LOGS = Path("/d/logs")


def _open(files: SimFiles) -> LogStore:
    return LogStore.open(files.mounted(), [LOGS], config=CONFIG, broker_id=0, now_ms=0)


def _begin(files: SimFiles) -> tuple[LogStore, Log]:
    store = _open(files)
    store.directories.set_cluster_id("a" * 22)
    return store, store.create(NAME, bytes(range(16)), CONFIG)


def _write(log: Log, count: int) -> None:
    for _ in range(count):
        sequence = log.log_end_offset
        append(log, batch(1, 100 + sequence % 50, producer=(9, 0, sequence)), epoch=sequence // 40)


def _flush(log: Log) -> int:
    end = log.log_end_offset
    log.take_flush()()
    return end


def _offsets(log: Log) -> list[int]:
    return [record.offset for record in iterate_records(read(log, log.log_start_offset))]


def test_st_8_a_killed_store_has_all_that_was_written() -> None:
    files = SimFiles(SetClock(), [LOGS])
    _, log = _begin(files)
    for turn in range(1, 6):
        _write(log, 30)
        whole = read(log, 0)
        files.process_died()
        log = _open(files).logs[NAME]
        assert (log.log_end_offset, read(log, 0)) == (30 * turn, whole)
        again = append(log, batch(1, 100, producer=(9, 0, 30 * turn - 1)), epoch=9)
        assert again.is_duplicate


@pytest.mark.parametrize("first_seed", range(0, 40, 10))
def test_st_8_a_store_without_power_has_all_that_was_flushed(first_seed: int) -> None:
    """And of the rest as much as is whole, again and again; never the bytes of another."""
    lost = kept = 0
    for seed in range(first_seed, first_seed + 10):
        random = Random(seed)
        files = SimFiles(SetClock(), [LOGS])
        store, log = _begin(files)
        for _ in range(6):
            _write(log, random.randrange(60))
            flushed = _flush(log)
            if random.random() < 0.5:
                store.checkpoint_recovery_points()
            _write(log, random.randrange(80))
            written = read(log, 0)
            end = log.log_end_offset
            files.power_cut(random)
            store = _open(files)
            log = store.logs[NAME]
            assert flushed <= log.log_end_offset <= end, seed
            assert written.startswith(read(log, 0)), seed
            assert _offsets(log) == list(range(log.log_end_offset)), seed
            lost += end - log.log_end_offset
            kept += log.log_end_offset - flushed
    assert lost and kept, "else nothing was tried"


def test_st_10_what_was_flushed_is_found_in_a_log_directory_that_is_new() -> None:
    for seed in range(20):
        files = SimFiles(SetClock())
        _, log = _begin(files)
        _write(log, 20)
        flushed = _flush(log)
        files.power_cut(Random(seed))
        assert _open(files).logs[NAME].log_end_offset == flushed


def test_st_8_a_store_that_cut_its_log_keeps_what_it_flushed_afterwards() -> None:
    for seed in range(60):
        random = Random(seed)
        files = SimFiles(SetClock(), [LOGS])
        store, log = _begin(files)
        _write(log, 100)
        _flush(log)
        store.checkpoint_recovery_points()
        store.truncations.truncate(NAME, 55)
        cut, flushed = read(log, 0), log.log_end_offset
        for _ in range(random.randrange(40)):
            append(log, batch(1, 77), epoch=50)
        written = read(log, 0)
        if random.random() < 0.5:
            flushed = _flush(log)
        files.power_cut(random)
        log = _open(files).logs[NAME]
        found = read(log, 0)
        assert found.startswith(cut), seed
        assert log.log_end_offset >= flushed, seed
        if flushed > 55:
            assert found == written, seed
        assert _offsets(log) == list(range(log.log_end_offset)), seed


def test_st_8_a_log_has_nothing_of_what_an_earlier_one_of_its_name_had_reached() -> None:
    for seed in range(20):
        files = SimFiles(SetClock(), [LOGS])
        store, log = _begin(files)
        _write(log, 100)
        _flush(log)
        store.checkpoint_recovery_points()
        store.checkpoint_high_watermarks({NAME: 100})
        store.delete(NAME)
        log = store.create(NAME, bytes(range(1, 17)), CONFIG)
        files.sync(LOGS)
        _write(log, 120)
        written = read(log, 0)
        files.power_cut(Random(seed))
        store = _open(files)
        log = store.logs[NAME]
        assert written.startswith(read(log, 0)), seed
        assert _offsets(log) == list(range(log.log_end_offset)), seed
        assert store.high_watermarks[NAME] == 0


def test_a_full_disk_refuses_and_a_store_goes_on_when_there_is_room() -> None:
    files = SimFiles(SetClock(), [LOGS])
    _, log = _begin(files)
    _write(log, 10)
    files.fail(LOGS, errno.ENOSPC, after_bytes=200)
    with pytest.raises(OSError, match="No space"):
        _write(log, 10)
    files.heal(LOGS)
    files.process_died()
    log = _open(files).logs[NAME]
    assert 10 <= log.log_end_offset < 20
    end = log.log_end_offset
    _write(log, 5)
    assert _offsets(log) == list(range(end + 5))


def test_st_6_the_newest_time_seen_is_read_after_a_loss_of_power() -> None:
    """That is when a machine wakes up with a wrong calendar."""
    for seed in range(20):
        files = SimFiles(SetClock(), [LOGS])
        write_seen_ms(files, [LOGS], 5)
        write_seen_ms(files, [LOGS], 6)
        files.power_cut(Random(seed))
        assert read_seen_ms(files, [LOGS]) in (5, 6), seed
