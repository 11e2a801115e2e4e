"""What the logs of a directory give to send, however their files come and go."""

from __future__ import annotations

import bz2
import gzip
import logging
import lzma
import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import cramjam
import pytest

from barnabas_collector.log_paths import LogPaths
from barnabas_collector.positions import Positions
from barnabas_collector.watched_logs import WatchedLogs

PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda text: bytes(cramjam.zstd.compress(text)),
}
SIZES = (1, 4_095, 4_096, 4_097, 70_000, 1_100_000)


class Collection:
    """Runs over a directory; what each returns is sent."""

    def __init__(
        self,
        directory: Path,
        *paths: str,
        quiet_s: float = 60.0,
        ignore_older_s: float | None = None,
        from_end: bool = False,
    ) -> None:
        self.directory = directory
        self.positions = Positions("here")
        self._paths = LogPaths(paths or [str(directory)], ignore_older_s=ignore_older_s)
        self._quiet_s = quiet_s
        self._from_end = from_end
        self.logs = self._watched()

    def _watched(self) -> WatchedLogs:
        return WatchedLogs(
            self._paths, self.positions, quiet_s=self._quiet_s, from_end=self._from_end
        )

    def look(self) -> list[bytes]:
        found = []
        for portion in self.logs.portions(0.0, is_last_look=True):
            found += [line.text for line in portion.lines]
            self.positions.save(portion.progress)
        return found

    def restart(self) -> None:
        """What was saved is loaded by another process."""
        self.logs.close()
        again = Positions("here")
        for key, value in self.positions.take_changes():
            again.load(key, value)
        for file in self.positions.files:
            again.save(file)
        self.positions = again
        self.logs = self._watched()


@pytest.fixture
def here(tmp_path: Path) -> Collection:
    return Collection(tmp_path)


