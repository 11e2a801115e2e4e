"""What git keeps is text that somebody can read: no binaries, nothing large."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.kit.foreign import CHECKOUT

LARGEST_BYTES = 256 * 1024
LARGER = frozenset[str]()
"""Tracked files that may be larger, each with a reason in a comment here."""


def tracked() -> list[Path]:
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout, so nothing says what belongs to it")
    paths = [CHECKOUT / name.decode() for name in listed.stdout.split(b"\0") if name]
    return [path for path in paths if path.is_file()]


def test_no_tracked_file_is_binary() -> None:
    assert [str(path) for path in tracked() if b"\0" in path.read_bytes()[:8192]] == []


def test_no_tracked_file_is_large() -> None:
    found = [
        f"{path.relative_to(CHECKOUT)}: {path.stat().st_size} bytes"
        for path in tracked()
        if path.stat().st_size > LARGEST_BYTES and str(path.relative_to(CHECKOUT)) not in LARGER
    ]
    assert found == []


def test_long_files_are_there() -> None:
    """The runner takes them first; docs/running-the-tests.md says how to find them."""
    names = (CHECKOUT / "tests" / "long_files.txt").read_text().split()
    assert [name for name in names if not (CHECKOUT / name).is_file()] == []
    assert len(set(names)) == len(names)
