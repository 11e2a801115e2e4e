"""Opening logs (ST-8): without a scan after a clean stop, else up to the first bad batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.config import LogConfig
from barnabas.errors import CorruptData
from barnabas.records.batch import assign_in_place
from barnabas.records.control_records import ABORT, Marker, build_marker
from barnabas.storage.loading import Start
from tests.kit.storage.disk import (
    CLEAN,
    CRASHED,
    T0,
    WatchedFiles,
    append,
    batch,
    open_at,
    read,
    records,
)
from tests.kit.storage.times import offset_for_timestamp

SMALL = LogConfig(segment_bytes=1000, index_interval_bytes=100)


def _fill(directory: Path, batches: int = 30, config: LogConfig = SMALL) -> bytes:
    """A log of `batches` of three records each, stopped in order; returns all its bytes."""
    directory.mkdir(exist_ok=True)
    log = open_at(directory, config)
    for i in range(batches):
        append(log, batch(3, 50, timestamp=T0 + i, producer=(9, 0, 3 * i)))
    raw = read(log, 0)
    log.close()
    return raw


def _log_file(directory: Path, base_offset: int) -> Path:
    return directory / f"{base_offset:020}.log"


def test_st_8_a_clean_stop_restarts_without_a_scan(tmp_path: Path) -> None:
    """Of five megabytes only what lies behind the last index entry is read: a few headers."""
    config = LogConfig(segment_bytes=1_000_000)
    _fill(tmp_path, batches=5000, config=config)
    files = WatchedFiles()
    log = open_at(tmp_path, config, CLEAN, files)
    assert log.log_end_offset == 15_000
    read_bytes = {name: size for name, size in files.bytes_read.items() if name.endswith(".log")}
    assert len(read_bytes) == 1
    assert sum(read_bytes.values()) <= 3 * 4096
    assert log.recovery_point == 15_000
    # What a crash's scan would have found stays unseen.
    log.release()
    damaged = _log_file(tmp_path, 0)
    damaged.write_bytes(damaged.read_bytes()[:70] + b"!" + damaged.read_bytes()[71:])
    assert open_at(tmp_path, config).log_end_offset == 15_000
    assert open_at(tmp_path, config, CRASHED).log_end_offset == 0


def test_st_8_a_write_cut_at_any_byte_of_the_last_batch(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    for i in range(5):
        append(log, batch(2, 3, producer=(9, 0, 2 * i)))
    whole = read(log, 0)
    log.close()
    last = len(batch(2, 3))
    for kept in range(last):
        for path in tmp_path.iterdir():
            path.unlink()
        _log_file(tmp_path, 0).write_bytes(whole[: len(whole) - last + kept])
        log = open_at(tmp_path, start=CRASHED)
        assert log.log_end_offset == 8
        assert read(log, 0) == whole[:-last]
        # The retry of what was lost is no repetition.
        assert append(log, batch(2, 3, producer=(9, 0, 8))).base_offset == 8
        log.close()
        again = open_at(tmp_path)
        assert read(again, 0) == whole
        again.release()


@pytest.mark.parametrize("tail", [bytes(100), b"\xff" * 100, batch(1)[:-1], batch(1)])
def test_st_8_whatever_follows_the_last_batch_is_cut(tmp_path: Path, tail: bytes) -> None:
    """A batch from offset 0 is one of another time: offsets only rise."""
    whole = _fill(tmp_path, batches=4)
    with _log_file(tmp_path, 0).open("ab") as file:
        file.write(tail)
    log = open_at(tmp_path, SMALL, CRASHED)
    assert read(log, 0) == whole
    assert _log_file(tmp_path, 0).stat().st_size == len(whole)


def test_st_8_segments_behind_a_bad_batch_go(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _fill(tmp_path)
    second = _log_file(tmp_path, 12)
    raw = bytearray(second.read_bytes())
    raw[len(batch(3, 50)) + 100] ^= 1  # in its second batch
    second.write_bytes(raw)
    log = open_at(tmp_path, SMALL, CRASHED)
    assert log.log_end_offset == 15
    assert [segment.base_offset for segment in log.segments] == [0, 12]
    log.release()
    assert sorted(path.name for path in tmp_path.glob("*.snapshot")) == [
        f"{12:020}.snapshot",
        f"{15:020}.snapshot",
    ]
    assert not list(tmp_path.glob(f"{24:020}.*"))
    assert f"at byte {len(batch(3, 50))}: truncating" in caplog.text
    assert "6 later segments" in caplog.text


def test_st_8_below_the_recovery_point_nothing_is_looked_at(tmp_path: Path) -> None:
    _fill(tmp_path)
    below = [_log_file(tmp_path, 0), _log_file(tmp_path, 12)]
    for each in below:
        each.write_bytes(b"!" * each.stat().st_size)
    files = WatchedFiles()
    log = open_at(tmp_path, SMALL, Start(is_clean=False, recovery_point=25), files)
    assert log.log_end_offset == 90
    # The producers at offset 24, where the scan begins, are in a snapshot.
    assert not files.bytes_read.keys() & {each.name for each in below}
    assert log.recovery_point == 25
    assert log.producers.ids() == [9]


def test_st_8_indexes_are_rebuilt(tmp_path: Path) -> None:
    """Also from what an active segment of Kafka leaves: zeros up to the full size."""
    whole = _fill(tmp_path)
    for path in [*tmp_path.glob("*.index"), *tmp_path.glob("*.timeindex")]:
        path.write_bytes(bytes(2400))
    log = open_at(tmp_path, SMALL, CRASHED)
    for offset in range(90):
        log.read(offset, 1, 90)[0].release()
    assert read(log, 50) == whole[50 // 3 * len(batch(3, 50)) :]
    found = offset_for_timestamp(log, T0 + 20, 90)
    assert found is not None and found.offset == 60
    log.close()
    clean = open_at(tmp_path, SMALL)
    assert len(clean.segments[0].offset_index) == 3
    assert offset_for_timestamp(clean, T0 + 20, 90) == found


def test_a_missing_offset_index_is_made_even_after_a_clean_stop(tmp_path: Path) -> None:
    whole = _fill(tmp_path)
    for path in tmp_path.glob("*.index"):
        path.unlink()
    for path in tmp_path.glob("*.timeindex"):
        path.unlink()
    log = open_at(tmp_path, SMALL)
    assert read(log, 0) == whole
    assert len(log.segments[0].offset_index) == 3
    assert sorted(path.stat().st_size for path in tmp_path.glob("*.index"))[-1] == 24


def test_a_clean_marker_that_lies_is_not_believed(tmp_path: Path) -> None:
    _fill(tmp_path, batches=3)
    with _log_file(tmp_path, 0).open("ab") as file:
        file.write(b"torn")
    assert open_at(tmp_path, SMALL).log_end_offset == 9


def test_an_index_without_its_log_goes(tmp_path: Path) -> None:
    _fill(tmp_path, batches=1)
    (tmp_path / f"{77:020}.index").write_bytes(bytes(8))
    open_at(tmp_path, SMALL)
    assert not (tmp_path / f"{77:020}.index").exists()


def test_an_empty_directory_begins_at_0(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    assert (log.log_start_offset, log.log_end_offset) == (0, 0)
    log.close()
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert sizes == {f"{0:020}{suffix}": 0 for suffix in (".log", ".index", ".timeindex")}


def test_the_log_start_may_lie_inside_of_a_segment_or_behind_the_log(tmp_path: Path) -> None:
    _fill(tmp_path)
    log = open_at(tmp_path, SMALL, Start(is_clean=True, log_start_offset=40))
    assert (log.log_start_offset, log.log_end_offset) == (40, 90)
    log.close()
    log = open_at(tmp_path, SMALL, Start(is_clean=False, log_start_offset=500))
    assert (log.log_start_offset, log.log_end_offset) == (500, 500)
    assert append(log, batch()).base_offset == 500


# --- epochs and producers ------------------------------------------------------------------------


def test_epochs_are_found_in_the_batches(tmp_path: Path) -> None:
    log = open_at(tmp_path, SMALL)
    for i in range(20):
        append(log, batch(1, 100), epoch=i // 8)
    log.release()
    assert not (tmp_path / "leader-epoch-checkpoint").exists(), "nothing was flushed"
    assert list(open_at(tmp_path, SMALL, CRASHED).epochs.entries) == [(0, 0), (1, 8), (2, 16)]


def _epoch_file(directory: Path, *entries: tuple[int, int]) -> None:
    lines = [f"{epoch} {start}" for epoch, start in entries]
    text = "\n".join(["0", str(len(lines)), *lines, ""])
    (directory / "leader-epoch-checkpoint").write_text(text)


def test_epochs_that_were_cut_off_before_a_crash_are_not_believed(tmp_path: Path) -> None:
    """The file waits for the next flush: it may have a history that a new leader has undone, and a
    later epoch of that must not hide the earlier ones which were copied since (KIP-101)."""
    log = open_at(tmp_path, SMALL)
    for i in range(20):
        append(log, batch(1, 100), epoch=(0, 2, 3, 6)[i // 5])
    log.release()
    _epoch_file(tmp_path, (0, 0), (5, 7), (7, 12))
    found = open_at(tmp_path, SMALL, CRASHED)
    assert list(found.epochs.entries) == [(0, 0), (2, 5), (3, 10), (6, 15)]


def test_where_epochs_began_whose_first_batches_were_compacted_only_the_file_knows(
    tmp_path: Path,
) -> None:
    log = open_at(tmp_path, SMALL)
    for offset, epoch in ((2, 0), (9, 4)):
        raw = batch(1, 100)
        assign_in_place(raw, 0, offset, epoch)
        log.append_as_follower(memoryview(raw), 0)
    log.write_staged()
    log.release()
    _epoch_file(tmp_path, (0, 0), (3, 4), (4, 6))
    found = open_at(tmp_path, SMALL, CRASHED)
    assert list(found.epochs.entries) == [(0, 0), (3, 4), (4, 6)]


@pytest.mark.parametrize("start", [CRASHED, CLEAN], ids=["crash", "clean"])
def test_the_epoch_of_deleted_records_outlives_starts(tmp_path: Path, start: Start) -> None:
    """An empty log has the epoch of its last record still, or it would be taken for one that has
    nothing, and a replica that missed those records could lead."""
    log = open_at(tmp_path, SMALL)
    for i in range(20):
        append(log, batch(1, 100), epoch=i // 8)
    log.roll()
    log.raise_log_start(20)
    log.enforce_retention(0, 20, 0)
    log.flush()
    log.release()
    for _ in range(2):
        found = open_at(tmp_path, SMALL, start)
        assert (found.log_start_offset, found.log_end_offset) == (20, 20)
        assert list(found.epochs.entries) == [(2, 20)]
        found.release()


def test_epochs_of_what_was_cut_are_forgotten(tmp_path: Path) -> None:
    log = open_at(tmp_path, SMALL)
    append(log, batch(1), epoch=0)
    append(log, batch(1), epoch=4)
    log.assign_leader_epoch(7)
    size = log.size_bytes
    log.release()
    with _log_file(tmp_path, 0).open("r+b") as file:
        file.truncate(size - 1)
    assert list(open_at(tmp_path, SMALL, CRASHED).epochs.entries) == [(0, 0)]


@pytest.mark.parametrize(
    ("start", "snapshots"),
    [
        (CLEAN, "kept"),
        (CLEAN, "damaged"),
        (CRASHED, "kept"),
        (CRASHED, "damaged"),
        (CRASHED, "removed"),  # after a clean stop that is a Kafka that wrote none
    ],
)
def test_pr_6_sequences_outlive_a_restart(tmp_path: Path, start: Start, snapshots: str) -> None:
    _fill(tmp_path)
    newest = max(tmp_path.glob("*.snapshot"))
    if snapshots == "damaged":
        newest.write_bytes(newest.read_bytes()[:-1] + b"!")
    elif snapshots == "removed":
        for path in tmp_path.glob("*.snapshot"):
            path.unlink()
    log = open_at(tmp_path, SMALL, start)
    again = append(log, batch(3, 50, producer=(9, 0, 87)))
    assert (again.base_offset, again.is_duplicate) == (87, True)
    assert append(log, batch(3, 50, producer=(9, 0, 90))).base_offset == 90


def test_a_transaction_that_a_damaged_bit_begins_is_not_believed(tmp_path: Path) -> None:
    """ST-8: nothing would end it, and readers of committed records would wait indefinitely."""
    log = open_at(tmp_path, SMALL)
    for i in range(30):
        append(log, batch(3, 50, timestamp=T0 + i, producer=(9, 0, 3 * i)))
    log.close()
    for path in tmp_path.glob("*.snapshot"):
        path.unlink()
    with _log_file(tmp_path, 0).open("r+b") as file:
        file.seek(22)  # the attributes' lower byte
        file.write(bytes([0x10]))
    crashed = CRASHED._replace(recovery_point=90)
    with pytest.raises(CorruptData, match=r"0\.log.*byte 0"):
        open_at(tmp_path, SMALL, crashed)


def test_snapshots_of_a_lost_future_are_removed(tmp_path: Path) -> None:
    """One at an offset that will be written again would be wrong."""
    _fill(tmp_path)
    with _log_file(tmp_path, 84).open("r+b") as file:
        file.truncate(0)
    log = open_at(tmp_path, SMALL, CRASHED)
    assert log.log_end_offset == 84
    assert max(path.name for path in tmp_path.glob("*.snapshot")) == f"{84:020}.snapshot"
    assert append(log, batch(3, 50, producer=(9, 0, 84))).is_duplicate is False


def test_producers_whose_records_are_old_are_forgotten(tmp_path: Path) -> None:
    _fill(tmp_path)
    day_ms = 24 * 60 * 60 * 1000
    young = open_at(tmp_path, SMALL, Start(is_clean=True, now_ms=T0 + day_ms))
    assert len(young.producers) == 1
    old = open_at(tmp_path, SMALL, Start(is_clean=True, now_ms=T0 + 29 + day_ms))
    assert len(old.producers) == 0


def test_markers_are_replayed(tmp_path: Path) -> None:
    """Transactions are not served yet, but a log that has them opens with the right state."""
    log = open_at(tmp_path, SMALL)
    append(log, batch(2, producer=(9, 0, 0)))
    log.close()
    for path in tmp_path.glob("*.snapshot"):
        path.unlink()
    marker = bytearray(build_marker(Marker(2, T0 + 5, ABORT, 4), producer_id=9, producer_epoch=1))
    assign_in_place(marker, 0, 2, 0)
    with _log_file(tmp_path, 0).open("ab") as file:
        file.write(marker)
    log = open_at(tmp_path, SMALL, CRASHED)
    assert log.log_end_offset == 3
    producer = log.producers.get(9)
    assert producer is not None
    assert (producer.epoch, producer.coordinator_epoch, producer.last_sequence) == (1, 4, -1)
    assert [record.offset for record in records(log)] == [0, 1]


def test_recovery_is_not_confused_by_batches_larger_than_its_window(tmp_path: Path) -> None:
    log = open_at(tmp_path)
    for size in (10, 300_000, 10, 700_000, 262_144 - 61 - 20, 10):
        append(log, batch(1, size))
    whole = read(log, 0)
    log.release()
    assert read(open_at(tmp_path, start=CRASHED), 0) == whole


_STRANGERS = (
    "5.log",
    "5.index",
    "5.snapshot",
    "notes.log",
    "notes.index",
    "9" * 20 + ".log",
    "٣.log",
)


@pytest.mark.parametrize("start", [CLEAN, CRASHED])
def test_a_file_of_another_name_is_no_segment(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, start: Start
) -> None:
    """A segment's name has twenty digits: what somebody has put beside them stays as it is. (Kafka
    takes the 5 for a base offset, and makes an empty segment that ends the log there.)"""
    raw = _fill(tmp_path, batches=30)
    for name in _STRANGERS:
        (tmp_path / name).write_bytes(b"mine")
    for _ in range(2):
        log = open_at(tmp_path, SMALL, start)
        assert log.log_end_offset == 90 and read(log, 0) == raw
        log.close()
    assert all((tmp_path / name).read_bytes() == b"mine" for name in _STRANGERS)
    assert not _log_file(tmp_path, 5).exists()
    assert f"{tmp_path / '5.log'} is not a segment" in caplog.text
