"""The log: appends, rolling, reads, times, and what a failing disk leaves."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path

import pytest

from barnabas.config import LogConfig
from barnabas.errors import CorruptData, OffsetOutOfRange, OutOfOrderSequenceNumber
from barnabas.records.batch import iterate_batches
from barnabas.records.record import iterate_records
from barnabas.storage.cold_lookups import warming
from barnabas.storage.log import Log
from barnabas.storage.roll_rule import RollRule
from tests.kit.storage.descriptors import open_files_below
from tests.kit.storage.disk import (
    CRASHED,
    T0,
    WatchedFiles,
    append,
    batch,
    open_at,
    read,
    records,
)
from tests.kit.storage.times import max_timestamp_offset, offset_for_timestamp

SMALL = LogConfig(segment_bytes=1000, index_interval_bytes=100)


def _bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def _offsets(raw: bytes) -> list[int]:
    return [header.base_offset for _, header in iterate_batches(raw)]


# --- append --------------------------------------------------------------------------------------


def test_st_5_batches_get_consecutive_offsets_and_the_leaders_epoch(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    first = append(log, batch(3), epoch=5)
    second = append(log, batch(2), epoch=5)
    assert (first.base_offset, first.last_offset, first.is_duplicate) == (0, 2, False)
    assert (second.base_offset, second.last_offset, second.size_bytes) == (3, 4, len(batch(2)))
    headers = [header for _, header in iterate_batches(read(log, 0))]
    assert [(h.base_offset, h.partition_leader_epoch) for h in headers] == [(0, 5), (3, 5)]
    assert list(log.epochs.entries) == [(5, 0)]
    assert log.log_end_offset == 5
    assert log.size_bytes == len(batch(3)) + len(batch(2))


def test_an_append_is_one_write(tmp_path: Path) -> None:
    files = WatchedFiles()
    log = open_at(tmp_path, files=files)
    sizes = [append(log, batch(count)).size_bytes for count in (1, 2, 3)]
    assert files.written == [
        (f"{0:020}.log", 0, sizes[0]),
        (f"{0:020}.log", sizes[0], sizes[1]),
        (f"{0:020}.log", sizes[0] + sizes[1], sizes[2]),
    ]


def test_log_append_time_is_stamped(tmp_path: Path) -> None:
    log = open_at(tmp_path, LogConfig(message_timestamp_type="LogAppendTime"))
    result = append(log, batch(2, timestamp=5), now_ms=777)
    assert result.log_append_time_ms == 777
    assert [record.timestamp for record in records(log)] == [777, 777]
    found = max_timestamp_offset(log)
    assert found is not None and (found.timestamp, found.offset) == (777, 0)


def test_the_configuration_may_change_while_the_log_is_open(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    log.config = LogConfig(message_timestamp_type="LogAppendTime")
    assert append(log, batch(), now_ms=9).log_append_time_ms == 9
    assert log.config.message_timestamp_type == "LogAppendTime"


def test_pr_6_a_repetition_is_answered_and_not_written(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    append(log, batch(3, producer=(9, 0, 0)))
    append(log, batch(1))
    again = append(log, batch(3, producer=(9, 0, 0)))
    assert (again.base_offset, again.last_offset, again.is_duplicate) == (0, 2, True)
    assert (log.log_end_offset, again.size_bytes) == (4, 0)
    with pytest.raises(OutOfOrderSequenceNumber):
        append(log, batch(3, producer=(9, 0, 4)))
    assert append(log, batch(1, producer=(9, 0, 3))).base_offset == 4


def test_a_turns_appends_are_one_write(tmp_path: Path) -> None:
    files = WatchedFiles()
    log = open_at(tmp_path, SMALL, files=files)
    sent = [batch(1, 20) for _ in range(5)]
    results = [log.append(memoryview(each), 0, T0) for each in sent]
    assert [each.base_offset for each in results] == [0, 1, 2, 3, 4]
    assert (log.log_end_offset, log.has_staged, files.written) == (5, True, [])
    log.write_staged()
    size = sum(map(len, sent))
    assert files.written == [(f"{0:020}.log", 0, size)]
    assert (log.has_staged, log.size_bytes) == (False, size)
    log.write_staged()
    assert len(files.written) == 1
    assert _offsets(read(log, 0)) == [0, 1, 2, 3, 4]


def test_a_roll_and_a_reader_write_what_was_staged(tmp_path: Path) -> None:
    log = open_at(tmp_path, SMALL)
    for i in range(30):
        log.append(memoryview(batch(1, 100, timestamp=T0 + i)), 0, T0)
        if i % 3 == 2:
            assert len(_offsets(read(log, 0))) == i + 1
            assert not log.has_staged
    log.append(memoryview(batch(1, 1, timestamp=T0 + 99)), 0, T0)
    assert max_timestamp_offset(log) == (30, T0 + 99, 0)
    log.append(memoryview(batch(1, 1, timestamp=T0 + 199)), 0, T0)
    assert offset_for_timestamp(log, T0 + 199, 32) == (31, T0 + 199, 0)
    log.append(memoryview(batch(1)), 0, T0)
    log.close()
    assert len(records(open_at(tmp_path, SMALL))) == 33


def test_a_refused_write_is_the_end_of_the_log(tmp_path: Path) -> None:
    """Memory and disk differ then; the next start finds what was acknowledged."""
    files = WatchedFiles()
    log = open_at(tmp_path, files=files)
    append(log, batch(2, producer=(9, 0, 0)))
    before = log.size_bytes
    files.room_bytes = 50
    with pytest.raises(OSError, match="No space left"):
        append(log, batch(4, producer=(9, 0, 2)))
    files.room_bytes = None
    assert log.health.is_failed
    for action in (
        lambda: append(log, batch(1, producer=(9, 0, 6))),
        log.write_staged,
        lambda: log.read(0, 1, 2),
        lambda: offset_for_timestamp(log, 0, 2),
        log.flush,
        log.take_flush,
        log.close,
    ):
        with pytest.raises(OSError, match="an earlier write failed"):
            action()
    log.release()
    log = open_at(tmp_path, start=CRASHED)
    assert (log.log_end_offset, log.size_bytes) == (2, before)
    assert append(log, batch(1, producer=(9, 0, 2))).base_offset == 2
    log.close()
    assert (tmp_path / f"{0:020}.log").stat().st_size == log.size_bytes


# --- rolling (ST-2) ------------------------------------------------------------------------------


def test_st_2_a_segment_rolls_by_size_and_is_named_by_its_first_offset(tmp_path: Path) -> None:
    log = open_at(tmp_path, SMALL)
    for _ in range(20):
        append(log, batch(3, 50))
    sizes = [segment.size_bytes for segment in log.segments]
    assert max(sizes) <= 1000
    assert sizes[0] + len(batch(3, 50)) > 1000
    assert _bases(log) == [0, 12, 24, 36, 48]
    log.close()
    names = sorted(path.name for path in tmp_path.glob("*.log"))
    assert names == [f"{base:020}.log" for base in (0, 12, 24, 36, 48)]


def test_st_2_a_segment_may_be_filled_to_its_last_byte(tmp_path: Path) -> None:
    size = len(batch(3, 50))
    log = open_at(tmp_path, LogConfig(segment_bytes=4 * size))
    for _ in range(9):
        append(log, batch(3, 50))
    assert [segment.size_bytes for segment in log.segments] == [4 * size, 4 * size, size]


def test_st_2_a_segment_rolls_by_the_time_of_records(tmp_path: Path) -> None:
    log = open_at(tmp_path, LogConfig(segment_ms=1000))
    for timestamp in (T0, T0 + 1000, T0 + 1001, T0 + 500, T0 + 2002):
        append(log, batch(timestamp=timestamp))
    assert _bases(log) == [0, 2, 4]


def test_st_7_a_compacted_log_rolls_within_its_longest_lag(tmp_path: Path) -> None:
    """KIP-354: no record waits in the active segment for as long as `segment.ms`."""
    config = LogConfig(cleanup_policy="compact", max_compaction_lag_ms=1000, segment_jitter_ms=5000)
    log = open_at(tmp_path, config._replace(segment_jitter_ms=0))
    for timestamp in (T0, T0 + 1000, T0 + 1001):
        append(log, batch(timestamp=timestamp))
    assert _bases(log) == [0, 2]
    log.config = config._replace(cleanup_policy="delete", segment_jitter_ms=0)
    append(log, batch(timestamp=T0 + 10_000))
    assert _bases(log) == [0, 2], "no pass would come"
    # Jitter takes no more than there is: not every batch gets a segment.
    rule = RollRule.of(config)
    assert not rule.is_due(log.segments[1], 0, 0, T0 + 1001, T0)


def test_st_2_without_times_the_clock_counts(tmp_path: Path) -> None:
    log = open_at(tmp_path, LogConfig(segment_ms=1000))
    for now_ms in (T0, T0 + 500, T0 + 1500, T0 + 1501):
        append(log, batch(timestamp=-1), now_ms=now_ms)
    assert _bases(log) == [0, 3]


def test_st_2_without_times_a_clock_that_is_set_back_counts_from_there(tmp_path: Path) -> None:
    """Or the segment would stay the active one for as long as the clock was ahead."""
    log = open_at(tmp_path, LogConfig(segment_ms=1000))
    ahead_ms = 86_400_000
    for now_ms in (T0 + ahead_ms, T0 + ahead_ms, T0, T0 + 1000, T0 + 1001):
        append(log, batch(timestamp=-1), now_ms=now_ms)
    assert _bases(log) == [0, 4]


def test_st_2_a_segment_rolls_when_an_index_is_full(tmp_path: Path) -> None:
    log = open_at(tmp_path, LogConfig(index_interval_bytes=0, segment_index_bytes=60))
    for i in range(12):
        append(log, batch(timestamp=T0 + i))
    # Five slots of the time index, the last of which is kept for closing; the first batch has none.
    assert _bases(log) == [0, 5, 10]
    log.close()
    sizes = [path.stat().st_size for path in sorted(tmp_path.glob("*.timeindex"))]
    assert sizes == [12 * 4, 12 * 4, 12 * 1]


def test_segments_of_a_topic_do_not_roll_all_at_once(tmp_path: Path) -> None:
    ends = set()
    for run in range(10):
        (tmp_path / str(run)).mkdir()
        log = open_at(tmp_path / str(run), LogConfig(segment_ms=1000, segment_jitter_ms=900))
        append(log, batch(timestamp=T0))
        segment = log.segments[0]
        segment.base_offset = run  # as of another partition
        rule = RollRule.of(log.config)
        waited = next(ms for ms in range(1100) if rule.is_due(segment, 0, 0, T0 + ms, T0))
        assert 100 <= waited <= 1001
        ends.add(waited)
    assert len(ends) > 5


def test_pr_6_a_roll_keeps_the_producers(tmp_path: Path) -> None:
    log = open_at(tmp_path, SMALL)
    for i in range(20):
        append(log, batch(1, 100, producer=(9, 0, i)))
    assert len(log.segments) > 2
    assert {path.name for path in tmp_path.glob("*.snapshot")} == {
        f"{base:020}.snapshot" for base in _bases(log)[1:]
    }


# --- read (ST-3, ST-5) ---------------------------------------------------------------------------


@pytest.fixture
def filled(tmp_path: Path) -> Log:
    """Hundred batches of two records in many segments."""
    log = open_at(tmp_path, SMALL)
    for i in range(100):
        append(log, batch(2, 30, timestamp=T0 + i))
    return log


def test_st_3_a_read_begins_with_the_batch_that_holds_the_offset(filled: Log) -> None:
    for offset in range(200):
        raw = read(filled, offset, max_bytes=1)
        assert _offsets(raw) == [offset // 2 * 2]


def test_st_3_offset_88_is_found_by_scanning_from_the_index_entry(tmp_path: Path) -> None:
    """ST-3's example: the entry {54, 4190} is the greatest at or below 88."""
    log = open_at(tmp_path, LogConfig(index_interval_bytes=4100))
    append(log, batch(48, 70))  # offsets 0 to 47
    room = 4190 - log.size_bytes
    filler = next(each for n in range(room) if len(each := batch(1, n)) == room)
    append(log, filler)
    assert (log.log_end_offset, log.size_bytes) == (49, 4190)
    append(log, batch(6))  # offsets 49 to 54 from byte 4190
    for _ in range(40):
        append(log, batch(1))
    segment = log.segments[0]
    assert list(map(segment.offset_index.__getitem__, range(len(segment.offset_index)))) == [
        (54, 4190)
    ]
    assert segment.index_position(88) == 4190
    assert segment.index_position(53) == 0
    log.close()
    assert next(iterate_records(read(open_at(tmp_path), 88))).offset == 88


