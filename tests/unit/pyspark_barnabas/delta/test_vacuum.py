"""SP-3: a vacuum of files that are older than a week takes none that anybody may still read."""

from __future__ import annotations

import os
import time
from pathlib import Path

import deltalake
import pytest

from pyspark_barnabas.delta.compaction import compact
from tests.unit.pyspark_barnabas.delta.test_table import commit, files, options_of, read, rows

WEEK_S = 7 * 24 * 3_600
LONG_AGO_S = WEEK_S + 3_600


def age(directory: Path) -> None:
    """Every file that is there now is older than a vacuum keeps."""
    then_s = time.time() - LONG_AGO_S
    for path in directory.rglob("*.parquet"):
        os.utime(path, (then_s, then_s))


def data(directory: Path) -> set[Path]:
    return {each for each in directory.rglob("part-*.parquet") if "_delta_log" not in each.parts}


def test_sp_3_a_vacuum_beside_a_reader_a_writer_and_old_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a compaction of last week has replaced goes, and so does what tasks left then that
    failed; what one of today has replaced is being read, and what a task has just written is about
    to be committed."""
    path = tmp_path / "t"
    options = options_of(path, partitionBy="day")
    now_s = time.time
    with monkeypatch.context() as then:
        then.setattr(time, "time", lambda: now_s() - LONG_AGO_S)
        for batch in range(3):
            commit(options, batch, files(options, rows(3 * batch, 3 * batch + 3)))
        replaced = data(path)
        assert compact(options).removed == len(replaced) == 9
    orphans = data(path)
    files(options, rows(90, 93))  # of a task that failed
    orphans = data(path) - orphans
    age(path)
    commit(options, 3, files(options, rows(9, 12)))
    age(path)  # what is live may be of any age
    pinned = deltalake.DeltaTable(str(path))
    read_still = data(path) - replaced - orphans
    assert compact(options).removed == len(read_still) == 6
    written = files(options, rows(12, 15))
    before = data(path)
    pinned_rows = pinned.to_pyarrow_dataset().scanner(columns=["number"]).to_reader()
    deltalake.DeltaTable(str(path)).vacuum(168, dry_run=False, full=True)
    assert before - data(path) == replaced | orphans
    assert sorted(pinned_rows.read_all()["number"].to_pylist()) == list(range(12))
    assert sorted(pinned.to_pyarrow_table()["number"].to_pylist()) == list(range(12))
    assert commit(options, 4, written)
    assert read(path) == rows(0, 15)
