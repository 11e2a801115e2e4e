"""What the collector remembers of files, and what it still reads of an older version's."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from barnabas.errors import ConfigError
from barnabas_collector.file_progress import FileProgress, new_file
from barnabas_collector.passed_over import PassedOver
from barnabas_collector.recognition import Found, Known, recognise
from barnabas_collector.registry import Registry

LOG = "/var/log/access.log"

WRITTEN_BY_0_1 = {
    "files": [
        {
            "file_id": "4764a36e1ef4e0b7",
            "path": LOG,
            "first_line": "b640e840b19d3786",  # of "first\n"
            "device": 64769,
            "inode": 1311,
            "generation": 0,
            "position": 6,
            "line": 2,
        }
    ]
}


def test_what_was_saved_is_known_after_a_restart(tmp_path: Path) -> None:
    """SP-4"""
    registry = Registry(tmp_path / "registry.json")
    progress = new_file(LOG, b"first\nsecond\n", 0)._replace(position=6, line=2)
    registry.pass_over(LOG, [PassedOver.of(Found(1, 7, None, b"years ago\n"))])
    registry.save(progress)
    registry.keep_partition_count(progress.file_id, 4)
    again = Registry(tmp_path / "registry.json")
    assert again.files == [progress] and again.find(progress.file_id) == progress
    assert again.passed_over(LOG) == [PassedOver.of(Found(1, 7, None, b"years ago\n"))]
    assert again.passed_over("/var/log/other.log") is None
    assert again.lines_sent() == 1
    assert again.partition_count(progress.file_id) == 4
    assert again.partition_count("another") is None


def test_the_registry_of_an_older_version_is_read_on(tmp_path: Path) -> None:
    """SP-4: no line is sent again, and no archive that was there before is sent at all."""
    path = tmp_path / "registry.json"
    path.write_text(json.dumps(WRITTEN_BY_0_1))
    registry = Registry(path)
    assert registry.knows(LOG) and registry.lines_sent() == 1
    found = [
        Found(64769, 7, 10, b"years ago\n"),
        Found(64769, 1311, 13, b"first\nsecond\n"),  # rotated since
        Found(64769, 9, 6, b"first\n", is_live=True),
    ]
    recognised = recognise(LOG, found, Known(registry.files, registry.passed_over(LOG)))
    mine, new = recognised.files[1], recognised.files[2]
    assert (mine.file_id, mine.position, mine.beginning_bytes) == ("4764a36e1ef4e0b7", 6, 13)
    assert (new.position, new.generation) == (0, 1)
    assert list(recognised.passed_over.values()) == [
        PassedOver.of(Found(1, 7, None, b"years ago\n"))
    ]


def test_an_id_depends_on_path_first_line_and_generation_alone() -> None:
    """So a lost registry costs nothing but time: the pipeline knows what it is sent again."""

    def file_id(*given: object) -> str:
        return new_file(*given).file_id  # type: ignore[arg-type]

    assert (
        file_id(LOG, b"first\n", 0) == file_id(LOG, b"first\nsecond\n", 0) == ("4764a36e1ef4e0b7")
    )
    assert len({file_id(LOG, b"a\n", 0), file_id(LOG, b"a\n", 1), file_id("/b", b"a\n", 0)}) == 3


def test_a_damaged_registry_says_what_to_do(tmp_path: Path) -> None:
    """UX-4"""
    path = tmp_path / "registry.json"
    for content in ("{", "[]", '{"files": [{"file_id": 1}]}', '{"files": [], "logs": [{}]}'):
        path.write_text(content)
        with pytest.raises(ConfigError, match="remove it"):
            Registry(path)


def test_the_content_is_on_disk_before_its_name_and_then_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SP-4: a power cut leaves the old registry or the new one, never an empty one."""
    path = tmp_path / "registry.json"
    registry = Registry(path)
    synced: list[str] = []

    def fsync(descriptor: int) -> None:
        inode = os.fstat(descriptor).st_ino
        if inode == tmp_path.stat().st_ino:
            synced.append("directory")
            assert len(json.loads(path.read_text())["files"]) == 1
        else:
            synced.append("file")
            assert os.fstat(descriptor).st_size and not path.exists()

    monkeypatch.setattr(os, "fsync", fsync)
    registry.save(new_file(LOG, b"first\n", 0))
    assert synced == ["file", "directory"]


def test_saving_moves_a_file_to_the_end(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "registry.json")
    one, two = new_file(LOG, b"a\n", 0), new_file(LOG, b"a\n", 1)
    for progress in (one, two, one._replace(position=2, line=2)):
        registry.save(progress)
    assert [file.generation for file in registry.files] == [1, 0]
    assert all(isinstance(file, FileProgress) for file in registry.files)