def banner(size_bytes: int) -> bytes:
    text = b"".join(
        b"step %d of %01000d\n" % (number, 0) for number in range(size_bytes // 1000 + 1)
    )
    return text[: size_bytes - 1] + b"\n"


def check(found: list[bytes], expected: Counter[bytes]) -> None:
    """Shows few lines of a difference: of all of them pytest would take minutes to show it."""
    sent = Counter(found)
    missing, more = expected - sent, sent - expected
    assert not missing and not more, (list(missing.items())[:5], list(more.items())[:5])


def lines(*texts: bytes) -> Counter[bytes]:
    return Counter(line for text in texts for line in text.split(b"\n")[:-1])


@pytest.mark.parametrize("size_bytes", SIZES)
def test_logs_that_begin_alike_are_all_read(here: Collection, size_bytes: int) -> None:
    top = banner(size_bytes)
    first = [top + b"end of %d\n" % number for number in range(4)] + [top]
    for number, text in enumerate(first):
        (here.directory / f"{number}.log").write_bytes(text)
    check(here.look(), lines(*first))
    here.restart()
    for number in range(5):
        log = here.directory / f"{number}.log"
        with log.open("ab") as file:
            file.write(b"late\n")
        log.rename(here.directory / f"{number}.log.1")
        log.write_bytes(top + b"new\n")
    check(here.look(), lines(b"late\n" * 5, (top + b"new\n") * 5))
    assert here.look() == []


@pytest.mark.parametrize("size_bytes", SIZES[::2])
@pytest.mark.parametrize("suffix", PACK)
def test_rotated_files_that_begin_alike_are_read_compressed(
    here: Collection, size_bytes: int, suffix: str
) -> None:
    """Several rotations while no collector runs, of which it has seen no file but the first."""
    top, log = banner(size_bytes), here.directory / "app.log"
    log.write_bytes(top + b"0\n")
    check(here.look(), lines(top + b"0\n"))
    here.restart()
    texts = [top + b"0\n1\n", top, top + b"2\n", top + b"3\n"]
    log.unlink()
    for number, text in zip((3, 2, 1), texts, strict=False):
        (here.directory / f"app.log.{number}{suffix}").write_bytes(PACK[suffix](text))
    log.write_bytes(texts[3])
    check(here.look(), lines(b"1\n", *texts[1:]))
    here.restart()
    assert here.look() == []


@pytest.mark.parametrize("size_bytes", SIZES)
def test_a_truncated_log_that_begins_alike(here: Collection, size_bytes: int) -> None:
    top, log = banner(size_bytes), here.directory / "app.log"
    log.write_bytes(top + b"0\n")
    here.look()
    with log.open("ab") as file:
        file.write(b"1\n")
    shutil.copyfile(log, here.directory / "app.log.1")
    with log.open("r+b") as file:
        file.truncate()
        file.write(top + b"2\nand more than there was\n")
    check(here.look(), lines(b"1\n", top + b"2\nand more than there was\n"))


@pytest.mark.parametrize("size_bytes", SIZES)
@pytest.mark.parametrize("is_away", [True, False])
def test_a_log_that_was_removed_and_made_again(
    here: Collection, size_bytes: int, is_away: bool
) -> None:
    """It begins with all that was sent of the old one; the inode is used again, or not."""
    text, log = banner(size_bytes), here.directory / "app.log"
    log.write_bytes(text)
    here.look()
    if is_away:
        here.restart()
    log.unlink()
    log.write_bytes(text + b"more\n")
    check(here.look(), lines(text + b"more\n"))


def test_a_log_with_times_that_was_replaced_by_a_longer_copy(here: Collection) -> None:
    log = here.directory / "app.log"
    log.write_bytes(b"10:00:00 a\n")
    here.look()
    here.restart()
    (here.directory / ".new").write_bytes(b"10:00:00 a\n10:00:01 b\n")
    (here.directory / ".new").rename(log)
    assert here.look() == [b"10:00:01 b"]


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("name", ["saved-by-night", "app-1.log", "app.log.1", "elsewhere.log"])
def test_a_file_compressed_under_any_name_is_sent_once(
    here: Collection, suffix: str, name: str
) -> None:
    log = here.directory / "app.log"
    log.write_bytes(b"one\ntwo\n")
    here.look()
    here.restart()
    (here.directory / (name + suffix)).write_bytes(PACK[suffix](b"one\ntwo\nthree\n"))
    log.write_bytes(b"four\n")
    check(here.look(), Counter([b"three", b"four"]))
    here.restart()
    assert here.look() == []


def test_a_compressed_file_under_a_name_of_its_own_is_sent(here: Collection) -> None:
    log = here.directory / "app.log"
    log.write_bytes(b"one\ntwo\n")
    here.look()
    (here.directory / "other.gz").write_bytes(gzip.compress(b"one\ntwo\nthree\n"))
    assert here.look() == [b"one", b"two", b"three"], "the log is still there"


def test_history_is_left_with_a_line(here: Collection, caplog: pytest.LogCaptureFixture) -> None:
    (here.directory / "app.log.2.gz").write_bytes(gzip.compress(b"0\n"))
    (here.directory / "app.log.1").write_bytes(b"1\n")
    (here.directory / "app.log").write_bytes(b"2\n")
    with caplog.at_level(logging.WARNING):
        assert here.look() == [b"2"]
    (said,) = [each for each in caplog.messages if "first scan" in each]
    assert f"'{here.directory}/app*'" in said and "2 rotated files" in said
    caplog.clear()
    here.restart()
    assert here.look() == [] and not caplog.messages
    named = Collection(here.directory, f"{here.directory}/app*")
    assert named.look() == [b"0", b"1", b"2"]
    named.positions, again = here.positions, named
    again.logs = again._watched()
    assert again.look() == [b"0", b"1"], "also later"


def test_a_path_names_history_too(tmp_path: Path) -> None:
    for number, name in enumerate(("app.log.2", "app.log.1", "app.log")):
        (tmp_path / name).write_bytes(b"%d\n" % number)
    here = Collection(tmp_path, f"{tmp_path}/app.log.1", f"{tmp_path}/app.log")
    assert here.look() == [b"1", b"2"]


@pytest.mark.thorough
@pytest.mark.parametrize("hole_bytes", [4, 60, 5_000, 3_000_000, 9_000_000])
def test_a_log_that_goes_on_behind_a_hole(here: Collection, hole_bytes: int) -> None:
    log = here.directory / "app.log"
    writer = log.open("wb", buffering=0)
    text = b"x" * (hole_bytes - 1) + b"\n"
    if hole_bytes < 1_000_000:
        writer.write(text)
        here.look()
    writer.seek(hole_bytes)
    os.truncate(log, 0)
    for number in range(3):
        writer.write(b"line %d\n" % number)
        assert here.look() == [b"line %d" % number]
        if number == 1:
            here.restart()
    writer.close()
    shutil.copyfile(log, here.directory / "app.log.1")
    log.write_bytes(b"new\n")
    assert here.look() == [b"new"]
    (here.directory / "app.log.1.gz").write_bytes(
        gzip.compress((here.directory / "app.log.1").read_bytes())
    )
    (here.directory / "app.log.1").unlink()
    assert here.look() == []


def test_logs_with_holes_at_their_beginnings_are_all_read(here: Collection) -> None:
    for number in range(3):
        with (here.directory / f"{number}.log").open("wb") as file:
            file.seek(100_000)
            file.write(b"line of %d\n" % number)
            file.seek(500_000)
            file.write(b"more of %d\n" % number)
    assert sorted(here.look()) == sorted(
        b"%s of %d" % (what, number) for number in range(3) for what in (b"line", b"more")
    )


def test_a_preallocated_log_that_is_filled(here: Collection) -> None:
    log = here.directory / "app.log"
    log.write_bytes(b"one\n" + b"\0" * 100_000)
    assert here.look() == [b"one"]
    with log.open("r+b") as file:
        file.seek(4)
        file.write(b"two\n")
    assert here.look() == [b"two"]
    here.restart()
    with log.open("r+b") as file:
        file.seek(8)
        file.write(b"three\n")
    assert here.look() == [b"three"]


BINARY: dict[str, bytes] = {
    "wtmp": b"".join(b"\7\0\0\0" + b"pts/%d\n" % n + b"\0" * 300 + b"root" for n in range(40)),
    "tool": b"\x7fELF\2\1\1" + b"text\n" * 900,
    "site.db": b"SQLite format 3\0" + b"text\n" * 900,
    "old.zip": b"PK\x03\x04text\n",
    "noise": bytes(range(256)) * 16,
    "backup.tar.gz": gzip.compress(b"name".ljust(257, b"\0") + b"ustar\n" * 50),
    "noise.zst": bytes(cramjam.zstd.compress(bytes(range(256)) * 16)),
}


@pytest.mark.parametrize("name", BINARY)
def test_lg_2_a_binary_file_is_left_out(
    here: Collection, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Its bytes are no lines, whatever a directory or a pattern finds; it is logged once."""
    (here.directory / name).write_bytes(BINARY[name])
    (here.directory / "app.log").write_bytes(b"one\n")
    with caplog.at_level(logging.WARNING):
        assert here.look() == [b"one"]
        os.utime(here.directory / name)
        assert here.look() == []
    assert [each for each in caplog.messages if "binary" in each] == [
        f"not sending 1 binary file: {here.directory / name}; to send one as lines, name it"
    ]
    named = Collection(here.directory, str(here.directory / name), f"{here.directory}/*")
    assert len(named.look()) > 1, "the user named it"


def test_lg_2_a_rotated_binary_file_is_left_out_and_what_follows_it_is_sent(
    here: Collection,
) -> None:
    log = here.directory / "state"
    log.write_bytes(BINARY["wtmp"])
    patterns = Collection(here.directory, f"{here.directory}/*")
    assert patterns.look() == []
    log.rename(here.directory / "state.1")
    log.write_bytes(b"now it is text\n")
    assert patterns.look() == [b"now it is text"]


@pytest.mark.parametrize(
    "text",
    [
        b"a stray \0 in a log of one line\n",
        b"\0" * 3_000 + b"after a hole\n",
        b"before a hole\n" + b"\0" * 300 + b"after it\n",
        b"\x1b[31mERROR\x1b[0m in colour\n" * 90,
        "ошибка\n".encode("koi8-r") * 90,
        "\N{BYTE ORDER MARK}UTF-16 of Windows\n".encode("utf-16-le"),
        b"\xff" * 9 + b"\n",
    ],
)
def test_lg_2_text_of_any_encoding_is_sent(here: Collection, text: bytes) -> None:
    (here.directory / "app.log").write_bytes(text)
    assert here.look()


def test_lg_2_from_the_end_only_what_is_written_later_is_sent(tmp_path: Path) -> None:
    """A later file is sent from its beginning, and a restart changes nothing."""
    here = Collection(tmp_path, from_end=True)
    log, long = tmp_path / "app.log", tmp_path / "long.log"
    log.write_bytes(b"old\nunfin")
    long.write_bytes(banner(70_000_000))
    (tmp_path / "older.log.gz").write_bytes(gzip.compress(b"old\n"))
    (tmp_path / "empty.log").touch()
    with log.open("ab"):  # so that the unfinished line waits
        assert here.look() == []
    here.restart()
    for path, text in ((log, b"ished\nnew\n"), (long, b"more\n"), (tmp_path / "empty.log", b"1\n")):
        with path.open("ab") as file:
            file.write(text)
    (tmp_path / "later.log").write_bytes(b"first\n")
    assert sorted(here.look()) == [b"1", b"first", b"more", b"new", b"unfinished"]
    here.restart()
    log.rename(tmp_path / "app.log.1")
    (tmp_path / "app.log.1.gz").write_bytes(
        gzip.compress((tmp_path / "app.log.1").read_bytes() + b"rotated\n")
    )
    (tmp_path / "app.log.1").unlink()
    log.write_bytes(b"fresh\n")
    assert here.look() == [b"rotated", b"fresh"]
    assert here.look() == []


def test_lg_2_from_the_end_of_nothing_all_files_are_later_ones(tmp_path: Path) -> None:
    here = Collection(tmp_path, from_end=True)
    assert here.look() == []
    here.restart()
    (tmp_path / "app.log").write_bytes(b"one\n")
    assert here.look() == [b"one"]


def test_lg_2_a_collector_that_has_looked_continues_whatever_the_end(tmp_path: Path) -> None:
    (tmp_path / "app.log").write_bytes(b"one\n")
    here = Collection(tmp_path)
    assert here.look() == [b"one"]
    here._from_end = True
    here.restart()
    (tmp_path / "app.log").write_bytes(b"one\ntwo\n")
    (tmp_path / "other.log").write_bytes(b"three\n")
    assert here.look() == [b"two", b"three"]


def test_lg_2_an_old_file_is_ignored_until_it_is_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """But not one of which something was sent: the rest of it would be lost."""
    here = Collection(tmp_path, ignore_older_s=86_400.0)
    old, known = tmp_path / "old.log", tmp_path / "known.log"
    known.write_bytes(b"1\n")
    old.write_bytes(b"long ago\n")
    os.utime(old, (0, 0))
    with caplog.at_level(logging.WARNING):
        assert here.look() == [b"1"]
        with known.open("ab") as file:
            file.write(b"2\n")
        os.utime(known, (0, 0))
        here.restart()
        assert here.look() == [b"2"]
    (said,) = {each for each in caplog.messages if "--ignore-older" in each}
    assert said.startswith("ignoring 1 file ") and said.endswith(f"such as {old}")
    with old.open("ab") as file:
        file.write(b"and now\n")
    assert here.look() == [b"long ago", b"and now"]


def test_lg_2_old_rotated_files_are_ignored_even_if_they_are_named(tmp_path: Path) -> None:
    for age_days, name in enumerate(("app.log", "app.log.1", "app.log.2")):
        (tmp_path / name).write_bytes(name.encode() + b"\n")
        then_s = (tmp_path / name).stat().st_mtime - age_days * 86_400
        os.utime(tmp_path / name, (then_s, then_s))
    here = Collection(tmp_path, f"{tmp_path}/app.log*", ignore_older_s=1.5 * 86_400)
    assert here.look() == [b"app.log.1", b"app.log"]
    assert here.look() == []


@pytest.mark.parametrize("name", ["app.log", "app.log.1"])
def test_lg_2_a_pipe_in_a_log_s_place_keeps_no_other_log_waiting(
    here: Collection, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    """Nobody writes to the pipe, so a plain opening would wait forever."""
    log, pipe = here.directory / "app.log", here.directory / name
    log.write_bytes(b"one\n")
    assert here.look() == [b"one"]
    log.rename(here.directory / "app.log.2")
    os.mkfifo(pipe)
    (here.directory / "other.log").write_bytes(b"other\n")
    assert here.look() == [b"other"]
    if pipe != log:
        log.write_bytes(b"")
        here.look()
    assert f"cannot read {pipe}: it is not a regular file" in caplog.text
    pipe.unlink()
    log.write_bytes(b"two\n")
    assert here.look() == [b"two"]


def test_lg_2_a_link_that_leads_to_the_newest_of_dated_files(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As cronolog does; files are written, and the link is moved twice, while no collector runs."""
    here = Collection(tmp_path)
    link = tmp_path / "app.log"
    (tmp_path / "app-2026-11-01.log").write_bytes(b"history\n")
    sent = []
    for number in range(4):
        day = tmp_path / f"app-2026-11-0{number + 2}.log"
        day.write_bytes(b"first of %d\n" % number)
        link.unlink(missing_ok=True)
        link.symlink_to(day.name)
        if number != 2:
            sent += here.look()
            here.restart()
        with day.open("ab") as file:
            file.write(b"last of %d\n" % number)
    sent += here.look()
    assert sent == [
        text % number for number in range(4) for text in (b"first of %d", b"last of %d")
    ]
    assert "not sending 1 rotated file" in caplog.text


@pytest.mark.parametrize("is_compressed", [False, True])
def test_lg_2_a_log_whose_place_a_link_takes_is_read_to_its_end(
    tmp_path: Path, is_compressed: bool
) -> None:
    """The log is rotated while no collector runs, and lies next to the link from then on."""
    (logs := tmp_path / "logs").mkdir()
    here = Collection(logs)
    log, target = logs / "app.log", tmp_path / "target"
    log.write_bytes(b"one\n")
    assert here.look() == [b"one"]
    with log.open("ab") as file:
        file.write(b"two\n")
    rotated = log.rename(logs / "app.log.1")
    if is_compressed:
        (logs / "app.log.1.gz").write_bytes(gzip.compress(rotated.read_bytes()))
        rotated.unlink()
    target.write_bytes(b"three\n")
    log.symlink_to(target)
    here.restart()
    assert here.look() == [b"two", b"three"]
    here.restart()
    assert here.look() == []


def test_lg_2_a_log_that_cannot_be_read_does_not_keep_its_rotated_file_waiting(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The rotated file may be removed before the log can be read."""
    log = tmp_path / "app.log"
    here = Collection(tmp_path, str(log))
    log.write_bytes(b"one\n")
    assert here.look() == [b"one"]
    with log.open("ab") as file:
        file.write(b"two\n")
    rotated = log.rename(tmp_path / "app.log.1")
    log.mkdir()
    assert here.look() == [b"two"]
    assert f"cannot read {log}: it is a directory" in caplog.text
    assert here.logs.unreadable
    rotated.unlink()
    log.rmdir()
    log.write_bytes(b"three\n")
    assert here.look() == [b"three"]
    assert not here.logs.unreadable
