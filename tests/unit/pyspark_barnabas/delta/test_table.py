"""SP-3: files into a Delta table, and what becomes of a micro-batch that comes again."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import deltalake
import duckdb
import polars
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute  # type: ignore[import-untyped]
import pytest

from barnabas.errors import ConfigError
from pyspark_barnabas.delta.options import delta_options
from pyspark_barnabas.delta.table import Table
from pyspark_barnabas.token import NotExactlyOnce
from tests.kit.pipeline.delta_tables import (
    ODD,
    SCHEMA,
    commit,
    files,
    of_batch,
    options_of,
    read,
    rows,
)


@pytest.mark.parametrize("partition_by", ["", "day"])
def test_sp_3_a_micro_batch_is_there_once(tmp_path: Path, partition_by: str) -> None:
    options = options_of(tmp_path / "t", partitionBy=partition_by)
    files(options, rows(0, 10))  # of a task that failed
    first = files(options, rows(0, 10))
    assert commit(options, 0, first)
    assert not commit(options, 0, files(options, rows(0, 10)))
    assert commit(options, 1, files(options, rows(10, 15)))
    assert read(tmp_path / "t") == rows(0, 15)


def test_what_is_no_replay_is_refused(tmp_path: Path) -> None:
    options = options_of(tmp_path / "t", txnAppId="events")
    with pytest.raises(NotExactlyOnce, match="txnBegins=4"):
        commit(options, 4, files(options, rows(0, 5)))
    assert commit(options._replace(begins=4), 4, files(options, rows(0, 5)))
    for batch, query, reason in (
        (5, "another", "another query writes"),
        (4, "another", "another query writes"),
        (3, "q", "batch 4 is in the table already"),
        (6, "q", "has 4 as the last"),
        (4, "q", "with 5 rows and now has 4"),
    ):
        with pytest.raises(NotExactlyOnce, match=reason):
            commit(options, batch, files(options, rows(5, 9)), query)
    assert read(tmp_path / "t") == rows(0, 5)
    again = options._replace(begins=3)  # still there from an earlier start
    with pytest.raises(NotExactlyOnce, match="batch 4 is in the table already"):
        commit(again, 3, files(options, rows(5, 9)))
    assert not commit(options._replace(begins=5), 4, files(options, rows(5, 9)))


def test_a_restored_table_is_noticed(tmp_path: Path) -> None:
    options = options_of(tmp_path / "t")
    for batch in range(3):
        commit(options, batch, files(options, rows(batch, batch + 1)))
    deltalake.DeltaTable(str(tmp_path / "t")).restore(0)
    assert read(tmp_path / "t") == rows(0, 1)
    for batch in (2, 3):  # one that seems to be there, and the next one
        with pytest.raises(NotExactlyOnce, match="was restored"):
            commit(options, batch, files(options, rows(batch, batch + 1)))
    assert not commit(options._replace(begins=3), 2, files(options, rows(2, 3)))
    assert commit(options._replace(begins=2), 2, files(options, rows(2, 3)))
    assert not commit(options._replace(begins=2), 2, files(options, rows(2, 3)))
    assert commit(options, 3, files(options, rows(3, 4)))
    assert read(tmp_path / "t") == [*rows(0, 1), *rows(2, 4)]


def test_a_table_restored_to_what_holds_everything_is_no_obstacle(tmp_path: Path) -> None:
    options = options_of(tmp_path / "t")
    commit(options, 0, files(options, rows(0, 1)))
    for _ in range(12):  # more than one looks at
        deltalake.write_deltalake(
            str(tmp_path / "t"), pa.table({"number": [-1], "day": [""]}), mode="append"
        )
    deltalake.DeltaTable(str(tmp_path / "t")).restore(0)
    assert not commit(options, 0, files(options, rows(0, 1)))
    assert commit(options, 1, files(options, rows(1, 2)))
    assert read(tmp_path / "t") == rows(0, 2)


def test_of_two_drivers_one_is_refused(tmp_path: Path) -> None:
    """Both have looked before either commits."""
    options = options_of(tmp_path / "t")
    commit(options, 0, files(options, rows(0, 1)))
    mine = Table(of_batch(options, 1))
    opened = mine.open()
    assert commit(options, 1, files(options, rows(1, 2)))
    looks = iter([opened])
    mine.open = lambda: next(looks, None) or Table(options).open()  # type: ignore[method-assign]
    assert not mine.commit(SCHEMA, files(options, rows(1, 2)), overwrite=False, query="q")
    assert read(tmp_path / "t") == rows(0, 2)


def test_a_batch_job_passes_over_what_it_committed(tmp_path: Path) -> None:
    options = options_of(tmp_path / "t", txnAppId="job", txnVersion="7")
    table = Table(options)
    assert table.commit(SCHEMA, files(options, rows(0, 2)), overwrite=False, query=None)
    assert not table.commit(SCHEMA, files(options, rows(0, 2)), overwrite=False, query=None)
    plain = Table(options_of(tmp_path / "t"))
    assert plain.commit(SCHEMA, files(options, rows(2, 3)), overwrite=False, query=None)
    assert read(tmp_path / "t") == rows(0, 3)
    assert plain.commit(SCHEMA, files(options, rows(5, 6)), overwrite=True, query=None)
    assert read(tmp_path / "t") == rows(5, 6)


def test_a_batch_job_writes_versions_that_are_newer_alone(tmp_path: Path) -> None:
    """As Delta's own writer does: a gap is none of its business."""
    for version, is_new in ((7, True), (6, False), (9, True), (8, False), (9, False), (10, True)):
        options = options_of(tmp_path / "t", txnAppId="job", txnVersion=str(version))
        found = files(options, rows(version, version + 1))
        assert Table(options).commit(SCHEMA, found, overwrite=False, query=None) == is_new, version
    assert [row["number"] for row in read(tmp_path / "t")] == [7, 9, 10]


