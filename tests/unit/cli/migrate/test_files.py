"""MX-4: what the files of a log directory show."""

from __future__ import annotations

from pathlib import Path
from struct import pack

from barnabas.cli.migrate.files import directory_findings


def batch(magic: int, size: int = 60) -> bytes:
    return pack(">qi4xb", 0, size, magic) + bytes(size - 5)


def segment(directory: Path, *magics: int) -> None:
    path = directory / "t-0" / "00000000000000000000.log"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"".join(map(batch, magics)) + bytes(100))


def texts(directory: Path) -> list[str]:
    return [each.text for each in directory_findings(directory)]


def test_an_ordinary_directory_has_nothing(tmp_path: Path) -> None:
    segment(tmp_path, 2, 2, 2)
    (tmp_path / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=x\n")
    assert texts(tmp_path) == []


def test_old_messages_are_found_among_new_ones(tmp_path: Path) -> None:
    """MX-4: formats"""
    segment(tmp_path, 2, 1, 2)
    [found] = texts(tmp_path)
    assert "1 segment with messages of format 0 or 1 (t-0/00000000000000000000.log)" in found


def test_a_directory_of_kraft_blocks(tmp_path: Path) -> None:
    """MX-4: KRaft"""
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=x\n")
    [found] = directory_findings(tmp_path)
    assert found.blocks
    assert "KRaft" in found.what


def test_tiered_storage_and_moves_are_named(tmp_path: Path) -> None:
    """MX-4: tiered storage"""
    (tmp_path / "remote-log-index-cache").mkdir()
    (tmp_path / "t-1.abc-future").mkdir()
    tiered, moving = directory_findings(tmp_path)
    assert tiered.blocks
    assert not moving.blocks
    assert "1 replica is being moved here (t-1.abc-future)" in moving.what
