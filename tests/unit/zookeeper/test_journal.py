"""ZS-2: the files of the ZooKeeper server, cut and damaged at every byte."""

from __future__ import annotations

import logging
from itertools import pairwise
from pathlib import Path

import pytest

from barnabas.cluster.journal_frames import frame, seal
from barnabas.errors import ConfigError, CorruptData
from barnabas.zookeeper.journal import JOURNAL_NAME, SNAPSHOT_NAME, STOPPED_NAME, Journal
from tests.kit.keeper_files import EMPTY, STATES, load, steps

NAMES = (JOURNAL_NAME, SNAPSHOT_NAME, STOPPED_NAME)


def fill(directory: Path, *, snapshot_after: int = 0, stops: bool = False) -> list[int]:
    """Writes the batches, and returns where each ends in the journal. The server ends by `kill -9`
    unless it `stops`."""
    ends = [0]
    journal = Journal(directory)
    for number, (batch, state) in enumerate(steps(), 1):
        journal.append(batch)
        if number == snapshot_after:
            journal.replace(state)
        ends.append(journal.size_bytes)
    if stops:
        journal.stop()
    else:
        journal.close()
    return ends


def contents(directory: Path) -> dict[str, bytes]:
    paths = [directory / name for name in NAMES]
    return {path.name: path.read_bytes() for path in paths if path.exists()}


def flipped(content: bytes, at: int, bit: int) -> bytes:
    damaged = bytearray(content)
    damaged[at] ^= 1 << bit
    return bytes(damaged)


def check_refused(directory: Path, match: str) -> None:
    """The files are refused, and are as they were before."""
    before = contents(directory)
    with pytest.raises(CorruptData, match=match):
        load(directory)
    assert contents(directory) == before


def test_zs_2_a_journal_cut_at_any_byte_gives_the_whole_batches_before(tmp_path: Path) -> None:
    """This is what a crash leaves: the first of the bytes that were written last."""
    ends = fill(tmp_path)
    path = tmp_path / JOURNAL_NAME
    content = path.read_bytes()
    assert load(tmp_path) == STATES[-1]
    for length in range(len(content)):
        path.write_bytes(content[:length])
        whole = sum(end <= length for end in ends) - 1
        assert load(tmp_path) == STATES[whole], length
        # The rest of the torn batch is gone. An empty journal contains a seal.
        assert path.stat().st_size == (ends[whole] or len(seal(0))), length


def test_zs_2_a_journal_beside_a_snapshot_is_cut_at_any_byte(tmp_path: Path) -> None:
    ends = fill(tmp_path, snapshot_after=2)
    path = tmp_path / JOURNAL_NAME
    content = path.read_bytes()
    assert load(tmp_path) == STATES[-1]
    for length in range(1, len(content)):
        path.write_bytes(content[:length])
        whole = 2 + sum(end <= length for end in ends[3:])
        assert load(tmp_path) == STATES[whole], length
    path.write_bytes(b"")
    check_refused(tmp_path, "is missing or empty")
    path.unlink()
    with pytest.raises(CorruptData, match="is missing or empty"):
        load(tmp_path)


@pytest.mark.parametrize("name", [JOURNAL_NAME, SNAPSHOT_NAME])
def test_zs_2_a_file_cut_after_a_clean_stop_is_refused(tmp_path: Path, name: str) -> None:
    """Otherwise, a cut within a batch that was acknowledged would look like a crash."""
    ends = fill(tmp_path, snapshot_after=2, stops=True)
    path = tmp_path / name
    content = path.read_bytes()
    for length in range(ends[-1] if name == JOURNAL_NAME else len(content)):
        path.write_bytes(content[:length])
        check_refused(tmp_path, "missing|damaged")
    path.unlink()
    with pytest.raises(CorruptData, match="missing"):
        load(tmp_path)


def test_zs_2_the_loss_of_all_but_the_record_of_the_stop_is_refused(tmp_path: Path) -> None:
    fill(tmp_path, stops=True)
    (tmp_path / JOURNAL_NAME).unlink()
    with pytest.raises(CorruptData, match="transactions up to 7 are missing"):
        load(tmp_path)
    (tmp_path / JOURNAL_NAME).unlink()
    (tmp_path / STOPPED_NAME).unlink()
    assert load(tmp_path) == EMPTY


def test_the_record_of_an_earlier_stop_does_not_keep_the_server_from_its_start(
    tmp_path: Path,
) -> None:
    journal = Journal(tmp_path)
    batches = [batch for batch, _ in steps()]
    journal.append(batches[0])
    journal.stop()
    for number, batch in enumerate(batches[1:], 1):
        assert load(tmp_path) == STATES[number]
        journal = Journal(tmp_path)
        journal.append(batch)
        journal.close()  # by kill -9
    assert load(tmp_path) == STATES[-1]


@pytest.mark.parametrize("bit", [0, 7])
@pytest.mark.parametrize("stops", [False, True])
def test_zs_2_a_flipped_bit_of_the_journal_stops_the_start(
    tmp_path: Path, bit: int, stops: bool
) -> None:
    ends = fill(tmp_path, stops=stops)
    path = tmp_path / JOURNAL_NAME
    content = path.read_bytes()
    for at in range(len(content)):
        path.write_bytes(flipped(content, at, bit))
        if at < ends[-1]:
            begin = max(end for end in ends if end <= at)
            check_refused(tmp_path, f"{JOURNAL_NAME} is damaged at byte {begin};")
        else:
            assert load(tmp_path) == STATES[-1]  # the seal at the end


