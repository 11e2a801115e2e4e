"""`barnabas table`: compaction and vacuum of a Delta table."""

from __future__ import annotations

import json
from pathlib import Path

import deltalake
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from click.testing import CliRunner, Result

from barnabas.cli.table_command import table
from barnabas.errors import BarnabasError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A table of twelve files, and one that no commit names."""
    for number in range(12):
        deltalake.write_deltalake(
            str(tmp_path / "t"), pa.table({"number": [number]}), mode="append"
        )
    (tmp_path / "t" / "part-orphan.parquet").write_bytes(b"left by a task that failed")
    return tmp_path / "t"


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(table, [str(word) for word in words], catch_exceptions=False)


def files(path: Path) -> set[str]:
    return {each.name for each in path.glob("*.parquet")}


def numbers(path: Path) -> list[int]:
    found: list[int] = deltalake.DeltaTable(str(path)).to_pyarrow_table()["number"].to_pylist()
    return sorted(found)


def test_small_files_are_merged_and_then_removed(path: Path) -> None:
    assert run("compact", path).output == "merged 12 files into 1\n"
    assert numbers(path) == list(range(12)) and len(files(path)) == 14
    assert run("vacuum", path).output == "removed 0 files\n", "a week is kept"
    shown = run("vacuum", path, "--retain-hours", "0", "--dry-run").output.splitlines()
    assert len(shown) == 13 and "part-orphan.parquet" in shown
    assert len(files(path)) == 14
    removed = json.loads(run("vacuum", path, "--retain-hours", "0", "--json").output)
    assert removed == shown
    assert numbers(path) == list(range(12)) and len(files(path)) == 1


@pytest.mark.parametrize("word", ["compact", "checkpoint", "vacuum"])
@pytest.mark.parametrize("name", ["nowhere", "file", "empty"])
def test_what_is_no_table_is_named(tmp_path: Path, word: str, name: str) -> None:
    """UX-4: in our words, whatever deltalake would say."""
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    path = tmp_path / name
    with pytest.raises(BarnabasError, match=f"^{path}: there is no Delta table$"):
        run(word, path)


def test_a_secret_that_is_mistyped_is_not_shown(tmp_path: Path) -> None:
    result = run("compact", tmp_path, "--storage", "AWS_SECRET_ACCESS_KEY:c0ffee")
    assert result.exit_code == 2
    assert "NAME=VALUE" in result.output and "c0ffee" not in result.output
