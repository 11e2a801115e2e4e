"""SP-3: what goes wrong around a commit to a table; every row is there once, or it is said."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import deltalake
import polars
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from deltalake.exceptions import CommitFailedError

from barnabas.errors import BarnabasError, ConfigError
from pyspark_barnabas.delta import compaction
from pyspark_barnabas.delta.compaction import CompactionLost, compact
from pyspark_barnabas.delta.table import CommitLost, Table
from pyspark_barnabas.token import NotExactlyOnce
from tests.kit.pipeline.delta_tables import (
    SCHEMA,
    commit,
    files,
    many_files,
    of_batch,
    options_of,
    read,
    rows,
)


def opened(path: Path) -> deltalake.DeltaTable:
    return deltalake.DeltaTable(str(path))


def test_sp_3_drivers_that_race_commit_each_batch_once(tmp_path: Path) -> None:
    """The first batch makes the table: there, too, one comes first."""
    options = options_of(tmp_path / "t")
    together = threading.Barrier(3)

    def drive(batch: int) -> bool:
        found = files(options, rows(batch, batch + 1))
        together.wait(60)
        return commit(options, batch, found)

    with ThreadPoolExecutor(3) as drivers:
        for batch in range(8):
            assert sorted(drivers.map(drive, [batch] * 3)) == [False, False, True]
    assert read(tmp_path / "t") == rows(0, 8)


def test_sp_3_queries_that_race_under_one_id_are_distinguished(tmp_path: Path) -> None:
    options = options_of(tmp_path / "t", txnAppId="shared")
    together = threading.Barrier(2)

    def drive(query: str) -> str:
        found = files(options, rows(0, 1))
        together.wait(60)
        try:
            return str(commit(options, 0, found, query))
        except NotExactlyOnce:
            return "refused"

    with ThreadPoolExecutor(2) as drivers:
        assert sorted(drivers.map(drive, ["one", "another"])) == ["True", "refused"]
    assert read(tmp_path / "t") == rows(0, 1)


def test_sp_3_a_batch_without_rows_counts(tmp_path: Path) -> None:
    for partition_by in ("", "day"):
        path = tmp_path / f"t{partition_by}"
        options = options_of(path, partitionBy=partition_by)
        assert commit(options, 0, [])
        assert not commit(options, 0, [])
        assert commit(options, 1, files(options, rows(0, 2)))
        assert commit(options, 2, [])
        assert not commit(options, 2, [])
        assert commit(options, 3, files(options, rows(2, 3)))
        assert read(path) == rows(0, 3)


def test_sp_3_a_table_that_was_deleted_and_made_again_is_noticed(tmp_path: Path) -> None:
    options = options_of(tmp_path / "t")
    commit(options, 0, files(options, rows(0, 1)))
    (tmp_path / "t").rename(tmp_path / "away")
    found = files(options, rows(1, 2))
    with pytest.raises(NotExactlyOnce, match="the table has none"):
        commit(options, 1, found)
    commit(options, 0, files(options, rows(5, 6)), "another")
    with pytest.raises(NotExactlyOnce, match="the table has none"):
        commit(options, 1, found)
    assert read(tmp_path / "t") == rows(5, 6)


def test_sp_3_a_table_of_another_layout_takes_no_files_of_the_old_one(tmp_path: Path) -> None:
    """Between the tasks and the commit somebody deletes the table and makes it again."""
    options = options_of(tmp_path / "t")
    found = files(options, rows(0, 2))
    other = deltalake.Schema.from_arrow(SCHEMA)
    deltalake.DeltaTable.create(str(tmp_path / "t"), other, partition_by=["day"])
    with pytest.raises(CommitLost, match="partitioned by day"):
        commit(options, 0, found)
    assert commit(options, 0, files(options, rows(0, 2)))
    assert read(tmp_path / "t") == rows(0, 2)


def test_sp_3_a_vacuum_that_keeps_nothing_takes_files_and_not_rows(tmp_path: Path) -> None:
    options = options_of(tmp_path / "t")
    commit(options, 0, files(options, rows(0, 1)))
    found = files(options, rows(1, 2))
    opened(tmp_path / "t").vacuum(0, False, enforce_retention_duration=False, full=True)
    with pytest.raises(CommitLost, match="is missing or has changed since a task wrote it"):
        commit(options, 1, found)
    assert commit(options, 1, files(options, rows(1, 2)))
    assert read(tmp_path / "t") == rows(0, 2)


def test_sp_3_a_file_that_is_cut_short_is_not_committed(tmp_path: Path) -> None:
    options = options_of(tmp_path / "t")
    (found,) = files(options, rows(0, 1))
    (tmp_path / "t" / found.path).write_bytes(b"PAR1")
    with pytest.raises(CommitLost, match="is missing or has changed since a task wrote it"):
        commit(options, 0, [found])


@pytest.mark.thorough
def test_sp_3_compaction_and_vacuum_beside_writers_and_a_reader(tmp_path: Path) -> None:
    path = tmp_path / "t"
    options = options_of(path, partitionBy="day", compactEvery="3")
    commit(options, 0, files(options, rows(0, 3)))
    stopping = threading.Event()

    def keep_small() -> None:
        while not stopping.is_set():
            try:
                compact(options)
                opened(path).vacuum(168, dry_run=False, full=True)
            except CompactionLost:
                continue

    def keep_reading() -> None:
        while not stopping.is_set():
            before = opened(path)
            found = sorted(before.to_pyarrow_table()["number"].to_pylist())
            assert found == list(range(len(found)))
            assert sorted(before.to_pyarrow_table()["number"].to_pylist()) == found

    with ThreadPoolExecutor(2) as others:
        running = [others.submit(keep_small), others.submit(keep_reading)]
        try:
            for batch in range(1, 15):
                found = files(options, rows(3 * batch, 3 * batch + 3))
                assert commit(options, batch, found)
                assert not commit(options, batch, found)
        finally:
            stopping.set()
        for each in running:
            each.result(60)
    assert read(path) == rows(0, 45)


@pytest.mark.thorough
def test_sp_3_of_compactions_at_once_one_is_done(tmp_path: Path) -> None:
    """Of two by `deltalake`'s own `optimize` both are, and the rows are there twice."""
    path = tmp_path / "t"
    options = options_of(path, partitionBy="day")
    together = threading.Barrier(3)

    def run() -> bool:
        together.wait(60)
        try:
            return compact(options).removed > 0
        except CompactionLost:
            return False

    for attempt in range(5):
        for batch in range(attempt * 3, attempt * 3 + 3):
            commit(options, batch, files(options, rows(batch * 3, batch * 3 + 3)))
        with ThreadPoolExecutor(3) as several:
            done = [several.submit(run) for _ in range(3)]
        assert any(each.result() for each in done)
        assert read(path) == rows(0, 9 * (attempt + 1))


