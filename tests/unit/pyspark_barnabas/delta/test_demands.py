"""SP-3: what a table demands of its writers is met, or refused before a row is written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import deltalake
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from barnabas.cli.main import main
from barnabas.errors import BarnabasError, ConfigError
from pyspark_barnabas.delta.compaction import compact
from pyspark_barnabas.delta.demands import missing_features
from pyspark_barnabas.delta.table import Table
from pyspark_barnabas.delta.vacuum import vacuum
from tests.kit.pipeline.delta_tables import (
    SCHEMA,
    age,
    commit,
    data_files,
    files,
    options_of,
    read,
    rows,
)

COLUMNS = [
    {"name": name, "type": kind, "nullable": True, "metadata": {}}
    for name, kind in (("number", "long"), ("day", "string"))
]


def table_of(
    path: Path,
    writer: int = 7,
    features: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
    *,
    reads: Sequence[str] = (),
    reader: int = 0,
) -> None:
    """A table without rows, as another writer may have left it."""
    protocol: dict[str, object] = {
        "minReaderVersion": reader or (3 if reads else 1),
        "minWriterVersion": writer,
    }
    if writer == 7:
        protocol["writerFeatures"] = [*features, *reads]
    if reads:
        protocol["readerFeatures"] = list(reads)
    metadata = {
        "id": "a",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": COLUMNS}),
        "partitionColumns": [],
        "configuration": dict(settings or {}),
    }
    log = path / "_delta_log"
    log.mkdir(parents=True)
    actions = ({"protocol": protocol}, {"metaData": metadata})
    (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))


REFUSED: dict[str, tuple[int, Sequence[str], Sequence[str]]] = {
    "deletionVectors": (7, (), ("deletionVectors",)),
    "rowTracking": (7, ("domainMetadata", "rowTracking"), ()),
    "clustering": (7, ("domainMetadata", "clustering"), ()),
    "identityColumns": (7, ("identityColumns",), ()),
    "inCommitTimestamp": (7, ("inCommitTimestamp",), ()),
    "icebergCompatV1": (7, ("icebergCompatV1",), ()),
    "vacuumProtocolCheck": (7, (), ("vacuumProtocolCheck",)),
    "typeWidening": (7, (), ("typeWidening",)),
    "allowColumnDefaults": (7, ("allowColumnDefaults",), ()),
    "ofNextYear": (7, ("ofNextYear",), ()),
    "writer version 8": (8, (), ()),
}


@pytest.mark.parametrize("feature", REFUSED)
def test_sp_3_a_feature_that_cannot_be_written_is_named_before_a_row_is(
    tmp_path: Path, feature: str
) -> None:
    path = tmp_path / "t"
    writer, features, reads = REFUSED[feature]
    table_of(path, writer, features, reads=reads)
    options = options_of(path)
    written = files(options, rows(0, 2))
    for attempt in (
        lambda: Table(options).check(SCHEMA),
        lambda: commit(options, 0, written),
        lambda: compact(options),
        lambda: vacuum(deltalake.DeltaTable(str(path))),
    ):
        with pytest.raises(ConfigError, match=f"writers that support .*{feature}.*DROP FEATURE"):
            attempt()
    assert deltalake.DeltaTable(str(path)).version() == 0


def test_sp_3_an_identity_column_is_among_the_demands_of_writer_version_6(tmp_path: Path) -> None:
    table_of(tmp_path / "t", 6)
    with pytest.raises(ConfigError, match="identityColumns"):
        Table(options_of(tmp_path / "t")).check(SCHEMA)
    assert [missing_features(version, ()) for version in range(1, 6)] == [[]] * 5


@pytest.mark.parametrize(("reads", "reader"), [(("ofNextYear",), 3), ((), 99)])
def test_sp_3_a_table_that_cannot_be_read_says_so(
    tmp_path: Path, reads: Sequence[str], reader: int
) -> None:
    table_of(tmp_path / "t", reads=reads, reader=reader)
    with pytest.raises(BarnabasError, match=f"{tmp_path}/t is a table that deltalake cannot open"):
        Table(options_of(tmp_path / "t")).check(SCHEMA)


@pytest.mark.parametrize(
    ("writer", "features", "reads"),
    [(version, (), ()) for version in range(1, 6)]
    + [(7, (), ())]
    + [(7, (each,), ()) for each in ("appendOnly", "invariants", "checkConstraints")]
    + [(7, (each,), ()) for each in ("changeDataFeed", "generatedColumns")]
    + [(7, (), (each,)) for each in ("timestampNtz", "variantType", "variantType-preview")],
)
def test_sp_3_features_that_ask_nothing_are_no_obstacle(
    tmp_path: Path, writer: int, features: Sequence[str], reads: Sequence[str]
) -> None:
    path = tmp_path / "t"
    table_of(path, writer, features, reads=reads)
    options = options_of(path)
    for batch in range(2):
        Table(options).check(SCHEMA)
        assert commit(options, batch, files(options, rows(batch, batch + 1)))
    assert compact(options) == (2, 1)
    assert {row["number"] for row in deltalake_rows(path)} == {0, 1}


def deltalake_rows(path: Path) -> list[dict[str, object]]:
    found = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(path)))
    rows: list[dict[str, object]] = pa.table(found.execute("select * from t")).to_pylist()
    return rows


def test_sp_3_an_append_only_table_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table_of(path, 2, settings={"delta.appendOnly": "true"})
    options = options_of(path)
    assert commit(options, 0, files(options, rows(0, 2)))
    table = Table(options)
    with pytest.raises(ConfigError, match="append-only"):
        table.check(SCHEMA, overwrite=True)
    with pytest.raises(ConfigError, match="append-only"):
        table.commit(SCHEMA, files(options, rows(5, 6)), overwrite=True, query=None)
    assert read(path) == rows(0, 2)


def test_sp_3_a_commit_that_lost_no_race_says_why_it_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a feature that only a later `deltalake` refuses."""
    path = tmp_path / "t"
    table_of(path, features=["ofNextYear"])
    monkeypatch.setattr("pyspark_barnabas.delta.table.refuse_demands", lambda *_, **__: None)
    options = options_of(path)
    with pytest.raises(BarnabasError, match=r"Unsupported table features.*ofNextYear") as failed:
        commit(options, 0, files(options, rows(0, 2)))
    assert "other writers" not in str(failed.value)


@pytest.mark.parametrize(
    ("retention", "days", "goes"),
    [
        (None, 6, False),
        (None, 8, True),
        ("interval 30 days", 8, False),
        ("interval 30 days", 31, True),
        ("interval 2 days", 1, False),
        ("interval 2 days", 3, True),
    ],
)
@pytest.mark.parametrize("way", ["vacuumEvery", "command"])
def test_sp_3_a_vacuum_keeps_what_the_table_says(
    tmp_path: Path, retention: str | None, days: int, goes: bool, way: str
) -> None:
    path = tmp_path / "t"
    settings = {"delta.deletedFileRetentionDuration": retention} if retention else {}
    table_of(path, 2, settings=settings)
    every = {"vacuumEvery": "1"} if way == "vacuumEvery" else {}
    options = options_of(path, **every)
    files(options, rows(0, 3))  # of a task that failed
    failed = data_files(path)
    age(path, 24 * days)
    assert commit(options, 0, files(options, rows(3, 4)))
    if way == "command":
        assert main(["table", "vacuum", str(path)]) == 0
    assert failed.isdisjoint(data_files(path)) == goes
    assert read(path) == rows(3, 4)
