"""ST-7: what a pass reads and writes, and what it must not take away."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.config import LogConfig
from barnabas.errors import CorruptData
from barnabas.records.compression import GZIP, LZ4, SNAPPY, ZSTD
from barnabas.records.control_records import ABORT
from barnabas.storage.cleaner import examine, job_of
from barnabas.storage.compaction import survival
from barnabas.storage.compaction.compaction import Compaction
from barnabas.storage.compaction.job import Finished, Replacement
from barnabas.storage.compaction.key_map import BYTES_PER_KEY
from barnabas.storage.files import File
from barnabas.storage.log import Log
from tests.kit.storage.disk import QuickFiles, append, open_at, records
from tests.kit.storage.passes import (
    LIMITS,
    NOW,
    clean,
    end,
    headers,
    keyed,
    roll,
    write,
)

CONFIG = LogConfig(cleanup_policy="compact", segment_bytes=1000)
VALUE = b"v" * 150


class CountingFiles(QuickFiles):
    """Knows which files were opened, however often."""

    def __init__(self) -> None:
        self.opened: list[str] = []

    def open(self, path: Path, *, create: bool = False) -> File:
        self.opened.append(path.name)
        return super().open(path, create=create)


def filled(directory: Path, segments: int) -> Log:
    """Full segments of five keys each, all different."""
    log = open_at(directory, CONFIG)
    for number in range(segments):
        write(log, *[(b"%d-%d" % (number, i), VALUE) for i in range(5)])
        roll(log)
    return log


def test_a_segment_of_which_nothing_goes_is_not_written_again(tmp_path: Path) -> None:
    log = filled(tmp_path, 4)
    before = [each.path(".log").stat().st_ino for each in log.segments]
    assert clean(log) is not None
    write(log, (b"2-1", VALUE))
    roll(log)
    clean(log)
    after = [each.path(".log").stat().st_ino for each in log.segments]
    assert [i for i in range(4) if after[i] != before[i]] == [2]
    keys = [each.key for each in records(log)]
    assert len(keys) == len(set(keys)) == 20


@pytest.mark.parametrize("bit", [0, 2, 5, 20, 40, 63])
def test_a_damaged_base_offset_takes_no_record_away(tmp_path: Path, bit: int) -> None:
    """It is in no checksum, and would make an old record the latest one of its key."""
    log = open_at(tmp_path, CONFIG._replace(segment_bytes=5000))
    for _ in range(2):
        for i in range(5):
            write(log, (b"key %d" % i, VALUE), (b"key %d" % (i + 5), VALUE))
        roll(log)
    path = log.segments[0].path(".log")
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 5 * 4 + 7 - bit // 8] ^= 1 << bit % 8
    path.write_bytes(raw)
    with pytest.raises(CorruptData, match=r"byte \d+: the batch has offset -?\d+, where"):
        clean(log)
    assert path.read_bytes() == raw


def test_a_segment_is_whole_from_its_first_change_on(tmp_path: Path) -> None:
    """What comes before the change is copied, the batches and the indexes."""
    log = open_at(tmp_path, CONFIG._replace(segment_bytes=5000, index_interval_bytes=0))
    for i in range(20):
        write(log, (b"key %d" % i, VALUE))
    roll(log)
    assert clean(log) is not None
    write(log, (b"key 12", VALUE))
    roll(log)
    clean(log)
    assert [each.offset for each in records(log)] == [*range(12), *range(13, 21)]
    segment = log.segments[0]
    for offset in range(12):
        position = segment.locate(offset)
        assert position is not None
        assert next(segment.headers(position)).header.base_offset == offset


def test_keys_are_read_from_the_first_dirty_offset_on(tmp_path: Path) -> None:
    """Clean segments are read once in a pass, to see what goes; dirty ones twice."""
    log = filled(tmp_path, 6)
    log.first_dirty_offset = log.segments[4].base_offset
    files = CountingFiles()
    cleanable = examine(log, log.log_end_offset, NOW)
    list(Compaction(files, log.directory, job_of(cleanable, LIMITS, NOW), {}).run())
    opened = [files.opened.count(each.path(".log").name) for each in log.segments[:6]]
    assert opened == [1, 1, 1, 1, 2, 2]


def test_many_passes_write_no_more_than_what_changes(tmp_path: Path) -> None:
    """All keys are different, and two segments' keys fit into the memory: nothing is written,
    however many passes the whole takes; the keys of each segment are read once."""
    log = filled(tmp_path, 8)
    limits = LIMITS._replace(buffer_bytes=12 * BYTES_PER_KEY)
    passes, replaced = 0, 0
    while log.first_dirty_offset < log.segments[8].base_offset:
        cleanable = examine(log, log.log_end_offset, NOW)
        job = job_of(cleanable, limits, NOW)
        for event in Compaction(QuickFiles(), log.directory, job, {}).run():
            replaced += isinstance(event, Replacement)
            if isinstance(event, Finished):
                assert event.first_dirty_offset == max(log.first_dirty_offset, 0) + 10
                log.first_dirty_offset = event.first_dirty_offset
        passes += 1
    assert (passes, replaced) == (4, 0)


# --- aborted transactions ------------------------------------------------------------------------


def test_an_aborted_transaction_stays_indexed_until_its_data_is_gone(tmp_path: Path) -> None:
    """The pass that takes the data away keeps the entry: a reader that began before may still be
    in the data. It goes with the first pass that meets none."""
    log = open_at(tmp_path, CONFIG)
    for producer_id in (7, 8):
        raw = keyed((b"a", VALUE), producer=(producer_id, 0, 0), is_transactional=True)
        append(log, raw)
    for producer_id in (7, 8):
        end(log, ABORT, producer_id)
    for producer_id in (7, 8):  # else an empty batch of the first one would have to stay
        raw = keyed((b"%d" % producer_id, VALUE), producer=(producer_id, 0, 1))
        append(log, raw)
    roll(log)
    before = log.aborted_transactions(0, 6)
    assert [each.producer_id for each in before] == [7, 8]
    clean(log)
    assert log.aborted_transactions(0, 6) == before
    write(log, (b"c", VALUE))
    roll(log)
    clean(log)
    assert log.aborted_transactions(0, 6) == []


def test_an_aborted_transaction_across_segments_stays_indexed(tmp_path: Path) -> None:
    """Only a part of its data may be cleaned: what is behind the end of the pass is still there,
    and so must be the entry, in whichever segment it is."""
    log = open_at(tmp_path, CONFIG)
    append(log, keyed((b"a", VALUE), producer=(7, 0, 0), is_transactional=True))
    roll(log)
    append(log, keyed((b"b", VALUE), producer=(7, 0, 1), is_transactional=True))
    end(log, ABORT, 7)
    write(log, (b"c", VALUE))
    roll(log)
    clean(log, stable_offset=1)
    assert [each.producer_id for each in log.aborted_transactions(0, 5)] == [7]
    clean(log)
    assert [each.producer_id for each in log.aborted_transactions(0, 5)] == [7]
    assert [each.key for each in records(log)][-1:] == [b"c"]
    assert [each.record_count for each in headers(log) if not each.is_control][-1:] == [1]


def test_data_that_is_aborted_behind_the_pass_makes_nothing_obsolete(tmp_path: Path) -> None:
    """Its marker is in the active segment, whose index says so already."""
    log = open_at(tmp_path, CONFIG)
    write(log, (b"a", b"committed"))
    append(log, keyed((b"a", VALUE), producer=(7, 0, 0), is_transactional=True))
    roll(log)
    end(log, ABORT, 7)
    clean(log)
    assert [each.value for each in records(log) if each.key == b"a"] == [b"committed"]


# --- what is too large ---------------------------------------------------------------------------


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_a_batch_that_is_too_large_to_open_keeps_no_log_from_being_cleaned(
    tmp_path: Path, codec: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays as it is, and the log around it is compacted."""
    log = open_at(tmp_path, CONFIG._replace(segment_bytes=10_000))
    write(log, (b"a", b"1"), (b"b", b"1"))
    write(log, (b"a", b"2"), (b"large", bytes(100_000)), codec=codec)
    write(log, (b"b", b"2"))
    write(log, (b"b", b"3"))
    roll(log)
    monkeypatch.setattr(survival, "PLAIN_LIMIT_BYTES", 50_000)
    finished = clean(log)
    assert finished is not None and finished.unopened_batches == 1
    assert finished.first_dirty_offset == log.log_end_offset
    assert [each.offset for each in records(log)] == [0, 2, 3, 5]
    assert finished.records_kept == 4


@pytest.mark.parametrize(("limit_bytes", "kept"), [(50_000, [0, 1, 2]), (200_000, [])])
def test_no_tombstone_goes_behind_a_batch_that_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit_bytes: int, kept: list[int]
) -> None:
    """Its key would have the old value again."""
    monkeypatch.setattr(survival, "PLAIN_LIMIT_BYTES", limit_bytes)
    log = open_at(tmp_path, CONFIG._replace(delete_retention_ms=100))
    write(log, (b"a", bytes(100_000)), codec=GZIP)
    write(log, (b"a", None), (b"b", None))
    for i in range(3):
        write(log, (b"c", VALUE))
        roll(log)
        clean(log, now_ms=NOW + 1000 * i)
    assert [each.offset for each in records(log) if each.key != b"c"] == kept
