"""No line is lost, however logs that begin alike are rotated, removed, truncated and compressed."""

from __future__ import annotations

import gzip
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import BinaryIO

from hypothesis import example, given, settings
from hypothesis import strategies as st

from barnabas_collector.log_paths import LogPaths
from barnabas_collector.positions import Positions
from barnabas_collector.watched_logs import WatchedLogs
from tests.kit.effort import examples

BANNERS = (
    b"",
    b"#Fields: date time\n",
    b"starting\n",
    b"".join(b"step %d of %01000d\n" % (number, 0) for number in range(5)),
    b"10:00:00 starting\n",
)
NEVER_S, AT_ONCE_S = 3600.0, 0.0
STEPS = (
    "append", "append", "rename", "copy and truncate", "truncate", "hole", "compress",
    "compress elsewhere", "make again", "look", "look", "restart", "kill",
)  # fmt: skip


class Program:
    """Writes lines of its own to a log whose files all begin with a banner, and does not append:
    behind a truncation it goes on at its old position."""

    def __init__(self, log: Path, banner: bytes) -> None:
        self.log = log
        self.written: Counter[bytes] = Counter()
        self._banner = banner
        self._number = 0
        self._archived = 0
        self._file = self._open()

    def append(self) -> None:
        self._number += 1
        self._write(b"%d of %s\n" % (self._number, self.log.name.encode()))

    def rename(self) -> None:
        self._shift()
        self.log.rename(self.rotated(1))
        self._file.close()
        self._file = self._open()

    def copy_and_truncate(self, *, is_hole: bool) -> None:
        self._shift()
        shutil.copyfile(self.log, self.rotated(1))
        self.truncate(is_hole=is_hole)

    def truncate(self, *, is_hole: bool = False) -> None:
        self._file.truncate(0)
        if not is_hole:
            self._file.seek(0)
        self._write(self._top())

    def make_again(self) -> None:
        self._file.close()
        self.log.unlink()
        self._file = self._open()

    def compress(self, *, is_elsewhere: bool) -> None:
        if (last := self.rotated(1)).exists():
            self._archived += is_elsewhere
            name = f"saved-{self._archived}-{self.log.stem}" if is_elsewhere else last.name
            packed = last.with_name(name + ".gz")
            packed.write_bytes(gzip.compress(last.read_bytes()))
            last.unlink()

    def close(self) -> None:
        self._file.close()

    def rotated(self, number: int) -> Path:
        return self.log.with_name(f"{self.log.name}.{number}")

    def _open(self) -> BinaryIO:
        self._file = self.log.open("wb", buffering=0)
        self._write(self._top())
        return self._file

    def _top(self) -> bytes:
        self._number += 1  # a time occurs once
        time = b"10:%02d:%02d" % divmod(self._number, 60)
        return self._banner.replace(b"10:00:00", time)

    def _write(self, text: bytes) -> None:
        self._file.write(text)
        self.written.update(text.splitlines())

    def _shift(self) -> None:
        for number in range(40, 0, -1):
            for suffix in ("", ".gz"):
                old = self.log.with_name(f"{self.log.name}.{number}{suffix}")
                if old.exists():
                    old.rename(self.log.with_name(f"{self.log.name}.{number + 1}{suffix}"))


class Reader:
    """A collector without a broker: what it takes is committed with its position, or neither."""

    def __init__(self, directory: Path, quiet_s: float) -> None:
        self.sent: list[bytes] = []
        self.misses_a_file = False
        self._paths = LogPaths([str(directory)])
        self._committed: dict[bytes, bytes | None] = {}
        self._start(quiet_s)

    def _start(self, quiet_s: float) -> None:
        self._quiet_s = quiet_s
        self._positions = Positions("here")
        for key, value in self._committed.items():
            self._positions.load(key, value)
        self._logs = WatchedLogs(self._paths, self._positions, quiet_s=quiet_s)

    def look(self, *, is_killed: bool = False) -> None:
        found = []
        for portion in self._logs.portions(0.0, is_last_look=True):
            found += [line.text for line in portion.lines]
            self._positions.save(portion.progress)
        if not is_killed:
            self.sent += found
            self._committed.update(self._positions.take_changes())

    def restart(self, quiet_s: float | None = None) -> None:
        self._logs.close()
        self._start(self._quiet_s if quiet_s is None else quiet_s)

    def close(self) -> None:
        self._logs.close()


# A removed file of which only a banner was sent is not distinct from one behind a hole, or moved to
# another name, that begins with this banner, also of another log: there two of them may count as
# one.
def step(name: str, program: Program, reader: Reader) -> None:
    match name:
        case "append":
            program.append()
        case "rename":
            program.rename()
        case "copy and truncate" | "hole":
            program.copy_and_truncate(is_hole=name == "hole" and not reader.misses_a_file)
        case "truncate":
            program.append()  # else it would be the same as before
            reader.look()  # else its lines are lost to every reader
            program.truncate()
        case "make again":
            reader.look()
            program.make_again()
            reader.misses_a_file = True
        case "compress":
            program.compress(is_elsewhere=False)
        case "compress elsewhere" if not reader.misses_a_file:
            reader.look()  # of a file that it has never seen nothing is known
            program.compress(is_elsewhere=True)
        case "look" | "compress elsewhere":
            reader.look()
        case "restart":
            reader.restart()
        case _:
            reader.look(is_killed=True)
            reader.restart()


@settings(max_examples=examples(150), deadline=None)
@given(
    st.sampled_from(BANNERS),
    st.sampled_from([NEVER_S, AT_ONCE_S]),
    st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 1)), max_size=25),
)
@example(BANNERS[3], NEVER_S, [("look", 0), ("append", 0), ("rename", 0), ("rename", 0)])
@example(BANNERS[3], NEVER_S, [("append", 0), ("look", 0), ("append", 0), ("hole", 0)])
@example(BANNERS[2], NEVER_S, [("look", 0), ("make again", 0), ("rename", 0), ("compress", 0)])
def test_no_line_is_lost_and_none_of_its_own_sent_twice(
    banner: bytes, quiet_s: float, steps: list[tuple[str, int]]
) -> None:
    """Each line as often as it was written, at least; the lines that occur once, once."""
    with tempfile.TemporaryDirectory() as name:
        programs = [Program(Path(name) / log, banner) for log in ("a.log", "b.log")]
        reader = Reader(Path(name), quiet_s)
        reader.look()
        for each, number in steps:
            step(each, programs[number], reader)
        reader.look()
        reader.restart(AT_ONCE_S)
        reader.look()
        reader.look()
        reader.close()
        for program in programs:
            program.close()
    sent = Counter(reader.sent)
    written = sum((program.written for program in programs), Counter[bytes]())
    missing, more = written - sent, sent - written
    assert not missing, list(missing.items())[:3]
    assert not {line for line in more if b" of " in line and not line.startswith(b"step")}
