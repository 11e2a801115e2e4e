"""`Log.append_as_follower`: the leader's batches as they are, or nothing of them (RE-3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.config import LogConfig
from barnabas.errors import CorruptData, OutOfOrderSequenceNumber
from barnabas.records.batch import assign_in_place, iterate_batches
from barnabas.records.control_records import ABORT, COMMIT, Marker, build_marker
from barnabas.records.crc32c import crc32c
from barnabas.records.record import iterate_records
from barnabas.storage.copies import check_copies
from barnabas.storage.log import Log
from tests.kit.storage.disk import CLEAN, CRASHED, T0, append, batch, open_at, read, records
from tests.kit.storage.passes import clean, keyed
from tests.kit.storage.times import max_timestamp_offset

SMALL = LogConfig(segment_bytes=600, index_interval_bytes=100)


def _pair(tmp_path: Path, config: LogConfig = SMALL) -> tuple[Log, Log]:
    for name in ("leader", "follower"):
        (tmp_path / name).mkdir()
    return open_at(tmp_path / "leader", config), open_at(tmp_path / "follower", config)


def _copy(leader: Log, follower: Log, max_bytes: int = 1 << 20) -> int:
    raw = read(leader, follower.log_end_offset, max_bytes)
    count = follower.append_as_follower(memoryview(raw), T0 + 5)
    follower.write_staged()
    return count


def _placed(*batches: bytearray, epoch: int = 2, base_offset: int = 0) -> bytearray:
    """Batches as a leader's log has them, one behind the other."""
    raw = bytearray()
    for each in batches:
        assign_in_place(each, 0, base_offset, epoch)
        base_offset += next(iterate_batches(each))[1].last_offset_delta + 1
        raw += each
    return raw