def test_a_read_ends_below_the_end_offset(filled: Log) -> None:
    for end in range(0, 200, 2):
        expected = list(range(0, end, 2))
        assert _offsets(read(filled, 0, end_offset=end)) == expected
    assert read(filled, 10, end_offset=10) == b""
    assert read(filled, 12, end_offset=10) == b""


def test_a_read_takes_whole_batches_up_to_its_size(filled: Log) -> None:
    size = len(batch(2, 30))
    for wanted in (1, size - 1, size, size + 1, 5 * size - 1, 5 * size, 12 * size + 7, 99 * size):
        raw = read(filled, 20, max_bytes=wanted)
        assert len(raw) == max(1, min(90, wanted // size)) * size
        assert _offsets(raw)[0] == 20


def test_a_read_of_exactly_its_size_needs_no_index(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    sizes = {append(log, batch(2, 30)).size_bytes for _ in range(10)}
    size = sizes.pop()
    assert len(log.segments[0].offset_index) == 0
    for count in range(1, 11):
        assert len(read(log, 0, max_bytes=count * size)) == count * size
        assert len(read(log, 0, max_bytes=count * size - 1)) == max(1, count - 1) * size


def test_at_least_one_batch_is_given_only_if_asked(filled: Log) -> None:
    assert filled.read(0, 10, 200, at_least_one_batch=False) == []
    assert filled.read(0, 0, 200, at_least_one_batch=False) == []
    (only,) = filled.read(0, 0, 200)
    assert only.size == len(batch(2, 30))
    only.release()


def test_a_read_outside_of_the_log_is_refused(filled: Log) -> None:
    for offset in (-1, 201, 10**9):
        with pytest.raises(OffsetOutOfRange, match="0 to 200"):
            filled.read(offset, 100, 200)
    assert filled.read(200, 100, 200) == []


def test_a_length_that_reads_wrong_skips_no_records(filled: Log) -> None:
    """No checksum covers it; a reader must not go on in the next segment instead."""
    first, second = filled.segments[:2]
    length = int.from_bytes(first.read_batch(8, 4), "big")
    first.open_file().write(8, (length + 32768).to_bytes(4, "big"))
    filled.release()
    with pytest.raises(
        CorruptData, match=r"byte 0: a batch of 3\d{4} bytes, but only \d+ are left"
    ):
        read(filled, 2, max_bytes=10_000)
    assert _offsets(read(filled, second.base_offset, max_bytes=1)) == [second.base_offset]


@pytest.mark.parametrize("end_offset", [30, 24])
@pytest.mark.parametrize("max_bytes", [1 << 20, 500])
def test_what_comes_before_a_damaged_batch_can_be_read(
    tmp_path: Path, end_offset: int, max_bytes: int
) -> None:
    """Up to the log's end or to a high watermark within the segment, however much is asked for."""
    log = open_at(tmp_path)
    whole = b""
    for i in range(30):
        raw = batch(1, 30, timestamp=T0 + i)
        append(log, raw)
        whole += raw
    one = len(whole) // 30
    with log.segments[0].path(".log").open("r+b") as file:
        file.seek(20 * one + 9)
        file.write(b"\x7f")  # a length of megabytes
    log.release()  # what it remembers of the last appends
    given = b""
    offset = 0
    while offset < 20:
        some = read(log, offset, max_bytes, end_offset)
        assert some, f"offset {offset} cannot be read"
        given += some
        offset = len(given) // one
    assert given[: 20 * one] == whole[: 20 * one]
    with pytest.raises(CorruptData, match=f"byte {20 * one}: a batch of"):
        log.read(20, max_bytes, end_offset)


def test_slices_outlive_the_files(filled: Log) -> None:
    """A closed descriptor's number is reused; a slice keeps its own open."""
    slices = filled.read(0, 10**6, 200)
    filled.release()
    filled.abandon()
    for path in filled.directory.iterdir():
        path.unlink()
    raw = b"".join(each.read() for each in slices)
    assert _offsets(raw) == list(range(0, 200, 2))
    for each in slices:
        each.release()


def test_readers_of_old_segments_do_not_keep_them_open(filled: Log) -> None:
    def open_files() -> int:
        return open_files_below(filled.directory)

    filled.release()
    before = open_files()
    for offset in range(200):
        read(filled, offset, max_bytes=100)
    assert open_files() - before <= 3 * 3
    offset_for_timestamp(filled, T0 + 50, 200)
    max_timestamp_offset(filled)
    assert open_files() - before <= 3 * 3
    filled.release()
    assert open_files() == before


def test_a_follower_of_the_log_pays_no_read(tmp_path: Path) -> None:
    files = WatchedFiles()
    log = open_at(tmp_path, files=files)
    for i in range(50):
        append(log, batch(3))
        slices = log.read(3 * i, 10**6, log.log_end_offset)
        assert [each.size for each in slices] == [len(batch(3))]
        for each in slices:
            each.release()
    assert files.bytes_read.get(f"{0:020}.log", 0) == 0


def test_a_cold_read_touches_only_what_is_near(tmp_path: Path) -> None:
    files = WatchedFiles()
    log = open_at(tmp_path, files=files)
    for _ in range(4000):
        append(log, batch(1, 200))
    files.bytes_read.clear()
    for each in log.read(1717, 100_000, log.log_end_offset):
        each.release()
    assert files.bytes_read[f"{0:020}.log"] < 6 * 4096


@pytest.mark.parametrize("max_bytes", [-(1 << 31), 0, 1, 1 << 20])
def test_a_warming_raises_nothing_wherever_it_begins(filled: Log, max_bytes: int) -> None:
    for offset in (0, 100, filled.log_end_offset - 1, filled.log_end_offset, (1 << 63) - 1):
        warming(filled, offset, max_bytes)()


# --- times (ST-4) --------------------------------------------------------------------------------


def test_st_4_the_first_record_that_is_not_older(filled: Log) -> None:
    for ms in range(100):
        found = offset_for_timestamp(filled, T0 + ms, 200)
        assert found is not None
        assert (found.offset, found.timestamp) == (2 * ms, T0 + ms)
    assert offset_for_timestamp(filled, T0 + 100, 200) is None
    first = offset_for_timestamp(filled, 0, 200)
    assert first is not None and first.offset == 0


def test_st_4_not_beyond_the_end_that_a_reader_may_see(filled: Log) -> None:
    assert offset_for_timestamp(filled, T0 + 50, 100) is None
    assert offset_for_timestamp(filled, T0 + 49, 100) is not None


@pytest.mark.parametrize("codec", range(5))
def test_st_4_inside_of_a_compressed_batch(tmp_path: Path, codec: int) -> None:
    log = open_at(tmp_path)
    append(log, batch(10, timestamp=T0, step_ms=100, codec=codec), epoch=3)
    assert offset_for_timestamp(log, T0 + 401, 10) == (5, T0 + 500, 3)
    assert max_timestamp_offset(log) == (9, T0 + 900, 3)


def test_st_4_times_out_of_order(tmp_path: Path) -> None:
    log = open_at(tmp_path, LogConfig(index_interval_bytes=0))
    for ms in (100, 50, 300, 200, 300, 10):
        append(log, batch(timestamp=T0 + ms))
    found = [offset_for_timestamp(log, T0 + ms, 6) for ms in (0, 100, 101, 250, 300)]
    assert [each and each.offset for each in found] == [0, 0, 2, 2, 2]
    newest = max_timestamp_offset(log)
    assert newest is not None and newest.offset == 2


def test_an_empty_log_has_no_times(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    assert max_timestamp_offset(log) is None
    assert offset_for_timestamp(log, 0, 0) is None


# --- on disk -------------------------------------------------------------------------------------


def test_a_flush_makes_all_durable_and_says_so(tmp_path: Path) -> None:
    files = WatchedFiles()
    log = open_at(tmp_path, SMALL, files=files)
    for _ in range(10):
        append(log, batch(3, 50))
    assert log.recovery_point == 0
    log.flush()
    assert log.recovery_point == log.log_end_offset == 30
    # (Of the snapshots the newest is enough; the epochs' file is replaced by a durable one.)
    written = {path.name for path in tmp_path.iterdir()}
    written -= {f"{12:020}.snapshot", "leader-epoch-checkpoint"}
    assert set(files.synced) >= written
    assert tmp_path.name in files.synced
    files.synced.clear()
    log.flush()
    assert files.synced == []


def test_what_rolled_is_flushed_apart(tmp_path: Path) -> None:
    files = WatchedFiles()
    log = open_at(tmp_path, SMALL, files=files)
    for _ in range(10):
        append(log, batch(3, 50))
    (flush,) = log.take_unflushed()
    assert files.synced == []
    flush()
    assert log.recovery_point == _bases(log)[-1] == 24
    assert f"{24:020}.log" not in files.synced
    assert f"{12:020}.index" in files.synced
    assert log.take_unflushed() == []


def test_after_a_failed_fsync_nothing_is_believed(tmp_path: Path) -> None:
    """The kernel may have dropped the pages; a later success says nothing about them."""
    files = WatchedFiles()
    log = open_at(tmp_path, files=files)
    append(log, batch())
    files.unsyncable = True
    with pytest.raises(OSError, match="Input/output"):
        log.flush()
    files.unsyncable = False
    with pytest.raises(OSError, match="an earlier write failed"):
        log.close()
    assert log.recovery_point == 0
    assert open_at(tmp_path, start=CRASHED).log_end_offset == 1


@pytest.mark.thorough
def test_an_idle_partition_is_small(tmp_path: Path) -> None:
    config = LogConfig()

    def used(i: int) -> Log:
        (tmp_path / str(i)).mkdir()
        log = open_at(tmp_path / str(i), config)
        log.assign_leader_epoch(0)
        for n in range(200):
            append(log, batch(10, 50, timestamp=T0 + n, producer=(i, 0, 10 * n)))
        return log

    used(10).release()  # the first one's imports are shared
    descriptors = open_files_below(tmp_path)
    tracemalloc.start()
    logs = [used(i) for i in range(10)]
    gc.collect()  # Python's free lists of tuples as well, which hold what the first test frees
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held / 10 < 20_000
    assert open_files_below(tmp_path) - descriptors <= 10
    for log in logs:
        log.release()
