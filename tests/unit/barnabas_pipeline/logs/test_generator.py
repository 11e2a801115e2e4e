"""The made-up system logs: the same bytes for the same seed, with a story in them (UX-1)."""

from __future__ import annotations

from pathlib import Path

from barnabas_pipeline.logs.generator import generate, write_logs

LINES = 5_000


def test_it_has_the_lines_that_were_asked_for() -> None:
    assert sum(map(len, generate(LINES, seed=7).values())) == LINES
    for few in (0, 1, 7):
        assert sum(map(len, generate(few, seed=7).values())) == few


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    assert generate(LINES, seed=7) == generate(LINES, seed=7) != generate(LINES, seed=8)
    write_logs(tmp_path / "logs", LINES, seed=7)
    for name, lines in generate(LINES, seed=7).items():
        assert (tmp_path / "logs" / name).read_bytes() == b"".join(each + b"\n" for each in lines)
    assert not (tmp_path / "logs.new").exists()


def test_sp_2_what_a_pipeline_has_to_find_in_it() -> None:
    files = generate(LINES, seed=7)
    assert any(b"ERROR" in line for line in files["orders.log"])
    assert any(line.startswith(b"\tat ") for line in files["orders.log"])
    assert any(b"Remounting" in line for line in files["storage.log"])
    assert any(b"Accepted password for git from 203.0.113.18" in line for line in files["auth.log"])
    indexed = [line for line in files["search.log"] if b"search.indexer" in line]
    assert max(indexed) < b"2026-03-12 14:00"
    assert any(b"\xff" in line for lines in files.values() for line in lines)
    assert any(line.startswith(b"260231") for line in files["storage.log"])
