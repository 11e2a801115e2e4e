"""What befalls a simulated disk and passes, and what its operations cost."""

from __future__ import annotations

import errno
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from barnabas.storage.checkpoint import write_offsets
from barnabas.storage.directory import RECOVERY_POINTS
from barnabas.types import TopicPartition
from simulation.whole.files import SimFiles
from simulation.whole.lives import ProcessOver
from simulation.whole.strike import Strike
from tests.kit.set_clock import SetClock
from tests.kit.storage.disk import batch

D = Path("/d")


def test_what_is_open_is_counted_and_limited() -> None:
    files = SimFiles(SetClock(), [D])
    first = files.open(D / "a", create=True)
    files.limit(1)
    second = files.open(D / "b", create=True)
    for refused in (
        lambda: files.open(D / "a"),
        lambda: files.read(D / "a"),
        lambda: files.write(D / "c", b""),
        lambda: files.list(D),
        lambda: files.sync(D),
    ):
        with pytest.raises(OSError) as raised:
            refused()
        assert raised.value.errno == errno.EMFILE
    first.write(0, b"what is open can be used")
    second.release()
    files.sync(D)
    files.limit(None)
    assert files.open(D / "a").size() == 24


def test_those_of_a_dead_process_are_closed() -> None:
    files = SimFiles(SetClock(), [D])
    held = files.mounted().open(D / "a", create=True)
    files.process_died()
    files.limit(1)
    files.open(D / "a")
    held.release()
    with pytest.raises(OSError):
        files.open(D / "a")


def test_a_bit_reads_wrong_in_an_old_segment_until_it_reads_right_again() -> None:
    files = SimFiles(SetClock(), [D])
    records = bytes(batch(3))
    for directory, name in (
        ("t-0", "0"), ("t-0", "5"), ("t-0", "9"), ("t-1", "0"), ("__own-0", "0"), ("__own-0", "5")
    ):  # fmt: skip
        files.make_directory(D / directory)
        files.write(D / directory / f"{name}.log", records, sync=True)
    assert files.flip(D, Random(1)) is None, "all of it is read by a recovery"
    points = [TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("__own", 0)]
    write_offsets(files, D / RECOVERY_POINTS, dict.fromkeys(points, 8))
    for seed in range(50):
        undo = files.flip(D, Random(seed))
        assert undo is not None
        found = files.read(D / "t-0" / "0.log")
        assert found != records
        assert (found[:8], found[12:16]) == (records[:8], records[12:16]), "no checksum is over it"
        undo()
    undo = files.flip(D, Random(1))
    assert undo is not None
    assert files.read(D / "t-0" / "0.log") != records
    files.power_cut(Random(1))
    assert files.read(D / "t-0" / "0.log") != records
    undo()
    assert files.read(D / "t-0" / "0.log") == records
    files.remove(D / "t-0" / "5.log")
    assert files.flip(D, Random(1)) is None


def test_the_snapshots_of_the_log_read_wrong_with_its_segment() -> None:
    files = SimFiles(SetClock(), [D])
    for directory, name in (("t-0", "0.log"), ("t-0", "5.log"), ("t-1", "0.log")):
        files.make_directory(D / directory)
        files.write(D / directory / name, bytes(batch(3)), sync=True)
        files.write(D / directory / "5.snapshot", b"whole", sync=True)
    write_offsets(files, D / RECOVERY_POINTS, {TopicPartition("t", 0): 8})
    undo = files.flip(D, Random(1), with_snapshots=True)
    assert undo is not None
    assert files.read(D / "t-0" / "5.snapshot") != b"whole"
    assert files.read(D / "t-1" / "5.snapshot") == b"whole", "of another log"
    files.remove(D / "t-0" / "5.snapshot")  # as a broker does
    undo()
    assert files.read(D / "t-0" / "0.log") == bytes(batch(3))


def test_no_bit_is_turned_behind_a_length_that_reads_wrong() -> None:
    files = SimFiles(SetClock(), [D])
    files.make_directory(D / "t-0")
    for name in ("0", "5"):
        records = bytearray(batch(3))
        records[8] ^= 0x80  # less than nothing
        files.write(D / "t-0" / f"{name}.log", bytes(records), sync=True)
    write_offsets(files, D / RECOVERY_POINTS, {TopicPartition("t", 0): 8})
    assert files.flip(D, Random(1)) is None


def test_each_operation_has_its_price_and_a_slow_disk_one_beside_it() -> None:
    files, spent = SimFiles(SetClock(), [D]), Counter[str]()

    def spend(us: int, what: str, more_us: int = 0, until_us: int = 0) -> None:
        assert us > 0
        assert until_us in (0, 7)
        spent[what] += 1 + more_us

    files.measure(spend)
    file = files.open(D / "a", create=True)
    file.write(0, b"x" * 5000)
    file.pread(10, 0)
    files.slow(1_000_000, until_us=7)
    files.sync(D / "a")
    files.list(D)
    files.replace(D / "a", D / "b")
    assert spent == {
        "open": 1,
        "change of a name": 2,
        "write": 1,
        "read": 1,
        "sync": 1_000_001,
        "list": 1,
    }


def test_a_death_may_count_from_a_name_on() -> None:
    files = SimFiles(SetClock(), [D])
    fallen: list[str] = []
    files.strike(Strike(2, Random(1), lambda: fallen.append("here"), begins_with="-delete"))
    for number in range(5):
        files.make_directory(D / f"t-{number}")
    files.replace(D / "t-0", D / "t-0.id-delete")
    files.sync(D)
    assert fallen == []
    with pytest.raises(ProcessOver):
        files.make_directory(D / "t-5")
    assert fallen == ["here"]
    assert [entry.name for entry in files.list(D)][-1] == "t-4"
