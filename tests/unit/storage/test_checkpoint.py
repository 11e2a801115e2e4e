"""Checkpoints: their text, and that a reader finds the old one or the new one."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.errors import CorruptData
from barnabas.storage.checkpoint import read_offsets, replace_file, write_offsets
from barnabas.storage.files import OsFiles
from barnabas.types import TopicPartition
from tests.kit.storage.disk import WatchedFiles


def test_st_1_offsets_are_written_as_kafka_writes_them(tmp_path: Path) -> None:
    path = tmp_path / "recovery-point-offset-checkpoint"
    offsets = {TopicPartition("test", 0): 4711, TopicPartition("a-b", 12): 0}
    write_offsets(OsFiles(), path, offsets)
    assert path.read_text() == "0\n2\ntest 0 4711\na-b 12 0\n"
    assert read_offsets(OsFiles(), path) == offsets
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("text", ["", "0\n0\n", None])
def test_nothing_empty_and_missing_are_the_same(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "x"
    if text is not None:
        path.write_text(text)
    assert read_offsets(OsFiles(), path) == {}


@pytest.mark.parametrize(
    "text",
    ["1\n0\n", "0\n1\n", "0\n1\nt 0 1\nt 1 1\n", "0\n1\nt 0\n", "0\n1\nt x 1\n", "0\n-1\n", "\xff"],
)
def test_a_malformed_file_is_corrupt_data(tmp_path: Path, text: str) -> None:
    path = tmp_path / "broken-checkpoint"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(CorruptData, match="broken-checkpoint"):
        read_offsets(OsFiles(), path)


def test_words_may_be_split_by_any_space(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("0\n1\nt\t 3   9 \n")
    assert read_offsets(OsFiles(), path) == {TopicPartition("t", 3): 9}


def test_the_old_text_stays_until_the_new_one_is_durable(tmp_path: Path) -> None:
    """Written beside it, renamed, and then the directory is synced: in this order."""

    class Journal(WatchedFiles):
        def write(self, path: Path, data: bytes, *, sync: bool = False) -> None:
            steps.append(f"write {path.name} sync={sync}")
            super().write(path, data, sync=sync)

        def replace(self, source: Path, target: Path) -> None:
            steps.append(f"{source.name} -> {target.name}")
            super().replace(source, target)

        def sync(self, path: Path) -> None:
            steps.append(f"sync {path.name}")

    steps: list[str] = []
    (tmp_path / "x").write_text("old")
    replace_file(Journal(), tmp_path / "x", b"new")
    assert steps == ["write x.tmp sync=True", "x.tmp -> x", f"sync {tmp_path.name}"]
