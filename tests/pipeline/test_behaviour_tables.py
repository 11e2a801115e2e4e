"""The tables on disk: whole or not at all, once or not at all, whenever a batch is cut off."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from barnabas.errors import ConfigError
from barnabas.pipeline.schema import struct
from barnabas.pipeline.tables import SCHEMAS, Tables, Writing
from barnabas.pipeline.traffic import PAGES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FIRST, SECOND = date(2015, 5, 17), date(2015, 5, 18)


def views(spark: SparkSession, *rows: tuple[str, int, date]) -> DataFrame:
    return spark.createDataFrame(
        [(path, count, 0, 0, 0, day) for path, count, day in rows], struct(PAGES)
    )


def read(spark: SparkSession, tables: Tables) -> dict[tuple[str, date], int]:
    rows = tables.read(spark, "pages").collect()
    return {(row["path"], row["day"]): row["views"] for row in rows}


def test_a_version_takes_over_the_days_it_does_not_touch(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables = Tables(tmp_path / "tables")
    assert all(tables.read(spark, name).count() == 0 for name in SCHEMAS)

    first = tables.begin(0)
    assert first is not None and not first.is_replay
    first.put("pages", views(spark, ("/a", 1, FIRST), ("/b", 2, SECOND)))
    first.commit("query", 1, FIRST)
    assert read(spark, tables) == {("/a", FIRST): 1, ("/b", SECOND): 2}
    pinned = tables.read(spark, "pages")

    second = tables.begin(1)
    assert second is not None
    assert tables.read(spark, "pages", since=SECOND).count() == 1
    second.put("pages", views(spark, ("/b", 5, SECOND), ("/c", 1, SECOND)))
    assert read(spark, tables)["/b", SECOND] == 2, "not visible before the commit"
    second.commit("query", 2, SECOND)
    assert read(spark, tables) == {("/a", FIRST): 1, ("/b", SECOND): 5, ("/c", SECOND): 1}
    assert pinned.count() == 2, "who reads the version before is not disturbed"
    files = list((tmp_path / "tables/versions").glob(f"*/pages/day={FIRST}/*.parquet"))
    assert len(files) == 2 and files[0].samefile(files[1])
    # Any other reader of parquet sees the same, under a name without versions.
    plain = spark.read.parquet(str(tmp_path / "tables/pages"))
    assert plain.count() == 3

    assert tables.begin(1) is None, "a batch is not written a second time"
    with pytest.raises(ConfigError, match="remove the output directory"):
        tables.begin(5)


def test_a_batch_that_was_cut_off_is_written_again(spark: SparkSession, tmp_path: Path) -> None:
    tables = Tables(tmp_path)
    letters = spark.createDataFrame([], struct(SCHEMAS["dead_letters"]))
    row = spark.createDataFrame(
        [("empty line", None, b"", None, None, None, "t", 0, 1)], letters.schema
    )
    cut_off = tables.begin(0)
    assert cut_off is not None
    cut_off.append("dead_letters", row)
    cut_off.put("pages", views(spark, ("/a", 1, FIRST)))
    # Killed here: nothing of the state is visible, and the next attempt knows.
    assert tables.manifest() is None and read(spark, tables) == {}

    again = tables.begin(0)
    assert again is not None and again.is_replay
    again.append("dead_letters", row)
    again.put("pages", views(spark, ("/a", 1, FIRST)))
    again.commit("query", 7, FIRST)
    assert tables.read(spark, "dead_letters").count() == 1
    assert read(spark, tables) == {("/a", FIRST): 1}
    manifest = tables.manifest()
    assert manifest is not None and (manifest.batch, manifest.newest_s) == (0, 7)
    assert not (tmp_path / "staging").exists()


def test_a_replay_that_is_cut_off_at_its_start_is_followed_by_a_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it may have sent to the dead letters is sent once."""
    tables = Tables(tmp_path)
    cut_off = tables.begin(0)
    assert cut_off is not None
    (tmp_path / "staging" / "dead_letters").mkdir()

    def dies(self: Path, *args: object, **options: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(Path, "mkdir", dies)
        tables.begin(0)
    again = tables.begin(0)
    assert again is not None and again.is_replay
    assert list((tmp_path / "staging").iterdir()) == []


def test_versions_are_counted_beyond_their_padding(tmp_path: Path) -> None:
    """58 days of a batch each five seconds: the million and first is the newest of them all."""
    tables = Tables(tmp_path)
    Writing(tmp_path, 999_997).commit("query", None, None)
    for batch in range(999_998, 1_000_003):
        writing = tables.begin(batch)
        assert writing is not None
        writing.commit("query", None, None)
        manifest = tables.manifest()
        assert manifest is not None and manifest.batch == batch
    kept = sorted(int(path.name) for path in (tmp_path / "versions").iterdir())
    assert kept == [1_000_000, 1_000_001, 1_000_002]


def test_tables_of_another_query_are_refused(tmp_path: Path) -> None:
    tables = Tables(tmp_path)
    tables.check_query(None)
    writing = tables.begin(0)
    assert writing is not None
    writing.commit("query", None, None)
    tables.check_query("query")
    for other in ("another", None):
        with pytest.raises(ConfigError, match="do not belong together"):
            tables.check_query(other)
