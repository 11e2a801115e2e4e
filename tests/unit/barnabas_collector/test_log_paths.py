"""Which files are logs of their own."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest
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


TREE = [
    "app.log", "app.log.1", "notes.txt", "web/access.log", "web/error.log", "web/old/access.log",
    "web/.git/hidden.log", "cache/big.log", "db/data.log/inner.log", "alone.log.3",
]  # fmt: skip


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in TREE:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def names(paths: LogPaths, top: Path) -> list[str]:
    return [str(each.relative_to(top)) for each in paths.paths()]


EVERYTHING = [
    "alone.log.3", "app.log", "notes.txt", "cache/big.log", "db/data.log/inner.log",
    "web/access.log", "web/error.log", "web/old/access.log",
]  # fmt: skip


def test_lg_2_a_directory_is_searched_with_all_below_it(tree: Path) -> None:
    paths = LogPaths([str(tree)], is_recursive=True)
    assert names(paths, tree) == EVERYTHING
    (tree / "web" / "new").mkdir()
    (tree / "web" / "new" / "late.log").touch()
    assert "web/new/late.log" in names(paths, tree)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("**/*.log", [each for each in EVERYTHING if each.endswith(".log")]),
        ("**", EVERYTHING),
        ("web/**/access.log", ["web/access.log", "web/old/access.log"]),
        ("**/old/**/*.log", ["web/old/access.log"]),
        ("*b/**/error.log", ["web/error.log"]),
        ("app**", ["app.log"]),
    ],
)
def test_lg_2_two_stars_are_any_number_of_directories(
    tree: Path, pattern: str, found: list[str]
) -> None:
    assert sorted(names(LogPaths([f"{tree}/{pattern}"]), tree)) == sorted(found)


def test_lg_2_links_to_directories_are_not_followed_and_links_to_files_are(tree: Path) -> None:
    (tree / "web" / "loop").symlink_to(tree)
    (tree / "web" / "link.log").symlink_to(tree / "notes.txt")
    expected = sorted([*EVERYTHING, "web/link.log"])
    for paths in (LogPaths([str(tree)], is_recursive=True), LogPaths([f"{tree}/**"])):
        assert sorted(names(paths, tree)) == expected


def test_lg_2_a_search_has_a_depth(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    deep = tmp_path
    for _ in range(40):
        deep = deep / "d"
    deep.mkdir(parents=True)
    (deep / "lost.log").touch()
    (tmp_path / "app.log").touch()
    paths = LogPaths([str(tmp_path)], is_recursive=True)
    with caplog.at_level(logging.WARNING):
        assert names(paths, tmp_path) == ["app.log"] == names(paths, tmp_path)
    assert len(caplog.messages) == 1 and "more than 32 levels" in caplog.messages[0]


@pytest.mark.parametrize(
    ("include", "exclude", "found"),
    [
        (["*.log"], [], [each for each in EVERYTHING if each != "notes.txt"]),
        (["access.log", "*.txt"], [], ["notes.txt", "web/access.log", "web/old/access.log"]),
        (["web/*"], ["old"], ["web/access.log", "web/error.log"]),
        ([], ["*.log"], ["notes.txt"]),
        (["*.log"], ["/*/cache", "web/old/"],
         ["alone.log.3", "app.log", "db/data.log/inner.log", "web/access.log", "web/error.log"]),
    ],
)  # fmt: skip
def test_lg_2_what_is_included_and_not_excluded(
    tree: Path, include: list[str], exclude: list[str], found: list[str]
) -> None:
    paths = LogPaths([str(tree)], include=include, exclude=exclude, is_recursive=True)
    assert names(paths, tree) == found


def test_lg_2_between_a_renaming_and_the_new_log_the_patterns_hold(tree: Path) -> None:
    """The rotated file is listed alone then."""
    excluding = LogPaths([str(tree)], exclude=["app.log"])
    including = LogPaths([str(tree)], include=["app.log"])
    assert names(excluding, tree) == ["alone.log.3", "notes.txt"]
    (tree / "app.log").rename(tree / "app.log.1")
    assert names(excluding, tree) == ["alone.log.3", "notes.txt"]
    assert names(including, tree) == ["app.log.1"]


def test_lg_2_a_file_that_is_an_argument_needs_no_pattern(tree: Path) -> None:
    paths = LogPaths([f"{tree}/notes.txt", str(tree)], include=["app*"], exclude=["*.txt"])
    assert names(paths, tree) == ["notes.txt", "app.log"]
