"""A disk that tears writes, forgets what was not synced, or refuses a call (ST-8, ST-10).

Each fault is tried at every place of a log's life where it can strike. Afterwards the log is opened
on a disk that works: it has to be valid, and everything that was acknowledged has to be there,
except what a power cut may take, which is what was not flushed.
"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

import pytest

from barnabas.config import LogConfig
from barnabas.errors import ConfigError
from barnabas.records.record import iterate_records
from barnabas.storage.files import Bytes, Entry, File
from barnabas.storage.log import Log
from barnabas.storage.store import LogStore
from barnabas.types import TopicPartition
from tests.kit.effort import places
from tests.kit.storage.disk import CRASHED, QuickFiles, append, batch, open_at, read

NAME = TopicPartition("t", 0)
CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=50, retention_ms=-1)


class Torn(BaseException):
    """The power went in the middle of a write."""


class FaultyFiles(QuickFiles):
    """Calls `strike` before each call, with what it is and how many bytes it writes."""

    __slots__ = ("strike",)

    def __init__(self, strike: Callable[[str, int], int | None]) -> None:
        self.strike = strike
        """Returns how many bytes of a write get through; None for all. Or raises."""

    def open(self, path: Path, *, create: bool = False) -> File:
        self.strike("open", 0)
        return FaultyFile(self, super().open(path, create=create))

    def read(self, path: Path) -> bytes:
        self.strike("read", 0)
        return super().read(path)

    def write(self, path: Path, data: bytes, *, sync: bool = False) -> None:
        self.strike("write", 0)
        super().write(path, data)

    def replace(self, source: Path, target: Path) -> None:
        self.strike("replace", 0)
        super().replace(source, target)

    def remove(self, path: Path) -> None:
        self.strike("remove", 0)
        super().remove(path)

    def make_directory(self, path: Path) -> None:
        self.strike("make", 0)
        super().make_directory(path)

    def list(self, path: Path) -> list[Entry]:
        self.strike("list", 0)
        return super().list(path)

    def sync(self, path: Path) -> None:
        self.strike("sync", 0)
        super().sync(path)


class FaultyFile:
    def __init__(self, disk: FaultyFiles, file: File) -> None:
        self._disk = disk
        self._file = file
        self.acquire, self.release, self.fileno = file.acquire, file.release, file.fileno
        self.is_cached, self.warm = file.is_cached, file.warm

    def pread(self, size: int, position: int) -> bytes:
        self._disk.strike("pread", 0)
        return self._file.pread(size, position)

    def size(self) -> int:
        self._disk.strike("size", 0)
        return self._file.size()

    def truncate(self, size: int) -> None:
        self._disk.strike("truncate", 0)
        self._file.truncate(size)

    def write(self, position: int, data: Bytes) -> None:
        room = self._disk.strike("pwrite", len(data))
        if room is not None:
            self._file.write(position, memoryview(data)[:room])
            raise Torn
        self._file.write(position, data)

    def writev(self, position: int, buffers: Sequence[Bytes]) -> None:
        self.write(position, b"".join(buffers))


def _check(log: Log, at_least: int, at_most: int) -> None:
    """A valid log of one-record batches of producer 9, as `_Life` writes them."""
    end = log.log_end_offset
    assert at_least <= end <= at_most
    start = log.log_start_offset
    found = [each.offset for each in iterate_records(read(log, start))]
    assert found == list(range(start, end))
    for offset in range(start, end):
        assert next(iterate_records(read(log, offset, max_bytes=1))).offset == offset
    if end > start:
        again = append(log, batch(1, 100, producer=(9, 0, end - 1)))
        assert (again.is_duplicate, again.base_offset) == (True, end - 1)
    assert append(log, batch(1, 100, producer=(9, 0, end))).base_offset == end


# --- a write that is cut -------------------------------------------------------------------------


def test_st_8_a_write_is_cut_at_every_byte(tmp_path: Path) -> None:
    """Three batches are written at once; whatever arrives, the log ends with a whole one."""
    sizes = [len(batch(1, 30, producer=(9, 0, i))) for i in range(3)]
    is_torn: list[int] = []

    def strike(what: str, size: int) -> int | None:
        return is_torn.pop() if is_torn and what == "pwrite" else None

    for cut in places(sum(sizes)):
        directory = tmp_path / str(cut)
        directory.mkdir()
        files = FaultyFiles(strike)
        log = open_at(directory, files=files)
        append(log, batch(1, 100, producer=(9, 0, 0)))
        for i in range(1, 4):
            log.append(memoryview(batch(1, 30, producer=(9, 0, i))), 0, 0)
        is_torn.append(cut)
        with pytest.raises(Torn):
            log.write_staged()
        log.release()
        whole = sum(cut >= sum(sizes[: i + 1]) for i in range(3))
        _check(open_at(directory, start=CRASHED), 1 + whole, 1 + whole)
        shutil.rmtree(directory)


# --- a disk that refuses -------------------------------------------------------------------------


class Life:
    """Appends, rolls, snapshots, flushes, checkpoints, retention and a stop, twice."""

    def __init__(self, files: QuickFiles, directory: Path) -> None:
        self.files = files
        self.directory = directory
        self.acknowledged = 0
        self.flushed = 0
        self.sent = 0

    def run(self) -> None:
        """Returns at the end, or when the disk has refused: the broker goes on without it."""
        store = None
        try:
            for _ in range(2):
                store = self._open()
                log = store.logs.get(NAME) or store.create(NAME, bytes(16), CONFIG)
                log.config = CONFIG
                log.assign_leader_epoch(log.epochs.latest + 1)
                self._append(log, 7)
                log.take_flush()()
                self.flushed = log.recovery_point
                store.checkpoint_recovery_points()
                self._append(log, 4)
                store.checkpoint_high_watermarks({NAME: log.log_end_offset})
                log.config = CONFIG._replace(retention_bytes=1200)
                log.enforce_retention(10**13, log.log_end_offset, 10**13)
                log.remove_discarded(10**14)
                self._append(log, 2)
                for flush in log.take_unflushed():
                    flush()
                store.close()
        except (OSError, ConfigError):
            if store is not None:
                log = store.logs.get(NAME)  # type: ignore[assignment]
                if log is not None and log.health.is_failed:
                    with pytest.raises(OSError, match=r"refused|an earlier write failed"):
                        log.read(log.log_start_offset, 1, log.log_end_offset)
                store.fail_directory(self.directory, OSError(errno.EIO, "gone"))
        except Torn:
            if store is not None:
                store.release()
            raise

    def _open(self) -> LogStore:
        return LogStore.open(self.files, [self.directory], config=CONFIG, broker_id=0, now_ms=0)

    def _append(self, log: Log, count: int) -> None:
        for i in range(count):
            self.sent += 1
            sequence = log.log_end_offset
            records = batch(1, 100, producer=(9, 0, sequence))
            log.append(memoryview(records), log.epochs.latest, 0)
            if i % 3 != 1:  # else it waits for the next one
                log.write_staged()
                self.acknowledged = log.log_end_offset
        log.write_staged()
        self.acknowledged = log.log_end_offset


def _refusing(at: int, error: int) -> FaultyFiles:
    calls = 0

    def strike(what: str, size: int) -> int | None:
        nonlocal calls
        calls += 1
        if calls == at:
            raise OSError(error, "the disk refuses", what)
        return None

    return FaultyFiles(strike)


def _count_calls(directory: Path) -> int:
    calls = 0

    def strike(what: str, size: int) -> int | None:
        nonlocal calls
        calls += 1
        return None

    life = Life(FaultyFiles(strike), directory)
    life.run()
    assert life.acknowledged == 26
    return calls


@pytest.mark.slow
@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_st_10_the_disk_refuses_each_call_of_a_life(tmp_path: Path, error: int) -> None:
    """Every call of an append, a roll, a snapshot, a flush, a checkpoint, retention and a stop."""
    total = _count_calls(tmp_path / "whole")
    assert total > 250
    for at in range(1, total + 1):
        directory = tmp_path / str(at)
        life = Life(_refusing(at, error), directory)
        life.run()
        store = LogStore.open(QuickFiles(), [directory], config=CONFIG, broker_id=0, now_ms=0)
        log = store.logs.get(NAME)
        if log is None:
            assert life.acknowledged == 0, at
        else:
            # What was on its way when the disk refused may have arrived.
            _check(log, life.acknowledged, life.acknowledged + 2)
        store.close()
        shutil.rmtree(directory)


# --- a power cut ---------------------------------------------------------------------------------


class ForgetfulFiles(QuickFiles):
    """Knows what a power cut may take: of each file, what came after its last sync."""

    __slots__ = ("durable",)

    def __init__(self) -> None:
        self.durable: dict[Path, bytes] = {}

    def open(self, path: Path, *, create: bool = False) -> File:
        self.durable.setdefault(path, b"")
        return super().open(path, create=create)

    def write(self, path: Path, data: bytes, *, sync: bool = False) -> None:
        super().write(path, data)
        self.durable[path] = data if sync else b""

    def replace(self, source: Path, target: Path) -> None:
        super().replace(source, target)
        if source in self.durable:
            self.durable[target] = self.durable.pop(source)

    def remove(self, path: Path) -> None:
        super().remove(path)
        self.durable.pop(path, None)

    def sync(self, path: Path) -> None:
        super().sync(path)
        if path.is_file():
            self.durable[path] = path.read_bytes()

    def cut_power(self, random: Random) -> None:
        """Every file loses a part of what was not synced: nothing, all, or some of its end."""
        for path, durable in self.durable.items():
            if path.name == ".lock" or not path.exists():
                continue
            now = path.read_bytes()
            if now != durable:
                keeps = len(durable) if now.startswith(durable) else 0
                cut = random.choice([keeps, len(now), random.randint(keeps, len(now))])
                left = now[:cut]
                if random.random() < 0.3:
                    left += bytes(random.randint(0, len(now) - cut))  # allocated, never written
                path.write_bytes(left)


def _moments() -> Iterator[int]:
    """After how many calls the power goes."""
    yield from range(1, 330, 2)


@pytest.mark.slow
def test_st_8_what_was_flushed_outlives_a_power_cut(tmp_path: Path) -> None:
    """Of what was not flushed, a segment may be lost and its successor kept: the log ends there."""
    struck = 0
    for moment in _moments():
        directory = tmp_path / str(moment)
        files = ForgetfulFiles()
        life = Life(_Mortal(files, moment), directory)
        try:
            life.run()
        except Torn:
            struck += 1
        files.cut_power(Random(moment))
        store = LogStore.open(QuickFiles(), [directory], config=CONFIG, broker_id=0, now_ms=0)
        log = store.logs.get(NAME)
        if log is None:
            assert life.flushed == 0
        else:
            start, end = log.log_start_offset, log.log_end_offset
            assert life.flushed <= end <= life.acknowledged + 2
            found = [each.offset for each in iterate_records(read(log, start))]
            assert found == list(range(start, end))
            for offset in found:
                assert next(iterate_records(read(log, offset, max_bytes=1))).offset == offset
            if found:
                again = append(log, batch(1, 100, producer=(9, 0, end - 1)))
                assert (again.is_duplicate, again.base_offset) == (True, end - 1)
            assert append(log, batch(1, 100)).base_offset == end
        store.close()
        shutil.rmtree(directory)
    assert struck > 100


class _Mortal(ForgetfulFiles):
    """Shares what is durable with `disk`, and stops everything at its n-th change."""

    __slots__ = ("left",)

    def __init__(self, disk: ForgetfulFiles, left: int) -> None:
        self.durable = disk.durable
        self.left = left

    def _change(self) -> None:
        if self.left == 0:
            raise Torn
        self.left -= 1

    def open(self, path: Path, *, create: bool = False) -> File:
        return FaultyFile(
            FaultyFiles(lambda what, size: self._change()), super().open(path, create=create)
        )

    def write(self, path: Path, data: bytes, *, sync: bool = False) -> None:
        self._change()
        super().write(path, data, sync=sync)

    def replace(self, source: Path, target: Path) -> None:
        self._change()
        super().replace(source, target)

    def remove(self, path: Path) -> None:
        self._change()
        super().remove(path)

    def sync(self, path: Path) -> None:
        self._change()
        super().sync(path)
