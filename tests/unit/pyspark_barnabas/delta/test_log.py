"""The log of a table that many micro-batches are written to stays short, and readable."""

from __future__ import annotations

from pathlib import Path

import deltalake

from barnabas.cli.main import main
from tests.kit.pipeline.delta_tables import age, commit, files, options_of, read, rows


def log_of(table: Path) -> list[str]:
    return sorted(path.name for path in (table / "_delta_log").glob("*.json"))


def test_a_log_is_cut_behind_its_checkpoints(tmp_path: Path) -> None:
    path = tmp_path / "t"
    options = options_of(path, logRetentionHours="1")
    for batch in range(34):
        assert commit(options, batch, files(options, rows(batch, batch + 1)))
        if batch in (15, 25):
            age(path, 2)
    assert len(log_of(path)) < 25 < 34
    assert read(path) == rows(0, 34)
    assert not commit(options, 33, files(options, rows(33, 34))), "its progress is there"
    assert deltalake.DeltaTable(str(path), version=26).to_pyarrow_table().num_rows == 27


def test_a_checkpoint_follows_ten_commits(tmp_path: Path) -> None:
    path = tmp_path / "t"
    options = options_of(path)
    for batch in range(12):
        commit(options, batch, files(options, rows(batch, batch + 1)))
    assert [each.name for each in path.glob("_delta_log/*.parquet")] == [
        f"{9:020}.checkpoint.parquet"
    ]
    assert len(log_of(path)) == 12
    assert read(path) == rows(0, 12)


def test_thirty_days_are_kept_by_default(tmp_path: Path) -> None:
    path = tmp_path / "t"
    options = options_of(path)
    for batch in range(5):
        commit(options, batch, files(options, rows(batch, batch + 1)))
    age(path, 24 * 29)
    assert main(["table", "checkpoint", str(path)]) == 0
    assert len(log_of(path)) == 5


def test_a_checkpoint_by_command_cuts_the_log(tmp_path: Path) -> None:
    path = tmp_path / "t"
    options = options_of(path, logRetentionHours="1")
    for batch in range(6):
        commit(options, batch, files(options, rows(batch, batch + 1)))
    assert main(["table", "checkpoint", str(path)]) == 0
    assert len(log_of(path)) == 6
    age(path, 2)
    commit(options, 6, files(options, rows(6, 7)))
    assert main(["table", "checkpoint", str(path)]) == 0
    assert len(log_of(path)) == 1, "that of the newest checkpoint"
    assert read(path) == rows(0, 7)


def test_vacuum_as_a_setting(tmp_path: Path) -> None:
    """Files of tasks that failed go after a week."""
    path = tmp_path / "t"
    options = options_of(path, compactEvery="4", vacuumEvery="4")
    failed = {each.path for each in files(options, rows(0, 3))}
    for batch in range(8):
        commit(options, batch, files(options, rows(batch, batch + 1)))
    assert failed <= {each.name for each in path.glob("*.parquet")}, "too young"
    age(path, 24 * 8)
    for batch in range(8, 12):
        commit(options, batch, files(options, rows(batch, batch + 1)))
    assert read(path) == rows(0, 12)
    assert not failed & {each.name for each in path.glob("*.parquet")}
