"""What the collector remembers of files: by path, by inode, never by the first line alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.errors import ConfigError
from barnabas.pipeline.registry import FileProgress, Registry


def find(registry: Registry, path: Path) -> FileProgress | None:
    with path.open("rb") as file:
        return registry.find(path, file)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "access.log"
    path.write_text("first\nsecond\n")
    return path


def sent(registry: Registry, path: Path, position: int, line: int) -> FileProgress:
    progress = find(registry, path)
    assert progress is not None
    progress = progress._replace(position=position, line=line)
    registry.save(progress)
    return progress


def test_a_file_is_known_again_after_a_restart(tmp_path: Path, log: Path) -> None:
    """SP-4"""
    before = sent(Registry(tmp_path / "registry.json"), log, 6, 2)
    again = Registry(tmp_path / "registry.json")
    assert find(again, log) == before
    assert again.lines_sent() == 1


def test_a_rotated_file_keeps_its_place(tmp_path: Path, log: Path) -> None:
    registry = Registry(tmp_path / "registry.json")
    before = sent(registry, log, 6, 2)
    rotated = log.rename(tmp_path / "access.log.1")
    found = find(registry, rotated)
    assert found is not None
    assert (found.file_id, found.position) == (before.file_id, 6)


def test_another_file_with_the_same_first_line_is_another_file(tmp_path: Path, log: Path) -> None:
    registry = Registry(tmp_path / "registry.json")
    before = sent(registry, log, 6, 2)
    other = tmp_path / "other.log"
    other.write_text("first\nelse\n")
    found = find(registry, other)
    assert found is not None
    assert found.file_id != before.file_id and found.position == 0


def test_a_file_cut_off_and_written_anew_is_a_new_generation(tmp_path: Path, log: Path) -> None:
    registry = Registry(tmp_path / "registry.json")
    before = sent(registry, log, 13, 3)
    log.write_text("first\nnew\n")
    found = find(registry, log)
    assert found is not None
    assert (found.generation, found.position) == (1, 0)
    assert found.file_id != before.file_id


def test_an_empty_file_is_nothing_yet(tmp_path: Path) -> None:
    """UX-4"""
    empty = tmp_path / "empty.log"
    empty.touch()
    assert find(Registry(tmp_path / "registry.json"), empty) is None


def test_a_damaged_registry_says_what_to_do(tmp_path: Path) -> None:
    """UX-4"""
    path = tmp_path / "registry.json"
    path.write_text("{")
    with pytest.raises(ConfigError, match="remove it"):
        Registry(path)
