"""Rotated files beside logs, in directories that change and in those that rest."""

from __future__ import annotations

import os
from pathlib import Path

from barnabas_collector.listings import Listings


def test_a_directory_that_rests_is_not_listed_again(tmp_path: Path) -> None:
    """UX-4: a look at one of ten thousand logs must not read ten thousand names."""
    log, rotated = tmp_path / "app.log", tmp_path / "app.log.1"
    log.touch()
    rotated.touch()
    (tmp_path / "other.log").touch()
    os.utime(tmp_path, ns=(0, 1_000_000_000))
    listings = Listings()
    expected = {"app.log.1": rotated.stat().st_ino}
    assert listings.rotated_files(log) == expected
    rotated.rename(tmp_path / "app.log.2")
    os.utime(tmp_path, ns=(0, 1_000_000_000))  # as if nothing had happened
    assert listings.rotated_files(log) == expected
    assert listings.rotated_files(tmp_path / "other.log") == {}
    os.utime(tmp_path, ns=(0, 2_000_000_000))
    assert list(listings.rotated_files(log)) == ["app.log.2"]


def test_what_changes_within_a_tick_is_seen(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    listings = Listings()
    changed_ns = tmp_path.stat().st_mtime_ns
    for number in range(5):
        (tmp_path / f"app.log.{number}").touch()
        os.utime(tmp_path, ns=(changed_ns, changed_ns + 3_600_000_000_000))
        assert len(listings.rotated_files(log)) == number + 1


def test_a_directory_that_is_none_has_no_files(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert Listings().rotated_files(tmp_path / "missing" / "app.log") == {}
    assert Listings().rotated_files(tmp_path / "file" / "app.log") == {}
