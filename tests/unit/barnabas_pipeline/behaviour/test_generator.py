"""The made-up access log: the same bytes for the same seed, with what real logs have in them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from barnabas_pipeline.behaviour.generator import generate, write_log

LINES = 20_000


@pytest.fixture(scope="module")
def log() -> list[bytes]:
    return list(generate(LINES, seed=7))


def test_it_has_the_lines_that_were_asked_for(log: list[bytes]) -> None:
    """UX-1: `make run` brings its own input."""
    assert len(log) == LINES
    assert len(list(generate(1, seed=7))) == 1


@pytest.mark.thorough
def test_the_same_seed_gives_the_same_bytes(log: list[bytes]) -> None:
    assert list(generate(LINES, seed=7)) == log
    assert list(generate(LINES, seed=8)) != log


def test_the_file_is_the_lines(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    write_log(path, 500, seed=7)
    assert len(path.read_bytes().splitlines()) >= 500 - 10  # empty lines among them
    write_log(tmp_path / "again.log", 500, seed=7)
    assert path.read_bytes() == (tmp_path / "again.log").read_bytes()


def test_it_holds_robots_errors_equal_and_malformed_lines(log: list[bytes]) -> None:
    """SP-2: what a pipeline has to be right about."""
    text = b"\n".join(log)
    assert b"bot" in text.lower()
    assert b'" 404 ' in text and b'" 200 ' in text
    assert max(Counter(log).values()) > 1, "equal lines that are different hits"
    assert any(b'"' not in line for line in log), "lines that are no access log"

    def is_utf_8(line: bytes) -> bool:
        try:
            line.decode()
        except UnicodeDecodeError:
            return False
        return True

    assert not all(map(is_utf_8, log)), "a broken encoding"