def test_sp_3_an_overwrite_during_a_compaction_stays_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = options_of(tmp_path / "t")
    for batch in range(3):
        commit(options, batch, files(options, rows(batch, batch + 1)))
    merge = compaction._commit

    def overwritten_before(*given: Any) -> None:
        replaced = files(options, rows(7, 8))
        assert Table(options).commit(SCHEMA, replaced, overwrite=True, query=None)
        merge(*given)

    monkeypatch.setattr(compaction, "_commit", overwritten_before)
    with pytest.raises(CompactionLost):
        compact(options)
    assert read(tmp_path / "t") == rows(7, 8)
    assert len(list((tmp_path / "t").glob("*.parquet"))) == 4, "what was merged is removed"


def test_sp_3_a_compaction_before_an_overwrite_leaves_nothing(tmp_path: Path) -> None:
    """The overwrite has looked before: what it takes away is not there any more."""
    options = options_of(tmp_path / "t")
    for batch in range(3):
        commit(options, batch, files(options, rows(batch, batch + 1)))
    table = Table(options)
    before = table.open()
    assert compact(options) == (3, 1)
    looks = iter([before])
    table.open = lambda: next(looks, None) or Table(options).open()  # type: ignore[method-assign]
    assert table.commit(SCHEMA, files(options, rows(7, 8)), overwrite=True, query=None)
    assert read(tmp_path / "t") == rows(7, 8)


