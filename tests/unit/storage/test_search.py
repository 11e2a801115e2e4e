"""Searches by time where the index does not help. (The others: test_log.)"""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.config import LogConfig
from barnabas.errors import CorruptData
from barnabas.records.batch import HEADER_BYTES, read_header, seal
from barnabas.records.compression import GZIP, compress
from tests.kit.storage.batches import message
from tests.kit.storage.disk import T0, append, batch, open_at, records
from tests.kit.storage.times import max_timestamp_offset, offset_for_timestamp


def test_st_4_without_a_time_index_the_log_is_asked(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    for ms in (0, 10, 20):
        append(log, batch(2, timestamp=T0 + ms, step_ms=1))
    log.close()
    (tmp_path / f"{0:020}.timeindex").unlink()
    log = open_at(tmp_path)
    found = offset_for_timestamp(log, T0 + 11, 6)
    assert found is not None and (found.offset, found.timestamp) == (3, T0 + 11)


def test_st_4_messages_without_times_are_passed_over(tmp_path: Path) -> None:
    """Magic 0 has none; it stays readable, and nothing in it is young."""
    old = message(0, b"a", magic=0) + message(1, b"b", magic=0)
    (tmp_path / f"{0:020}.log").write_bytes(old)
    (tmp_path / f"{0:020}.index").write_bytes(b"")
    log = open_at(tmp_path)
    assert log.log_end_offset == 2
    assert offset_for_timestamp(log, 0, 2) is None
    assert max_timestamp_offset(log) is None
    append(log, batch(timestamp=T0))
    assert offset_for_timestamp(log, 1, 3) == (2, T0, 0)


def test_st_4_wrapped_messages_are_found_inside(tmp_path: Path) -> None:
    inner = b"".join(message(i, b"x", timestamp=100 + i) for i in range(5))
    wrapper = message(4, compress(GZIP, inner), attributes=GZIP, timestamp=104)
    (tmp_path / f"{0:020}.log").write_bytes(wrapper)
    (tmp_path / f"{0:020}.index").write_bytes(b"")
    log = open_at(tmp_path)
    assert log.log_end_offset == 5
    assert offset_for_timestamp(log, 103, 5) == (3, 103, -1)


def test_a_log_that_lost_its_end_under_us_is_corrupt_data(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    append(log, batch(1, 500))
    log.segments[0].open_file().truncate(400)
    with pytest.raises(CorruptData, match="ends inside the batch at 0"):
        offset_for_timestamp(log, T0, 1)


def test_st_4_a_time_beyond_all_times_wraps_as_in_java(tmp_path: Path) -> None:
    """A record's time is its batch's and a difference, and a producer may send any two."""
    log = open_at(tmp_path)
    latest = 2**63 - 1
    raw = batch(2, step_ms=10)
    header = read_header(raw)._replace(base_timestamp=latest - 5, max_timestamp=latest)
    append(log, bytearray(seal(header, raw[HEADER_BYTES:])))
    found = offset_for_timestamp(log, latest - 4, 2)
    assert found is not None
    assert (found.offset, found.timestamp) == (1, -(2**63) + 4)


def test_st_4_the_newest_record_is_never_below_the_log_start(tmp_path: Path) -> None:
    """Records deleted by request lie in the files, and in the indexes, until their segment goes."""
    log = open_at(tmp_path, LogConfig(segment_bytes=1000, index_interval_bytes=100))
    for ms in (900, 20, 30, 20, 10, 30, 25, 5, 30, 7, 28, 2):
        append(log, batch(2, 100, timestamp=T0 + ms, step_ms=-1))
    assert len(log.segments) > 2
    times = [(record.timestamp, -record.offset) for record in records(log)]
    for start in range(log.log_end_offset):
        log.raise_log_start(start)
        timestamp, negative_offset = max(times[start:])
        found = max_timestamp_offset(log)
        assert found is not None
        assert (found.timestamp, found.offset) == (timestamp, -negative_offset)
    log.raise_log_start(log.log_end_offset)
    assert max_timestamp_offset(log) is None
    assert offset_for_timestamp(log, T0, log.log_end_offset) is None
