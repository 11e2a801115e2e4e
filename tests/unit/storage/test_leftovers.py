"""Half-done compactions and deletions are finished or undone when a log is opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.records.batch import assign_in_place
from barnabas.storage.files import OsFiles
from barnabas.storage.leftovers import settle
from tests.kit.storage.disk import batch


def _segment(directory: Path, base_offset: int, first: int, count: int, suffix: str = "") -> None:
    """The three files of a segment that holds one batch."""
    records = batch(count)
    assign_in_place(records, 0, first, 0)
    name = f"{base_offset:020}"
    (directory / f"{name}.log{suffix}").write_bytes(records)
    (directory / f"{name}.index{suffix}").write_bytes(suffix.encode())
    (directory / f"{name}.timeindex{suffix}").write_bytes(suffix.encode())


def _names(directory: Path) -> list[str]:
    entries = settle(OsFiles(), directory)
    names = sorted(path.name for path in directory.iterdir())
    assert [entry.name for entry in entries] == names
    return [name.lstrip("0") for name in names if name.endswith(".log")]


def test_what_was_to_be_removed_is_removed(tmp_path: Path) -> None:
    _segment(tmp_path, 0, 0, 5)
    _segment(tmp_path, 90, 90, 5, suffix=".deleted")
    _segment(tmp_path, 80, 80, 5, suffix=".cleaned")
    (tmp_path / "leader-epoch-checkpoint.tmp").write_text("x")
    assert _names(tmp_path) == [".log"]
    assert len(list(tmp_path.iterdir())) == 3


def test_a_finished_compaction_replaces_what_it_covers(tmp_path: Path) -> None:
    for base in (0, 10, 20, 30):
        _segment(tmp_path, base, base, 10)
    _segment(tmp_path, 0, 13, 7, suffix=".swap")  # the records of 0 and 10
    assert _names(tmp_path) == [".log", "20.log", "30.log"]
    assert (tmp_path / f"{0:020}.index").read_text() == ".swap"
    assert (tmp_path / f"{0:020}.log").stat().st_size == len(batch(7))
    assert not (tmp_path / f"{10:020}.index").exists()


@pytest.mark.parametrize("renamed", [".index", ".timeindex"])
def test_a_finished_compaction_is_finished_twice(tmp_path: Path, renamed: str) -> None:
    """The process that finished it died as well, after the first rename."""
    for base in (10, 20):
        _segment(tmp_path, base, base, 10)
    _segment(tmp_path, 0, 13, 7, suffix=".swap")
    (tmp_path / f"{0:020}{renamed}.swap").rename(tmp_path / f"{0:020}{renamed}")
    assert _names(tmp_path) == [".log", "20.log"]
    assert (tmp_path / f"{0:020}{renamed}").read_text() == ".swap"


def test_a_swap_beside_a_cleaned_one_is_no_finished_set(tmp_path: Path) -> None:
    for base in (0, 10, 20):
        _segment(tmp_path, base, base, 10)
    _segment(tmp_path, 0, 0, 5, suffix=".cleaned")
    _segment(tmp_path, 10, 10, 5, suffix=".swap")
    assert _names(tmp_path) == [".log", "10.log", "20.log"]
    assert (tmp_path / f"{10:020}.log").stat().st_size == len(batch(10))


def test_a_segment_of_which_nothing_is_left_is_replaced_too(tmp_path: Path) -> None:
    """Its aborted transactions with it: their markers are gone, and nothing could end the skipping
    of their producers."""
    for base in (0, 10):
        _segment(tmp_path, base, base, 10)
    (tmp_path / f"{0:020}.txnindex").write_bytes(bytes(34))
    for suffix in (".log", ".index", ".timeindex"):
        (tmp_path / f"{0:020}{suffix}.swap").write_bytes(b"")
    assert _names(tmp_path) == [".log", "10.log"]
    assert (tmp_path / f"{0:020}.log").stat().st_size == 0
    assert not (tmp_path / f"{0:020}.txnindex").exists()


def test_an_index_of_aborted_transactions_does_not_pass_for_the_new_one(tmp_path: Path) -> None:
    """The process died when it had renamed the old log to `.deleted`, and nothing else."""
    _segment(tmp_path, 10, 10, 10)
    (tmp_path / f"{0:020}.log.deleted").write_bytes(b"")
    (tmp_path / f"{0:020}.txnindex").write_bytes(bytes(34))
    _segment(tmp_path, 0, 5, 5, suffix=".swap")
    assert _names(tmp_path) == [".log", "10.log"]
    assert not (tmp_path / f"{0:020}.txnindex").exists()


def test_the_new_index_of_aborted_transactions_is_kept(tmp_path: Path) -> None:
    """Whether the process that finished the swap was done with the log's name or not."""
    for is_renamed in (False, True):
        directory = tmp_path / str(is_renamed)
        directory.mkdir()
        _segment(directory, 0, 5, 5, suffix=".swap")
        (directory / f"{0:020}.txnindex.swap").write_bytes(b"new")
        if is_renamed:
            (directory / f"{0:020}.log.swap").rename(directory / f"{0:020}.log")
            (directory / f"{0:020}.txnindex.swap").rename(directory / f"{0:020}.txnindex")
        assert _names(directory) == [".log"]
        assert (directory / f"{0:020}.txnindex").read_bytes() == b"new"


def test_an_orderly_directory_is_not_touched(tmp_path: Path) -> None:
    _segment(tmp_path, 0, 0, 5)
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    settle(OsFiles(), tmp_path)
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before
