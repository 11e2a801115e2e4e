"""When the positions of files that are gone are forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas_collector.forgetting import Forgetting
from barnabas_collector.log_paths import LogPaths
from barnabas_collector.positions import Positions
from barnabas_collector.watched_logs import WatchedLogs

WEEK_S = 604_800


class Watching:
    """A collector of a directory's logs, whose hours are ours."""

    def __init__(self, *paths: Path) -> None:
        self.positions = Positions("here")
        self.forgetting = Forgetting(self.positions, WEEK_S)
        self.start(*paths)

    def start(self, *paths: Path) -> None:
        self.logs = WatchedLogs(LogPaths([*map(str, paths)]), self.positions, quiet_s=0.0)

    def look(self, now_s: int) -> list[bytes]:
        found = []
        for _ in range(2):  # the first still has the files that it held open
            for portion in self.logs.portions(now_s, is_last_look=True):
                found += [line.text for line in portion.lines]
                self.positions.save(portion.progress)
        self.forgetting.sweep(now_s, *self.logs.present())
        return found


def test_files_that_are_gone_are_forgotten_after_a_week(tmp_path: Path) -> None:
    here = Watching(tmp_path)
    for number in range(3):
        (tmp_path / f"{number}.log").write_bytes(b"line of %d\n" % number)
    assert len(here.look(1_000)) == 3
    (tmp_path / "0.log").unlink()
    (tmp_path / "1.log").rename(tmp_path / "1.log.1")
    for now_s in (2_000, 3_000, 1_999 + WEEK_S):
        assert here.look(now_s) == []
        assert len(here.positions.files) == 3
    here.positions.take_changes()
    assert here.look(2_000 + WEEK_S) == []
    assert sorted(Path(each.path).name for each in here.positions.files) == ["1.log", "2.log"]
    keys = [key for key, value in here.positions.take_changes() if value is None]
    assert len(keys) == 2, "the file and its log"
    assert not here.positions.knows(str(tmp_path / "0.log"))
    assert len(here.logs) == 3, "the renamed file is a log until its own is there again"
    (tmp_path / "0.log").write_bytes(b"line of 0\n")
    assert here.look(3_000 + WEEK_S) == [b"line of 0"]


def test_an_id_is_not_given_to_another_file(tmp_path: Path) -> None:
    here = Watching(tmp_path)
    ids = []
    for now_s in (1, 2):
        (tmp_path / "0.log").write_bytes(b"line\n")
        assert here.look(now_s * 10 * WEEK_S) == [b"line"]
        ids.append(here.positions.files[-1].file_id)
        (tmp_path / "0.log").unlink()
        here.look(now_s * 10 * WEEK_S + 1)
        here.look((now_s + 1) * 10 * WEEK_S - 1)
        assert here.positions.files == []
    assert len(set(ids)) == 2


def test_a_file_that_comes_back_in_time_is_known(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    log = tmp_path / "logs" / "0.log"
    log.write_bytes(b"line\n")
    here = Watching(tmp_path / "logs")
    assert here.look(1_000) == [b"line"]
    log.rename(tmp_path / "away")
    here.look(2_000)
    assert here.positions.files[0].gone_s == 2_000
    (tmp_path / "away").rename(log)
    assert here.look(3_000) == []
    assert here.positions.files[0].gone_s == 0
    assert here.look(9_000 + WEEK_S) == [] and here.positions.files


@pytest.mark.parametrize("is_removed", [False, True])
def test_the_files_of_logs_that_are_not_watched_now(tmp_path: Path, is_removed: bool) -> None:
    for name in ("kept", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "0.log").write_bytes(b"line\n")
    here = Watching(tmp_path / "kept", tmp_path / "other")
    assert len(here.look(1_000)) == 2
    here.logs.close()
    here.start(tmp_path / "kept")
    if is_removed:
        (tmp_path / "other" / "0.log").unlink()
        (tmp_path / "other").rmdir()
    here.look(2_000)
    here.look(2_000 + WEEK_S)
    assert len(here.positions.files) == (1 if is_removed else 2)


def test_a_clock_that_was_ahead_forgets_nothing(tmp_path: Path) -> None:
    (tmp_path / "0.log").write_bytes(b"line\n")
    here = Watching(tmp_path)
    here.look(1_000)
    (tmp_path / "0.log").unlink()
    here.look(50 * WEEK_S)
    here.look(2_000)
    here.look(1_000 + WEEK_S)
    assert here.positions.files
    here.look(2_000 + WEEK_S)
    assert not here.positions.files
