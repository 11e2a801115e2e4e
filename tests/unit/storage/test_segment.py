"""One segment: where batches are, and what it does when the bytes are not what they should be."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.errors import CorruptData
from barnabas.storage.segment import Segment, Sizes
from tests.kit.storage.disk import QuickFiles, WatchedFiles, batch


def _filled(directory: Path, files: QuickFiles, count: int = 20) -> Segment:
    """`count` batches of one record from offset 1000 on."""
    segment = Segment.create(files, directory, 1000)
    for i in range(count):
        records = batch(1, 10, timestamp=i)
        records[0:8] = (1000 + i).to_bytes(8, "big")
        segment.append(records, 1000 + i, 1000 + i, i, index_interval_bytes=300)
        segment.write_staged()
    return segment


def test_the_places_of_the_last_batches_are_known_without_reading(tmp_path: Path) -> None:
    files = WatchedFiles()
    segment = _filled(tmp_path, files)
    size = len(batch(1, 10))
    for i in range(4, 20):
        assert segment.locate(1000 + i) == i * size
    assert files.bytes_read == {}
    assert segment.locate(1003) == 3 * size
    assert files.bytes_read != {}


def test_every_batch_is_found_after_it_was_opened_again(tmp_path: Path) -> None:
    segment = _filled(tmp_path, QuickFiles())
    segment.write_out()
    segment.release()
    sizes = Sizes(*(path.stat().st_size for path in segment.paths()))
    again = Segment(QuickFiles(), tmp_path, 1000, sizes)
    size = len(batch(1, 10))
    assert [again.locate(1000 + i) for i in range(20)] == [i * size for i in range(20)]
    assert again.locate(1020) is None
    assert (again.max_timestamp, again.offset_of_max_timestamp) == (19, 1019)
    assert again.first_timestamp == 0


def test_index_entries_keep_their_distance(tmp_path: Path) -> None:
    """An entry is due when more than the interval has come since the last one (ST-3)."""
    segment = _filled(tmp_path, QuickFiles())
    size = len(batch(1, 10))
    per_entry = 300 // size + 1
    entries = [segment.offset_index[i] for i in range(len(segment.offset_index))]
    assert entries == [(i, i * size) for i in range(per_entry, 20, per_entry)]
    assert [segment.time_index[i] for i in range(len(segment.time_index))] == [
        (i, i) for i in range(per_entry, 20, per_entry)
    ]


def test_offsets_must_fit_into_31_bits(tmp_path: Path) -> None:
    segment = Segment.create(QuickFiles(), tmp_path, 1000)
    assert segment.fits(1000) and segment.fits(1000 + 2**31 - 1)
    assert not segment.fits(999) and not segment.fits(1000 + 2**31)


def test_damage_is_reported_with_its_position(tmp_path: Path) -> None:
    segment = _filled(tmp_path, QuickFiles())
    size = len(batch(1, 10))
    segment.open_file().write(5 * size + 8, b"\xff\xff\xff\xff")
    segment.release()
    with pytest.raises(CorruptData, match=rf"{1000:020}\.log, byte {5 * size}: "):
        segment.locate(1006)