def test_re_3_the_bytes_are_the_leaders(tmp_path: Path) -> None:
    leader, follower = _pair(tmp_path)
    for i in range(30):
        append(leader, batch(2, 50, timestamp=T0 + i, producer=(9, 0, 2 * i)), epoch=i // 5)
    assert _copy(leader, follower) == 30
    assert (follower.log_end_offset, follower.latest_epoch) == (60, 5)
    for _ in range(2):
        assert read(follower, 0) == read(leader, 0)
        assert follower.epochs.entries == leader.epochs.entries
        assert [each.base_offset for each in follower.segments] == [
            each.base_offset for each in leader.segments
        ]
        known, wanted = follower.producers.get(9), leader.producers.get(9)
        assert known is not None and wanted is not None
        assert known.batches == wanted.batches or known.batches == wanted.batches[-1:]
        follower.close()
        follower = open_at(tmp_path / "follower", SMALL, CLEAN)
    leader.close()
    files = [sorted(path.glob("*.[lit]*")) for path in (tmp_path / "leader", tmp_path / "follower")]
    for own, other in zip(*files, strict=True):
        assert (own.name, own.read_bytes()) == (other.name, other.read_bytes())


def test_times_stay_the_leaders(tmp_path: Path) -> None:
    leader, follower = _pair(tmp_path, LogConfig(message_timestamp_type="LogAppendTime"))
    append(leader, batch(3), now_ms=T0 + 77)
    _copy(leader, follower)
    assert [record.timestamp for record in records(follower)] == [T0 + 77] * 3
    assert max_timestamp_offset(follower) == max_timestamp_offset(leader)


def test_what_is_cut_at_the_end_comes_with_the_next_fetch(tmp_path: Path) -> None:
    leader, follower = _pair(tmp_path)
    for _ in range(3):
        append(leader, batch(1, 50))
    raw = read(leader, 0)
    assert follower.append_as_follower(memoryview(raw[:-1]), T0) == 2
    assert follower.append_as_follower(memoryview(b""), T0) == 0
    assert _copy(leader, follower) == 1
    assert read(follower, 0) == raw


def test_a_producer_that_goes_on_at_the_new_leader_is_known(tmp_path: Path) -> None:
    """PR-6: a follower knows the sequences when its turn comes to lead."""
    leader, follower = _pair(tmp_path)
    for i in range(3):
        append(leader, batch(2, producer=(9, 0, 2 * i)))
    _copy(leader, follower)
    assert append(follower, batch(2, producer=(9, 0, 4)), epoch=1).is_duplicate
    with pytest.raises(OutOfOrderSequenceNumber):
        append(follower, batch(2, producer=(9, 0, 8)), epoch=1)
    assert append(follower, batch(2, producer=(9, 0, 6)), epoch=1).base_offset == 6


def test_co_6_transactions_end_where_the_leader_ended_them(tmp_path: Path) -> None:
    leader, follower = _pair(tmp_path)

    def send(producer_id: int, sequence: int) -> None:
        sent = batch(1, 50, producer=(producer_id, 0, sequence), is_transactional=True)
        append(leader, sent)

    def end(producer_id: int, kind: int) -> None:
        marker = bytearray(build_marker(Marker(0, T0, kind, 4), producer_id, 0))
        leader.append_control(memoryview(marker), 0, T0)
        leader.write_staged()

    send(1, 0)  # 0
    send(2, 0)  # 1
    end(1, ABORT)  # 2
    send(1, 1)  # 3
    assert _copy(leader, follower) == 4
    assert follower.last_stable_offset(4) == leader.last_stable_offset(4) == 1
    end(2, COMMIT)  # 4
    end(1, ABORT)  # 5
    assert _copy(leader, follower) == 2
    assert follower.last_stable_offset(6) == 6
    for log in (follower, leader):
        assert log.aborted_transactions(0, 6) == [(1, 0), (1, 3)]
        assert [log.producers.get(each).coordinator_epoch for each in (1, 2)] == [4, 4]  # type: ignore[union-attr]


def test_st_7_gaps_of_compaction_stay_gaps(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=400, cleanup_policy="compact", index_interval_bytes=100)
    leader, follower = _pair(tmp_path, config)
    for i in range(12):
        append(leader, keyed((b"k", bytes(60)), (b"only %d" % (i % 3), b""), timestamp=T0 + i))
    leader.roll()
    clean(leader)
    raw = read(leader, 0)
    bases = [header.base_offset for _, header in iterate_batches(raw)]
    assert bases[0] > 0 and len(bases) < 12
    while _copy(leader, follower, 200):
        pass
    assert read(follower, 0) == raw
    assert follower.log_end_offset == leader.log_end_offset == 24
    follower.release()
    again = open_at(tmp_path / "follower", config, CRASHED)
    assert again.log_end_offset == 24
    assert read(again, 0) == raw


def test_a_gap_that_no_index_can_span_begins_a_segment(tmp_path: Path) -> None:
    """An empty log's first batch may be further from its beginning than four bytes can say."""
    log = open_at(tmp_path)
    far = 3_000_000_000
    log.append_as_follower(memoryview(_placed(batch(2), base_offset=far)), T0)
    log.write_staged()
    for _ in range(2):
        assert [each.base_offset for each in log.segments] == [0, far]
        assert (log.log_start_offset, log.log_end_offset) == (0, far + 2)
        assert [record.offset for record in records(log)] == [far, far + 1]
        log.release()
        log = open_at(tmp_path, start=CRASHED)


def test_a_leader_whose_log_begins_within_a_batch(tmp_path: Path) -> None:
    """DeleteRecords may have cut there; the batch is whole all the same."""
    leader, follower = _pair(tmp_path)
    append(leader, batch(5))
    append(leader, batch(5))
    leader.raise_log_start(3)
    follower.start_at(3)
    assert _copy(leader, follower) == 2
    assert (follower.log_start_offset, follower.log_end_offset) == (3, 10)
    assert read(follower, 3) == read(leader, 3)


def _flip(raw: bytearray) -> bytearray:
    raw[-1] ^= 1
    return raw


def _shrunk(raw: bytearray) -> bytearray:
    raw[23:27] = (-1).to_bytes(4, "big", signed=True)  # the last offset delta
    return _sealed(raw)


def _sealed(raw: bytearray) -> bytearray:
    raw[17:21] = crc32c(memoryview(raw)[21:]).to_bytes(4, "big")
    return raw


@pytest.mark.parametrize(
    "raw",
    [
        _flip(_placed(batch(1), batch(1), base_offset=4)),
        _placed(batch(1), base_offset=3),
        _placed(batch(3), base_offset=2),
        _placed(batch(1), base_offset=4) + _placed(batch(1), base_offset=4),
        _placed(batch(1), base_offset=5) + _placed(batch(1), base_offset=4),
        _placed(batch(1), base_offset=4, epoch=1),
        _placed(batch(1), base_offset=4, epoch=3) + _placed(batch(1), base_offset=5, epoch=2),
        _shrunk(_placed(batch(1), base_offset=5)),
        _placed(batch(1), base_offset=4)[:-1],
        bytearray(b"HTTP/1.1 400 Bad Request\r\n\r\n" + bytes(60)),
        bytearray(7),
    ],
    ids=[
        "checksum",
        "below the end",
        "across the end",
        "twice",
        "backwards",
        "an older epoch than the log's",
        "an older epoch than the batch before",
        "ends before it begins",
        "nothing whole",
        "something else",
        "too short",
    ],
)
def test_what_cannot_be_the_leaders_next_is_refused_whole(tmp_path: Path, raw: bytearray) -> None:
    log = open_at(tmp_path)
    append(log, batch(4), epoch=2)
    before = (read(log, 0), log.log_end_offset, log.epochs.entries)
    with pytest.raises(CorruptData):
        log.append_as_follower(memoryview(raw), T0)
    assert not log.has_staged
    assert (read(log, 0), log.log_end_offset, log.epochs.entries) == before


def test_a_marker_that_cannot_be_read_is_refused() -> None:
    """Its checksum may be right: another broker made it."""
    marker = bytearray(build_marker(Marker(0, T0, COMMIT, 0), 1, 0))
    empty = bytearray(batch(1, producer=(1, 0, 0)))
    empty[21:23] = marker[21:23]
    with pytest.raises(CorruptData, match="control record"):
        check_copies(memoryview(_sealed(empty)), 0, -1)


def test_an_empty_log_takes_no_batch_that_ends_before_it(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    log.start_at(10)
    with pytest.raises(CorruptData):
        log.append_as_follower(memoryview(_placed(batch(2), base_offset=8)), T0)
    assert (log.log_start_offset, log.log_end_offset) == (10, 10)


def test_records_of_all_that_was_copied_can_be_read(tmp_path: Path) -> None:
    leader, follower = _pair(tmp_path)
    for codec in range(5):
        append(leader, batch(3, 100, codec=codec))
    _copy(leader, follower)
    assert len(list(iterate_records(read(follower, 0)))) == 15