def test_a_batch_job_notices_a_restored_table(tmp_path: Path) -> None:
    """The version that it still names went with the rows."""
    options = options_of(tmp_path / "t", txnAppId="job", txnVersion="7")
    table = Table(options)
    plain = Table(options_of(tmp_path / "t"))
    assert plain.commit(SCHEMA, files(options, rows(0, 1)), overwrite=False, query=None)
    assert table.commit(SCHEMA, files(options, rows(1, 2)), overwrite=False, query=None)
    deltalake.DeltaTable(str(tmp_path / "t")).restore(0)
    with pytest.raises(NotExactlyOnce, match="was restored"):
        table.commit(SCHEMA, files(options, rows(1, 2)), overwrite=False, query=None)
    again = Table(options._replace(begins=7))
    assert again.commit(SCHEMA, files(options, rows(1, 2)), overwrite=False, query=None)
    assert not table.commit(SCHEMA, files(options, rows(1, 2)), overwrite=False, query=None)
    assert read(tmp_path / "t") == rows(0, 2)


def test_columns_are_checked_before_and_added_if_asked(tmp_path: Path) -> None:
    path = tmp_path / "t"
    options = options_of(path, partitionBy="day")
    commit(options, 0, files(options, rows(0, 2)))
    wider = SCHEMA.append(pa.field("site", pa.string()))
    with pytest.raises(ConfigError, match="no column site"):
        Table(options).check(wider)
    with pytest.raises(ConfigError, match="number is string, but long in the table"):
        Table(options).check(pa.schema([("number", pa.string()), ("day", pa.string())]))
    with pytest.raises(ConfigError, match="partitioned by day"):
        Table(options_of(path, partitionBy="number")).check(SCHEMA)
    merging = of_batch(options_of(path, mergeSchema="true"), 1)
    more = files(merging, [{"number": 2, "day": "d2", "site": "a"}], wider)
    assert Table(merging).commit(wider, more, overwrite=False, query="q")
    assert [row["site"] for row in read(path)] == [None, None, "a"]
    narrow = pa.schema([("number", pa.int64()), ("day", pa.string())])
    Table(options).check(narrow)


def test_odd_partition_values_are_read_back_by_everybody(tmp_path: Path) -> None:
    path = tmp_path / "t"
    options = options_of(path, partitionBy="day")
    given = [{"number": number, "day": day} for number, day in enumerate(ODD)]
    commit(options, 0, files(options, given))
    wanted = [{**row, "day": row["day"] or None} for row in given]
    assert read(path) == wanted
    dataset = deltalake.DeltaTable(str(path)).to_pyarrow_dataset()
    found = duckdb.from_arrow(dataset).order("number").fetchall()
    assert found == [(row["number"], row["day"]) for row in wanted]
    assert polars.read_delta(str(path)).sort("number").select("number", "day").to_dicts() == wanted


