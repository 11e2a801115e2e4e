"""The number of a batch's records comes from Spark's log of offsets, or is unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas_pipeline.batch_size import most_records

# Entries as Spark 4.3 wrote them, with less metadata.
FIRST = """v1
{"batchWatermarkMs":0,"batchTimestampMs":1795813485133,"conf":{}}
{"@ids": {"lines": "ytwuJ7r0Slu8pWsmSyo3iw"}, "@start": {"lines": {"0": 5, "1": 0}}, \
"lines": {"0": 24, "1": 16}}"""
SECOND = """v1
{"batchWatermarkMs":0,"batchTimestampMs":1795813485140,"conf":{}}
{"@ids": {"lines": "ytwuJ7r0Slu8pWsmSyo3iw"}, "@start": {"lines": {"2": 3}}, \
"lines": {"0": 30, "1": 16, "2": 10}}"""


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text(FIRST)
    (tmp_path / "offsets" / "1").write_text(SECOND)
    return tmp_path


def test_a_first_batch_begins_where_its_entry_says(checkpoint: Path) -> None:
    assert most_records(checkpoint, 0) == 19 + 16


def test_a_later_batch_begins_at_the_end_of_the_one_before(checkpoint: Path) -> None:
    assert most_records(checkpoint, 1) == 6 + 0 + 7


@pytest.mark.parametrize("entry", ["", "v1\n{}\n-", "v1\n{}\n[1]", "v9\n\x00", "v1\n{}\n{}"])
def test_an_unknown_entry_tells_nothing(checkpoint: Path, entry: str) -> None:
    (checkpoint / "offsets" / "1").write_text(entry)
    assert most_records(checkpoint, 1) in (None, 0)


def test_a_missing_entry_tells_nothing(checkpoint: Path) -> None:
    assert most_records(checkpoint, 2) is None
    (checkpoint / "offsets" / "0").unlink()
    assert most_records(checkpoint, 1) is None
