"""Which files are logs of their own."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from barnabas_collector.log_paths import LogPaths
from barnabas_collector.siblings import log_names, siblings

NAMES = [
    "app.log", "app.log.1", "app.log.2.gz", "app-20261123.log", "app.log-20261122", "app.log.old",
    "syslog", "syslog.1", "alone.log.3", "nova.log.gz", "notes.txt", ".hidden.log", "7",
]  # fmt: skip


def test_rotated_files_are_parts_of_their_logs(tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / name).touch()
    (tmp_path / "directory.log").mkdir()
    logs = ["7", "alone.log.3", "app.log", "notes.txt", "nova.log.gz", "syslog"]
    assert [each.name for each in LogPaths([str(tmp_path)]).paths()] == logs
    fitting = LogPaths([f"{tmp_path}/*log*", f"{tmp_path}/7", f"{tmp_path}/app.log"]).paths()
    assert [each.name for each in fitting] == [
        "alone.log.3", "app.log", "nova.log.gz", "syslog", "7"
    ]  # fmt: skip


def test_a_directory_is_listed_again_when_it_has_changed(tmp_path: Path) -> None:
    paths = LogPaths([str(tmp_path / "later")])
    assert paths.paths() == [tmp_path / "later"], "a file that is to come, perhaps"
    (tmp_path / "later").mkdir()
    assert paths.paths() == []
    (tmp_path / "later" / "a.log").touch()
    assert paths.paths() == [tmp_path / "later" / "a.log"]
    (tmp_path / "later" / "a.log").rename(tmp_path / "later" / "b.log")
    assert paths.paths() == [tmp_path / "later" / "b.log"]


def test_what_comes_within_a_tick_of_a_look_is_found(tmp_path: Path) -> None:
    paths = LogPaths([str(tmp_path)])
    changed_ns = tmp_path.stat().st_mtime_ns + 3_600_000_000_000
    for number in range(5):
        (tmp_path / f"app-{number}.log").touch()
        os.utime(tmp_path, ns=(changed_ns, changed_ns))
        assert len(paths.paths()) == number + 1


def test_a_directory_that_rests_is_not_listed_again(tmp_path: Path) -> None:
    (tmp_path / "a.log").touch()
    os.utime(tmp_path, ns=(0, 1_000_000_000))
    paths = LogPaths([str(tmp_path)])
    assert paths.paths() == [tmp_path / "a.log"]
    (tmp_path / "a.log").rename(tmp_path / "b.log")
    os.utime(tmp_path, ns=(0, 1_000_000_000))  # as if nothing had happened
    assert paths.paths() == [tmp_path / "a.log"]
    os.utime(tmp_path, ns=(0, 2_000_000_000))
    assert paths.paths() == [tmp_path / "b.log"]


PARTS = ["app", ".log", ".1", "-20261123", ".old", ".gz", "_2", ".2026-11-23", "7", "-", "."]


@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=5).map("".join))
def test_the_logs_of_a_name_have_it_among_their_siblings(name: str) -> None:
    for log in log_names(name):
        assert siblings(log, [name]) == [name]


@given(
    st.lists(st.sampled_from(PARTS), min_size=1, max_size=3).map("".join),
    st.sampled_from([".1", "-20261123", ".old", ".gz", ".3.gz", "_2", ".2026-11-23.gz"]),
)
def test_every_log_is_found_from_its_rotated_files(log: str, end: str) -> None:
    assert siblings(log, [log + end]) != [log + end] or log in log_names(log + end)