def test_sp_3_a_compaction_fills_in_columns_that_older_files_lack(tmp_path: Path) -> None:
    path = tmp_path / "t"
    options = options_of(path, mergeSchema="true", partitionBy="day")
    one = pa.struct([("price", pa.int64())])
    both = pa.struct([("price", pa.int64()), ("currency", pa.string())])
    for batch, item in enumerate((None, one, both)):
        schema = SCHEMA if item is None else SCHEMA.append(pa.field("items", pa.list_(item)))
        rows_here = [{"number": batch, "day": "d", "items": [{"price": 1, "currency": "EUR"}]}]
        given = of_batch(options, batch)
        found = files(given, rows_here, schema)
        assert Table(given).commit(schema, found, overwrite=False, query="q")
    before = read(path)
    assert compact(options) == (3, 1)
    assert read(path) == before
    assert [row["items"] for row in before] == [
        None,
        [{"price": 1, "currency": None}],
        [{"price": 1, "currency": "EUR"}],
    ]


def test_sp_3_odd_partitions_survive_compaction_and_vacuum(tmp_path: Path) -> None:
    from tests.kit.pipeline.delta_tables import ODD

    path = tmp_path / "t"
    options = options_of(path, partitionBy="day")
    given = [{"number": number, "day": day} for number, day in enumerate(ODD)]
    for batch in range(2):
        commit(options, batch, files(options, given))
    before = read(path)
    for _ in range(2):
        assert not opened(path).vacuum(0, False, enforce_retention_duration=False, full=True) or _
        assert read(path) == before
        assert compact(options) == ((14, 7) if not _ else (0, 0))
        assert read(path) == before
        assert polars.read_delta(str(path)).shape == (16, 2)


def test_sp_3_what_fails_behind_a_commit_does_not_undo_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch job has nothing to recognise its second run by."""
    options = options_of(tmp_path / "t", compactEvery="1")
    table = Table(options)
    assert table.commit(SCHEMA, files(options, rows(0, 1)), overwrite=False, query=None)

    def fail(_: object) -> None:
        raise CommitFailedError("others were first")

    monkeypatch.setattr(deltalake.DeltaTable, "update_incremental", fail)
    assert table.commit(SCHEMA, files(options, rows(1, 2)), overwrite=False, query=None)
    monkeypatch.undo()
    assert read(tmp_path / "t") == rows(0, 2)


FULL = """
import resource, sys
from tests.kit.pipeline.delta_tables import commit, many_files, options_of

