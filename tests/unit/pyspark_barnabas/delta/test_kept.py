"""A table that is kept open between commits is opened again whenever anything else changed it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pyspark_barnabas.delta.compaction import compact
from pyspark_barnabas.delta.kept import Kept
from pyspark_barnabas.delta.options import DeltaOptions
from pyspark_barnabas.delta.progress import Progress
from pyspark_barnabas.delta.table import Table
from pyspark_barnabas.token import NotExactlyOnce
from tests.kit.pipeline.delta_tables import (
    SCHEMA,
    commit,
    files,
    of_batch,
    options_of,
    read,
    rows,
)


def commit_kept(options: DeltaOptions, kept: Kept, batch: int, *, overwrite: bool = False) -> bool:
    table = Table(of_batch(options, batch), kept)
    found = files(options, rows(10 * batch, 10 * batch + 10))
    return table.commit(SCHEMA, found, overwrite=overwrite, query="q")


@pytest.fixture
def options(tmp_path: Path) -> DeltaOptions:
    return options_of(tmp_path / "table")


@pytest.fixture
def kept(options: DeltaOptions) -> Kept:
    """Keeps a table with the batches 0 to 2."""
    kept = Kept(options.path)
    for batch in range(3):
        assert commit_kept(options, kept, batch)
    return kept


def test_sp_3_each_batch_is_committed_once_to_a_kept_table(
    options: DeltaOptions, kept: Kept
) -> None:
    table = kept.table()
    assert table is not None and table.version() == 2
    assert kept.progress == Progress(2, 2, 10)
    assert not commit_kept(options, kept, 2), "batch 2 was committed twice"
    with pytest.raises(NotExactlyOnce, match="this is batch 4"):
        commit_kept(options, kept, 4)
    assert commit_kept(options, kept, 3)
    assert kept.table() is table, "it was opened again"
    assert read(Path(options.path)) == rows(0, 40)


def test_the_last_commit_is_read_only_for_the_next_one(options: DeltaOptions, kept: Kept) -> None:
    table = kept.table()
    assert table is not None
    assert commit_kept(options, kept, 3)
    assert kept.version() == 3 and table.version() == 2
    kept.refresh()
    assert kept.table() is table and table.version() == 3


def test_sp_3_a_commit_before_the_refresh_is_seen(options: DeltaOptions, kept: Kept) -> None:
    assert commit_kept(options, kept, 3)
    assert commit(options, 4, files(options, rows(40, 50)))
    kept.refresh()
    assert kept.version() is None and kept.table() is None
    assert not commit_kept(options, kept, 4), "batch 4 was committed twice"


def test_an_overwrite_of_a_kept_table_replaces_all_rows(options: DeltaOptions, kept: Kept) -> None:
    assert commit_kept(options, kept, 3, overwrite=True)
    assert commit_kept(options, kept, 4, overwrite=True)
    assert read(Path(options.path)) == rows(40, 50)


def test_sp_3_another_writers_batch_is_seen(options: DeltaOptions, kept: Kept) -> None:
    assert commit(options, 3, files(options, rows(30, 40)))
    assert kept.table() is None
    assert not commit_kept(options, kept, 3), "batch 3 was committed twice"
    assert commit_kept(options, kept, 4)
    assert read(Path(options.path)) == rows(0, 50)


def test_a_compaction_is_seen(options: DeltaOptions, kept: Kept) -> None:
    assert compact(options).removed == 3
    assert kept.table() is None
    assert commit_kept(options, kept, 3)
    assert commit_kept(options, kept, 4, overwrite=True)
    assert read(Path(options.path)) == rows(40, 50)


def test_another_table_in_the_same_place_is_seen(
    options: DeltaOptions, kept: Kept, tmp_path: Path
) -> None:
    """It has as many versions, so only its files tell that it is another."""
    other = options_of(tmp_path / "other")
    for batch in range(3):
        assert commit(other, batch, files(other, rows(100, 101)), query="another")
    shutil.rmtree(options.path)
    shutil.copytree(other.path, options.path)
    assert kept.table() is None
    assert commit_kept(options, kept, 0)
    assert read(Path(options.path)) == [*rows(0, 10), *rows(100, 101) * 3]


def test_a_table_that_was_removed_is_not_kept(options: DeltaOptions, kept: Kept) -> None:
    shutil.rmtree(options.path)
    assert kept.table() is None