def test_every_type_is_read_back_and_skipped_by(tmp_path: Path) -> None:
    utc = ZoneInfo("UTC")
    kinds: dict[str, tuple[pa.DataType, Any, Any]] = {
        "number": (pa.int64(), -5, 2**62),
        "small": (pa.int8(), -1, 7),
        "real": (pa.float64(), -0.5, float("nan")),
        "text": (pa.string(), "a", "z" * 100),
        "raw": (pa.binary(), b"\x00", b"\xff"),
        "yes": (pa.bool_(), True, False),
        "date": (pa.date32(), datetime.date(1970, 1, 1), datetime.date(9999, 12, 31)),
        "at": (
            pa.timestamp("us", "UTC"),
            datetime.datetime(2026, 1, 1, tzinfo=utc),
            datetime.datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=utc),
        ),
        "price": (pa.decimal128(10, 2), Decimal("1.10"), Decimal("-3.99")),
        "exact": (
            pa.decimal128(38, 9),
            Decimal("-1.500000000"),
            Decimal("12345678901234567890.123456789"),
        ),
        "single": (pa.float32(), 1.5, -2.5),
        "list": (pa.list_(pa.string()), ["a", None], []),
        "nested": (pa.struct([("a", pa.int64())]), {"a": 1}, {"a": None}),
        "nothing": (pa.string(), None, None),
    }
    schema = pa.schema([(name, kind) for name, (kind, _, _) in kinds.items()])
    given = [{name: each[at] for name, each in kinds.items()} for at in (1, 2)]
    options = options_of(tmp_path / "t")
    table = Table(of_batch(options, 0))
    assert table.commit(schema, files(options, given, schema), overwrite=False, query="q")
    found = read(tmp_path / "t")
    assert str(found) == str(given)
    lazily = polars.scan_delta(str(tmp_path / "t"))
    dataset = deltalake.DeltaTable(str(tmp_path / "t")).to_pyarrow_dataset()
    for name, (kind, *values) in kinds.items():
        for at, value in enumerate(values):
            if value is None or name in ("real", "list", "nested"):
                continue  # NaN equals nothing, and the others cannot be compared
            is_equal = pyarrow.compute.field(name) == pa.scalar(value, kind)
            assert dataset.to_table(filter=is_equal)["number"].to_pylist() == [given[at]["number"]]
    is_real = pyarrow.compute.field("real") < 0
    assert dataset.to_table(filter=is_real).num_rows == 1
    late = datetime.datetime(2026, 1, 1, tzinfo=utc)
    assert lazily.filter(polars.col("at") > late).select("number").collect().to_dicts() == [
        {"number": 2**62}
    ]


def test_compaction_leaves_fewer_files_and_the_same_rows(tmp_path: Path) -> None:
    options = options_of(tmp_path / "t", compactEvery="5")
    for batch in range(12):
        commit(options, batch, files(options, rows(batch, batch + 1)))
    assert read(tmp_path / "t") == rows(0, 12)
    assert len(deltalake.DeltaTable(str(tmp_path / "t")).file_uris()) < 8


def test_options_are_checked() -> None:
    for options, said in (
        ({}, "path is missing"),
        ({"path": "p", "partitonBy": "x"}, "did you mean partitionBy"),
        ({"path": "p", "partitionBy": "a,A"}, "twice"),
        ({"path": "p", "txnVersion": "1"}, "needs txnAppId"),
        ({"path": "p", "txnVersion": "x", "txnAppId": "a"}, "a whole number"),
        ({"path": "p", "mergeSchema": "1"}, "true or false"),
    ):
        with pytest.raises(ConfigError, match=said):
            delta_options(options)
    found = delta_options({"path": "p", "storage.AWS_REGION": "eu", "checkpointLocation": "c"})
    assert found.storage == {"AWS_REGION": "eu"}


def test_a_partition_with_too_long_a_name_says_so(tmp_path: Path) -> None:
    options = options_of(tmp_path / "t", partitionBy="day")
    with pytest.raises(ConfigError, match="day has 300 characters"):
        files(options, [{"number": 1, "day": "x" * 300}, {"number": 2, "day": "y"}])


def test_a_task_with_too_many_partitions_says_what_to_do(tmp_path: Path) -> None:
    options = options_of(tmp_path / "t", partitionBy="day")
    many = [{"number": number, "day": str(number)} for number in range(1_100)]
    with pytest.raises(ConfigError, match="repartition"):
        files(options, many)
