"""SP-3: a vacuum of files that are older than a week takes none that anybody may still read."""

from __future__ import annotations

import time
from pathlib import Path

import deltalake
import pytest

from pyspark_barnabas.delta.compaction import compact
from tests.kit.pipeline.delta_tables import (
    LONG_AGO_S,
    commit,
    data_files,
    files,
    options_of,
    outlive_retention,
    read,
    rows,
)


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
        replaced = data_files(path)
        assert compact(options).removed == len(replaced) == 9
    orphans = data_files(path)
    files(options, rows(90, 93))  # of a task that failed
    orphans = data_files(path) - orphans
    outlive_retention(path)
    commit(options, 3, files(options, rows(9, 12)))
    outlive_retention(path)  # what is live may be of any age
    pinned = deltalake.DeltaTable(str(path))
    read_still = data_files(path) - replaced - orphans
    assert compact(options).removed == len(read_still) == 6
    written = files(options, rows(12, 15))
    before = data_files(path)
    pinned_rows = pinned.to_pyarrow_dataset().scanner(columns=["number"]).to_reader()
    deltalake.DeltaTable(str(path)).vacuum(168, dry_run=False, full=True)
    assert before - data_files(path) == replaced | orphans
    assert sorted(pinned_rows.read_all()["number"].to_pylist()) == list(range(12))
    assert sorted(pinned.to_pyarrow_table()["number"].to_pylist()) == list(range(12))
    assert commit(options, 4, written)
    assert read(path) == rows(0, 15)