@pytest.mark.parametrize("bit", [0, 7])
def test_zs_2_a_flipped_bit_of_the_last_batch_without_its_seal_is_torn(
    tmp_path: Path, bit: int
) -> None:
    """A power failure may destroy any part of the batch that is being written."""
    ends = fill(tmp_path)
    path = tmp_path / JOURNAL_NAME
    content = path.read_bytes()[: ends[-1]]
    for at in range(len(content)):
        path.write_bytes(flipped(content, at, bit))
        if at < ends[-2]:
            check_refused(tmp_path, "is damaged at byte")
        else:
            assert load(tmp_path) == STATES[-2], at


@pytest.mark.parametrize("name", [SNAPSHOT_NAME, STOPPED_NAME])
@pytest.mark.parametrize("bit", [0, 7])
def test_zs_2_a_flipped_bit_of_the_other_files_stops_the_start(
    tmp_path: Path, name: str, bit: int
) -> None:
    fill(tmp_path, snapshot_after=3, stops=True)
    path = tmp_path / name
    content = path.read_bytes()
    for at in range(len(content)):
        path.write_bytes(flipped(content, at, bit))
        check_refused(tmp_path, f"{name} is damaged")


def test_zs_2_a_batch_that_was_taken_out_stops_the_start(tmp_path: Path) -> None:
    ends = fill(tmp_path)
    path = tmp_path / JOURNAL_NAME
    content = path.read_bytes()
    for begin, end in pairwise(ends[1:-1]):
        path.write_bytes(content[:begin] + content[end:])
        with pytest.raises(CorruptData, match="is missing before"):
            load(tmp_path)
    path.write_bytes(content[: ends[-2]] + content[ends[-1] :])
    check_refused(tmp_path, "the transactions up to 7 are missing")


def test_zs_2_a_batch_with_other_transactions_than_it_says_stops_the_start(tmp_path: Path) -> None:
    (batch, _), (following, _), *_ = steps()
    (tmp_path / JOURNAL_NAME).write_bytes(frame(following[:8] + batch[8:]))
    check_refused(tmp_path, "the transactions up to 2 are missing")


def test_what_follows_a_torn_batch_is_appended_in_its_place(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ends = fill(tmp_path)
    path = tmp_path / JOURNAL_NAME
    content = path.read_bytes()
    batches = [batch for batch, _ in steps()]
    for whole in range(len(batches)):
        path.write_bytes(content[: ends[whole]] + bytes(range(1, 200)))
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            journal = Journal(tmp_path)
        assert ("truncated 199 bytes" in caplog.text) == (whole > 0)
        assert path.stat().st_size == (ends[whole] or len(seal(0)))
        journal.append(batches[whole])
        journal.close()
        assert load(tmp_path) == STATES[whole + 1]


def test_a_snapshot_replaces_the_batches(tmp_path: Path) -> None:
    fill(tmp_path)
    journal = Journal(tmp_path)
    journal.replace(STATES[-1])
    journal.close()
    assert (tmp_path / JOURNAL_NAME).read_bytes() == seal(7)
    journal = Journal(tmp_path)
    assert journal.batches == []
    assert journal.sealed_zxid == 7
    journal.close()
    assert load(tmp_path) == STATES[-1]


@pytest.mark.parametrize("after", range(1, len(STATES)))
def test_batches_that_a_newer_snapshot_contains_are_dropped(tmp_path: Path, after: int) -> None:
    """A crash has prevented their removal."""
    fill(tmp_path)
    (tmp_path / SNAPSHOT_NAME).write_bytes(frame(STATES[after]))
    journal = Journal(tmp_path)
    assert len(journal.batches) == len(STATES) - 1 - after
    journal.close()
    assert load(tmp_path) == STATES[-1]
    if after == len(STATES) - 1:
        assert (tmp_path / JOURNAL_NAME).read_bytes() == seal(7)


def test_a_crash_that_interrupts_the_removal_of_the_batches_is_no_damage(tmp_path: Path) -> None:
    """The seal is written over the first batch, which the snapshot contains."""
    fill(tmp_path)
    (tmp_path / SNAPSHOT_NAME).write_bytes(frame(STATES[-1]))
    path = tmp_path / JOURNAL_NAME
    content, whole = path.read_bytes(), seal(7)
    for length in range(len(whole) + 1):
        path.write_bytes(whole[:length] + content[length:])
        assert load(tmp_path) == STATES[-1], length
        assert path.read_bytes() == whole


def test_files_in_use_are_refused(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    with pytest.raises(ConfigError, match="in use"):
        Journal(tmp_path)
    journal.close()


def test_a_start_removes_what_an_interrupted_replacement_left(tmp_path: Path) -> None:
    """It may be large, and the disk may be full because of it."""
    fill(tmp_path)
    left = [tmp_path / f"{name}.tmp" for name in (SNAPSHOT_NAME, STOPPED_NAME)]
    for path in left:
        path.write_bytes(b"incomplete")
    assert load(tmp_path) == STATES[-1]
    assert not any(path.exists() for path in left)


@pytest.mark.parametrize("name", [SNAPSHOT_NAME, STOPPED_NAME])
def test_zs_2_a_file_of_one_frame_with_more_bytes_stops_the_start(
    tmp_path: Path, name: str
) -> None:
    """The bytes are the first ones of another frame, as a torn batch is in the journal."""
    fill(tmp_path, snapshot_after=2, stops=True)
    with (tmp_path / name).open("ab") as file:
        file.write(frame(b"12345678 and more")[:10])
    check_refused(tmp_path, f"{name} is damaged")
