"""Leader epochs and their offsets (KIP-101, KIP-279)."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.errors import CorruptData
from barnabas.storage.epochs import LeaderEpochs
from barnabas.storage.files import OsFiles


def _epochs(directory: Path, *entries: tuple[int, int]) -> LeaderEpochs:
    epochs = LeaderEpochs(OsFiles(), directory)
    for entry in entries:
        epochs.assign(*entry)
    return epochs


def _save(epochs: LeaderEpochs) -> None:
    unsaved = epochs.take_unsaved()
    if unsaved is not None:
        epochs.save(unsaved)
        epochs.on_saved(unsaved)


def _text(directory: Path) -> str:
    return (directory / "leader-epoch-checkpoint").read_text()


def test_st_1_the_file_has_kafkas_bytes(tmp_path: Path) -> None:
    _save(_epochs(tmp_path, (0, 0), (4, 22), (6, 25)))
    assert _text(tmp_path) == "0\n3\n0 0\n4 22\n6 25\n"
    assert list(LeaderEpochs(OsFiles(), tmp_path).entries) == [(0, 0), (4, 22), (6, 25)]


def test_an_epoch_without_records_gives_way(tmp_path: Path) -> None:
    epochs = _epochs(tmp_path, (0, 0), (1, 10), (2, 10))
    assert list(epochs.entries) == [(0, 0), (2, 10)]


def test_an_assignment_removes_what_contradicts_it(tmp_path: Path) -> None:
    epochs = _epochs(tmp_path, (0, 0), (3, 10), (5, 20))
    epochs.assign(4, 15)
    assert list(epochs.entries) == [(0, 0), (3, 10), (4, 15)]


def test_the_latest_epoch_keeps_its_start(tmp_path: Path) -> None:
    epochs = _epochs(tmp_path, (2, 10), (2, 17))
    assert list(epochs.entries) == [(2, 10)]
    assert epochs.latest == 2


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (-1, (-1, -1)),
        (0, (0, 5)),  # older than all: ends where they begin
        (1, (1, 10)),
        (2, (1, 10)),  # never led: the one before answers
        (3, (3, 20)),
        (6, (6, 99)),  # the current one ends at the log end
        (7, (-1, -1)),
    ],
)
def test_end_offsets_are_kafkas(tmp_path: Path, asked: int, answer: tuple[int, int]) -> None:
    epochs = _epochs(tmp_path, (1, 5), (3, 10), (6, 20))
    assert epochs.end_offset_for(asked, log_end_offset=99) == answer


def test_the_epoch_of_an_offset(tmp_path: Path) -> None:
    epochs = _epochs(tmp_path, (1, 5), (3, 10))
    assert [epochs.epoch_at(offset) for offset in (4, 5, 9, 10, 99)] == [-1, 1, 1, 3, 3]


def test_truncation_follows_the_log(tmp_path: Path) -> None:
    epochs = _epochs(tmp_path, (1, 5), (3, 10), (6, 20))
    epochs.truncate_from_end(20)
    assert list(epochs.entries) == [(1, 5), (3, 10)]
    epochs.truncate_from_start(7)
    assert list(epochs.entries) == [(1, 7), (3, 10)]
    epochs.truncate_from_start(30)
    assert list(epochs.entries) == [(3, 30)]
    _save(epochs)
    assert _text(tmp_path) == "0\n1\n3 30\n"
    epochs.truncate_from_end(0)
    _save(epochs)
    assert _text(tmp_path) == "0\n0\n"


@pytest.mark.parametrize("text", ["1\n0\n", "0\n2\n0 0\n", "0\n1\n0\n", "0\n1\na b\n", "0\n"])
def test_a_malformed_file_is_corrupt_data(tmp_path: Path, text: str) -> None:
    (tmp_path / "leader-epoch-checkpoint").write_text(text)
    with pytest.raises(CorruptData, match="leader-epoch-checkpoint"):
        LeaderEpochs(OsFiles(), tmp_path)


def test_an_empty_file_has_no_epochs(tmp_path: Path) -> None:
    (tmp_path / "leader-epoch-checkpoint").write_text("")
    assert LeaderEpochs(OsFiles(), tmp_path).latest == -1


def test_no_change_waits_for_the_disk(tmp_path: Path) -> None:
    epochs = LeaderEpochs(OsFiles(), tmp_path)
    assert epochs.take_unsaved() is None
    epochs.assign(0, 0)
    epochs.assign(1, 5)
    epochs.truncate_from_end(5)
    epochs.assign(2, 5)
    assert not list(tmp_path.iterdir())
    _save(epochs)
    assert epochs.take_unsaved() is None
    assert LeaderEpochs(OsFiles(), tmp_path).take_unsaved() is None
    assert _text(tmp_path) == "0\n2\n0 0\n2 5\n"


def test_what_changes_during_a_save_is_not_taken_for_saved(tmp_path: Path) -> None:
    epochs = LeaderEpochs(OsFiles(), tmp_path)
    epochs.assign(0, 0)
    taken = epochs.take_unsaved()
    assert taken is not None
    epochs.assign(1, 5)
    epochs.save(taken)
    epochs.on_saved(taken)
    later = epochs.take_unsaved()
    assert later is not None
    assert list(later.entries) == [(0, 0), (1, 5)]


def test_an_earlier_save_does_not_replace_a_later_one(tmp_path: Path) -> None:
    """Two threads may be at it."""
    epochs = _epochs(tmp_path, (0, 0))
    earlier = epochs.take_unsaved()
    epochs.assign(1, 5)
    later = epochs.take_unsaved()
    assert earlier is not None and later is not None
    epochs.save(later)
    epochs.save(earlier)
    assert _text(tmp_path) == "0\n2\n0 0\n1 5\n"


def test_a_lost_file_is_written_again(tmp_path: Path) -> None:
    epochs = LeaderEpochs(OsFiles(), tmp_path, is_lost=True)
    assert epochs.take_unsaved() is not None