options = options_of(sys.argv[1], partitionBy="day")
found = many_files(options)
resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, 4_096))
commit(options, int(sys.argv[2]), found)
"""


@pytest.mark.thorough
@pytest.mark.parametrize("batch", [0, 1])
def test_sp_3_a_disk_that_is_full_in_the_commit_loses_and_doubles_nothing(
    tmp_path: Path, batch: int
) -> None:
    """A limit on the size of files, below that of the commit and above that of the data files."""
    path = tmp_path / "t"
    options = options_of(path, partitionBy="day")
    for before in range(batch):
        commit(options, before, [])
    result = subprocess.run(
        [sys.executable, "-c", FULL, str(path), str(batch)], capture_output=True, text=True
    )
    assert result.returncode == 1, result.stderr
    assert "BarnabasError" in result.stderr and "File too large" in result.stderr
    assert commit(options, batch, many_files(options))
    assert not commit(options, batch, many_files(options))
    assert len(read(path)) == 40


def test_sp_3_no_batch_number_is_too_long(tmp_path: Path) -> None:
    options = options_of(tmp_path / "t")._replace(begins=999_999)
    for at, batch in enumerate((999_999, 1_000_000, 1_000_001)):
        assert commit(options, batch, files(options, rows(at, at + 1)))
        assert not commit(options, batch, files(options, rows(at, at + 1)))
    assert read(tmp_path / "t") == rows(0, 3)


def test_a_table_is_not_made_around_files_of_others(tmp_path: Path) -> None:
    """A vacuum would remove them."""
    options = options_of(tmp_path / "t", partitionBy="day")
    files(options, rows(0, 3))  # of a task that failed: no obstacle
    Table(options).check(SCHEMA)
    with pytest.raises(ConfigError, match="neither a Delta table nor empty"):
        Table(options_of(tmp_path / "t")).check(SCHEMA)
    (tmp_path / "t" / "part-00000-1234-c000.snappy.parquet").write_bytes(b"somebody's")
    with pytest.raises(ConfigError, match="neither a Delta table nor empty"):
        Table(options).check(SCHEMA)


def test_no_message_tells_how_an_object_store_is_opened(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "c0ffee-secret"
    options = options_of(tmp_path / "t")._replace(
        path="s3://bucket/t",
        storage={
            "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": secret,
            "AWS_SECRET_ACCESS_KEY": secret,
            "AWS_REGION": "eu",
            "max_retries": "0",
            "retry_timeout": "1s",
        },
    )
    assert secret not in repr(options) + str(options) + f"{[options]}"
    with pytest.raises(Exception) as failed:
        Table(options).check(SCHEMA)
    assert secret not in "".join(traceback.format_exception(failed.value)) + caplog.text


def test_a_relative_path_is_that_of_the_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = options_of(Path("t"))
    monkeypatch.chdir("/")
    assert options.path == str(tmp_path / "t")


def test_unknown_bounds_are_left_out(tmp_path: Path) -> None:
    kinds = {
        "number": pa.int64(),
        "real": pa.float64(),
        "date": pa.date32(),
        "at": pa.timestamp("us", "UTC"),
    }
    schema = pa.schema(list(kinds.items()))
    last = datetime.datetime.max.replace(tzinfo=datetime.UTC)
    far = pa.array([4_000_000, 0], pa.int32()).cast(pa.date32())
    columns = [pa.array([1, 2]), pa.array([1.0, float("nan")]), far, pa.array([last] * 2)]
    options = of_batch(options_of(tmp_path / "t"), 0)
    from pyspark_barnabas.delta.files import FileWriter
    from pyspark_barnabas.delta.storage import filesystem

    writer = FileWriter(filesystem(options), schema, ())
    writer.write(
        pa.RecordBatch.from_arrays(
            [c.cast(k) for c, k in zip(columns, kinds.values(), strict=True)], schema=schema
        )
    )
    written = writer.finish()
    bounds = json.loads(written[0].stats)
    assert bounds["minValues"] == {"number": 1, "real": 1.0}
    assert bounds["maxValues"] == {"number": 2, "real": sys.float_info.max}
    assert Table(options).commit(schema, written, overwrite=False, query="q")
    found = polars.scan_delta(str(tmp_path / "t")).filter(polars.col("real") > 5)
    assert found.select("number").collect().to_dicts() == [{"number": 2}], "NaN is the greatest"


def test_rows_that_come_in_small_batches_are_few_row_groups(tmp_path: Path) -> None:
    from pyarrow import parquet  # type: ignore[import-untyped]

    from pyspark_barnabas.delta.files import FileWriter
    from pyspark_barnabas.delta.storage import filesystem

    options = options_of(tmp_path / "t", partitionBy="day")
    writer = FileWriter(filesystem(options), SCHEMA, ("day",))
    for start in range(0, 300, 10):
        writer.write(pa.RecordBatch.from_pylist(rows(start, start + 10), schema=SCHEMA))
    found = writer.finish()
    assert [file.rows for file in found] == [100, 100, 100]
    assert {parquet.ParquetFile(tmp_path / "t" / each.path).num_row_groups for each in found} == {1}
    assert commit(options, 0, found)
    assert read(tmp_path / "t") == rows(0, 300)


def test_an_error_of_deltalake_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from deltalake.exceptions import DeltaError

    options = options_of(tmp_path / "t")
    commit(options, 0, [])

    def fail(*_: object, **__: object) -> None:
        raise DeltaError("disk\n    \x1b[31m↳\x1b[0m on fire\n   0: <unknown>")

    monkeypatch.setattr(deltalake.DeltaTable, "create_write_transaction", fail)
    with pytest.raises(BarnabasError, match=r"t: disk: on fire$"):
        commit(options, 1, [])
