"""The sparse indexes: entries on disk, and the lookup of ST-3."""

from __future__ import annotations

from pathlib import Path
from struct import Struct, pack
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.errors import CorruptData
from barnabas.storage.files import OsFiles
from barnabas.storage.index import OFFSET_ENTRY, TIME_ENTRY, SparseIndex
from tests.kit.storage.disk import WatchedFiles


def _index(path: Path, entries: list[tuple[int, int]] | None = None) -> SparseIndex:
    index = SparseIndex(OsFiles(), path / "x.index", OFFSET_ENTRY, 0)
    for entry in entries or []:
        index.append(*entry)
    return index


def test_st_1_entries_have_kafkas_bytes(tmp_path: Path) -> None:
    offsets = _index(tmp_path, [(41, 4213)])
    offsets.write_out()
    assert offsets.path.read_bytes().hex() == "0000002900001075"
    times = SparseIndex(OsFiles(), tmp_path / "x.timeindex", TIME_ENTRY, 0)
    times.append(1700000000123, 41)
    times.write_out()
    assert times.path.read_bytes().hex() == "0000018bcfe5687b00000029"


def test_st_3_offset_88_is_looked_for_from_position_4190(tmp_path: Path) -> None:
    """The greatest entry at or below the target; entry i lies at byte 8i."""
    entries = [(6, 150), (23, 1421), (54, 4190), (91, 8301), (120, 12400)]
    (tmp_path / "x.index").write_bytes(b"".join(pack(">ii", *entry) for entry in entries))
    index = SparseIndex(OsFiles(), tmp_path / "x.index", OFFSET_ENTRY, len(entries))
    assert index.floor(88) == (54, 4190)
    assert index[2] == (54, 4190)
    assert index.path.read_bytes()[8 * 2 : 8 * 3] == pack(">ii", 54, 4190)
    assert index.floor(5) is None
    assert [index.floor(each) for each in (6, 90, 91, 10**6)] == [
        (6, 150),
        (54, 4190),
        (91, 8301),
        (120, 12400),
    ]
    assert index.floor_by_second(4189) == (23, 1421)
    assert index.floor_by_second(4190) == (54, 4190)


@pytest.mark.parametrize("count", [0, 1, 255, 256, 257, 1000])
def test_lookups_are_the_same_in_memory_and_on_disk(tmp_path: Path, count: int) -> None:
    entries = [(3 * i + 2, 10 * i) for i in range(count)]
    index = _index(tmp_path, entries)
    assert len(index) == count
    assert index.last == (entries[-1] if entries else None)
    index.write_out()
    again = SparseIndex(OsFiles(), index.path, OFFSET_ENTRY, count)
    for target in range(0, 3 * count + 5, 7):
        below = [entry for entry in entries if entry[0] <= target]
        wanted = below[-1] if below else None
        assert index.floor(target) == again.floor(target) == wanted


def test_an_idle_index_holds_no_descriptor(tmp_path: Path) -> None:
    index = _index(tmp_path, [(1, 1)] * 10)
    assert not index.path.exists()


def test_what_the_file_held_before_is_forgotten_by_clear(tmp_path: Path) -> None:
    (tmp_path / "x.index").write_bytes(bytes(800))
    index = SparseIndex(OsFiles(), tmp_path / "x.index", OFFSET_ENTRY, 100)
    index.clear()
    index.append(1, 2)
    index.write_out()
    assert index.path.read_bytes() == pack(">ii", 1, 2)
    assert index.last == (1, 2)


def test_a_full_disk_does_not_lose_entries(tmp_path: Path) -> None:
    files = WatchedFiles()
    files.room_bytes = 7
    index = SparseIndex(files, tmp_path / "x.index", OFFSET_ENTRY, 0)
    for i in range(600):
        index.append(i, i)
    assert index.floor(300) == (300, 300)
    with pytest.raises(OSError, match="No space left"):
        index.write_out()
    files.room_bytes = None
    index.write_out()
    assert len(index.path.read_bytes()) == 600 * 8


def test_a_file_that_lost_its_end_is_corrupt_data(tmp_path: Path) -> None:
    (tmp_path / "x.index").write_bytes(bytes(12))
    index = SparseIndex(OsFiles(), tmp_path / "x.index", OFFSET_ENTRY, 2)
    with pytest.raises(CorruptData, match="ends before its entry 1"):
        index.floor(5)


@given(
    entry=st.sampled_from([OFFSET_ENTRY, TIME_ENTRY]),
    steps=st.lists(
        st.tuples(
            st.sampled_from(["floor", "floor_by_second", "append", "truncate", "write_out"]),
            st.floats(0, 1),
        ),
        max_size=40,
    ),
)
def test_st_3_lookups_find_what_is_there_whatever_came_before(
    entry: Struct, steps: list[tuple[str, float]]
) -> None:
    """A kept page must neither have entries that were cut nor hide added ones."""
    with TemporaryDirectory() as directory:
        index = SparseIndex(OsFiles(), Path(directory) / "x.index", entry, 0)
        entries: list[tuple[int, int]] = []
        for what, share in [("append", 1.0), ("write_out", 0.0), *steps]:
            number = int(share * (len(entries) + 2))
            if what == "append":
                for i in range(len(entries), len(entries) + int(share * 2000)):
                    entries.append((3 * i + 2, 5 * i + 1))
                    index.append(*entries[-1])
            elif what == "truncate":
                del entries[number:]
                index.truncate(len(entries))
            elif what == "write_out":
                index.write_out()
            elif what == "floor":
                assert index.floor(3 * number) == _below(entries, 3 * number, 0)
            else:
                assert index.floor_by_second(5 * number) == _below(entries, 5 * number, 1)
        index.release()


def _below(entries: list[tuple[int, int]], target: int, column: int) -> tuple[int, int] | None:
    return next((entry for entry in reversed(entries) if entry[column] <= target), None)


def test_a_reader_that_goes_on_reads_each_page_once(tmp_path: Path) -> None:
    """ST-3: one small read for some two megabytes of log."""
    count = 10_000
    index = _index(tmp_path, [(i, i) for i in range(count)])
    index.write_out()
    files = WatchedFiles()
    again = SparseIndex(files, index.path, OFFSET_ENTRY, count)
    for target in range(0, count, 100):
        assert again.floor(target) == (target, target)
        assert again.floor_by_second(target + 50) == (target + 50, target + 50)
    assert files.bytes_read["x.index"] < 1.02 * count * OFFSET_ENTRY.size
