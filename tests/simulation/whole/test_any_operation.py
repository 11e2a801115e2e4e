"""A store whose process dies at any change of its disk, one after the other, in two ways."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from barnabas.config import LogConfig
from barnabas.records.batch import iterate_batches
from barnabas.records.record import BatchBuilder, iterate_records
from barnabas.storage.log import Log
from barnabas.storage.segment import Segment
from barnabas.storage.store import LogStore
from barnabas.types import TopicPartition
from simulation.whole.files import SimFiles
from simulation.whole.lives import ProcessOver
from simulation.whole.strike import Strike
from tests.kit.set_clock import SetClock
from tests.kit.storage.disk import append, batch, read
from tests.kit.storage.passes import clean, keyed

NAME, OTHER = TopicPartition("t", 0), TopicPartition("other", 0)
CONFIG = LogConfig(segment_bytes=1500, index_interval_bytes=300, segment_index_bytes=1024)
LOGS = Path("/d/logs")
MOST_OPERATIONS = 2000  # of a story


class Machine:
    """A disk, and what was written to one log on it."""

    def __init__(self) -> None:
        self.disk = SimFiles(SetClock(), [LOGS])
        self.pasts: list[list[bytes]] = [[]]
        """Values by offset, with the one that is just being written; the last past is true."""
        self.done = self.flushed = 0
        self.numbers = 0
        self.start()
        self.store.directories.set_cluster_id("a" * 22)
        self.write(1)
        self.flush()

    def start(self) -> None:
        self.files = self.disk.mounted()
        self.store = LogStore.open(self.files, [LOGS], config=CONFIG, broker_id=0, now_ms=0)
        if NAME not in self.store.logs:
            self.store.create(NAME, bytes(range(16)), CONFIG)

    @property
    def log(self) -> Log:
        return self.store.logs[NAME]

    def write(self, count: int) -> None:
        for _ in range(count):
            self.numbers += 1
            value = b"%d" % self.numbers * 20
            self.pasts[-1].append(value)
            builder = BatchBuilder(producer_id=9, producer_epoch=0, base_sequence=self.done)
            builder.append(0, None, value)
            append(self.log, bytearray(builder.build()), epoch=len(self.pasts))
            self.done += 1

    def flush(self) -> None:
        self.log.take_flush()()
        self.flushed = self.done

    def cut(self, offset: int) -> None:
        self.done, self.flushed = offset, min(self.flushed, offset)
        self.pasts.append(self.pasts[-1][:offset])
        self.store.truncations.truncate(NAME, offset)

    def _epochs(self) -> list[tuple[int, int]]:
        """As the batches have them: each with its first offset."""
        began: dict[int, int] = {}
        for _, header in iterate_batches(read(self.log, 0)):
            began.setdefault(header.partition_leader_epoch, header.base_offset)
        return list(began.items())

    def check(self, sure: int) -> None:
        """So many records are there, then what stood behind them once, and nothing else."""
        found = list(iterate_records(read(self.log, 0)))
        values = [bytes(each.value or b"") for each in found]
        assert [each.offset for each in found] == list(range(len(found)))
        assert self.log.log_end_offset == len(found)
        assert values[:sure] == self.pasts[-1][:sure]
        assert any(values == past[: len(values)] for past in self.pasts)
        known = [each for each in self.log.epochs.entries if each.start_offset < len(found)]
        assert known == self._epochs()
        self.pasts.append(values)
        self.done, self.flushed = len(values), min(self.flushed, len(values))


def _rolls_and_is_cut(machine: Machine) -> None:
    machine.write(30)
    machine.flush()
    machine.store.checkpoint_recovery_points()
    machine.write(15)
    machine.cut(18)
    machine.write(20)
    machine.store.checkpoint_high_watermarks({NAME: 30})
    machine.flush()
    machine.store.checkpoint_recovery_points()
    machine.write(5)


def _loses_another_log(machine: Machine) -> None:
    machine.write(5)
    other = machine.store.create(OTHER, bytes(range(1, 17)), CONFIG, is_new=True)
    append(other, batch(3, 100))
    machine.store.delete(OTHER)
    machine.write(5)
    machine.store.directories.purge_deleted()
    machine.write(5)


def _stops_and_starts(machine: Machine) -> None:
    machine.write(30)
    machine.store.close()
    machine.flushed = machine.done
    machine.start()
    machine.write(20)


def _is_made_again(machine: Machine) -> None:
    machine.write(40)
    machine.flush()
    machine.store.checkpoint_recovery_points()
    machine.done = machine.flushed = 0
    machine.pasts.append([])
    machine.store.delete(NAME)
    machine.store.create(NAME, bytes(range(1, 17)), CONFIG)
    machine.write(20)
    machine.store.directories.purge_deleted()


STORIES = (_rolls_and_is_cut, _loses_another_log, _stops_and_starts, _is_made_again)


def _strike(disk: SimFiles, operations: int, death: str) -> None:
    random = Random(operations)

    def befall() -> None:
        if death == "kill":
            disk.process_died()
        else:
            disk.power_cut(random)

    disk.strike(Strike(operations, random, befall))


def _struck(story: Callable[[Machine], None], operations: int, death: str) -> Machine | None:
    """A machine that was struck in this story; None if that ended before."""
    machine = Machine()
    _strike(machine.disk, operations, death)
    try:
        story(machine)
    except ProcessOver:
        return machine
    return None


@pytest.mark.parametrize("death", ["kill", "power"])
@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize("flushes", [False, True])
def test_st_8_a_store_is_whole_at_whichever_operation_it_died(
    story: Callable[[Machine], None], death: str, flushes: bool
) -> None:
    """And again when it goes on, and its machine loses power."""
    for operations in range(1, MOST_OPERATIONS):
        machine = _struck(story, operations, death)
        if machine is None:
            assert operations > 40
            return
        try:
            machine.start()
            machine.check(machine.done if death == "kill" else machine.flushed)
            machine.write(30)
            if flushes:
                machine.flush()
                machine.store.checkpoint_recovery_points()
                machine.write(3)
            machine.disk.power_cut(Random(operations))
            machine.start()
            machine.check(machine.flushed)
        except Exception as error:
            error.add_note(f"dead at operation {operations}")
            raise
    raise AssertionError("the story has no end")


@pytest.mark.parametrize("death", ["kill", "power"])
def test_st_8_a_store_that_died_while_it_recovered_recovers_again(death: str) -> None:
    """Each operation of a recovery in its turn, after one and the same torn write."""
    for operations in range(1, MOST_OPERATIONS):
        machine = _struck(_rolls_and_is_cut, 150, "kill")
        assert machine is not None
        _strike(machine.disk, operations, death)
        try:
            machine.start()
        except ProcessOver:
            machine.start()
            machine.check(machine.done if death == "kill" else machine.flushed)
        else:
            assert operations > 5
            return


@pytest.mark.parametrize("death", ["kill", "power"])
def test_st_8_a_log_that_died_while_it_was_cleaned_has_the_last_value_of_each_key(
    death: str,
) -> None:
    config = CONFIG._replace(cleanup_policy="compact")
    for operations in range(1, MOST_OPERATIONS):
        disk = SimFiles(SetClock(), [LOGS])
        files = disk.mounted()
        store = LogStore.open(files, [LOGS], config=config, broker_id=0, now_ms=0)
        store.directories.set_cluster_id("a" * 22)
        log = store.create(NAME, bytes(range(16)), config)
        for number in range(60):
            append(log, keyed((b"k%d" % (number % 7), b"%d" % number * 20)))
        log.roll()
        log.take_flush()()
        _strike(disk, operations, death)
        try:
            clean(log, files=files)
            log.remove_discarded(1 << 60)
        except ProcessOver:
            store = LogStore.open(disk.mounted(), [LOGS], config=config, broker_id=0, now_ms=0)
        else:
            assert operations > 10
            return
        log = store.logs[NAME]
        assert log.log_end_offset == 60
        last = {bytes(each.key or b""): each.offset for each in iterate_records(read(log, 0))}
        assert sorted(last.values()) == list(range(53, 60)), operations


def test_what_only_a_death_in_a_turn_shows_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: a killed broker is believed to have left whole batches only."""
    monkeypatch.setattr(Segment, "cut", lambda self, size: None)
    machine = Machine()
    for _ in range(5):
        machine.write(30)
        machine.disk.process_died()
        machine.start()
        machine.check(machine.done)
    with pytest.raises(RecursionError):  # its recovery has no end
        for operations in range(1, MOST_OPERATIONS):
            struck = _struck(_rolls_and_is_cut, operations, "kill")
            if struck is None:
                return
            struck.start()
            struck.check(struck.done)
