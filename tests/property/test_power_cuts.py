"""A log between power cuts: what it lacks afterwards is at its end, or was compacted (ST-8).

One that leads and one that follows, on a disk that takes any part of what was not flushed. Segments
are small; logs are flushed, compacted, cut back, shortened at either end and killed in between.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import NamedTuple

from hypothesis import event, given, settings
from hypothesis import strategies as st

from barnabas.config import LogConfig
from barnabas.records.batch import iterate_batches
from barnabas.storage.cleaner import Limits
from barnabas.storage.compaction.key_map import BYTES_PER_KEY
from barnabas.storage.log import Log
from barnabas.storage.store import LogStore
from simulation.whole.files import SimFiles
from tests.kit.effort import examples
from tests.kit.set_clock import SetClock
from tests.kit.storage.disk import NAME, T0, append, read
from tests.kit.storage.passes import LIMITS, NOW, clean, keyed

CONFIG = LogConfig(
    segment_bytes=500, index_interval_bytes=100, cleanup_policy="compact", segment_index_bytes=1024
)
LOGS = Path("/d/logs")
FEW_KEYS = Limits(buffer_bytes=2 * BYTES_PER_KEY, read_bytes=4096, bytes_per_second=1e18)


class Write(NamedTuple):
    """So many batches, of the leader."""

    count: int


class Roll(NamedTuple):
    pass


class Copy(NamedTuple):
    """What a leader does not: it has no broker to copy from."""

    max_bytes: int


class Flush(NamedTuple):
    is_whole: bool
    """With the active segment."""


class Checkpoint(NamedTuple):
    pass


class Clean(NamedTuple):
    limits: Limits


class CleanLeader(NamedTuple):
    pass


class Cut(NamedTuple):
    """Keep so many hundredths of the offsets."""

    part: int


class Delete(NamedTuple):
    """So many hundredths of the offsets, from the beginning."""

    part: int


class Kill(NamedTuple):
    pass


class PowerCut(NamedTuple):
    seed: int


Step = (
    Write | Roll | Copy | Flush | Checkpoint | Clean | CleanLeader | Cut | Delete | Kill | PowerCut
)
STEPS = st.lists(
    st.one_of(
        st.builds(Write, st.integers(1, 12)),
        st.builds(Write, st.integers(1, 12)),
        st.builds(Roll),
        st.builds(Copy, st.integers(1, 2500)),
        st.builds(Copy, st.integers(1, 2500)),
        st.builds(Flush, st.booleans()),
        st.builds(Checkpoint),
        st.builds(Clean, st.sampled_from([LIMITS, LIMITS, FEW_KEYS])),
        st.builds(CleanLeader),
        st.builds(Cut, st.integers(50, 100)),
        st.builds(Delete, st.integers(0, 50)),
        st.builds(Kill),
        st.builds(PowerCut, st.integers(0, 2**32)),
        st.builds(PowerCut, st.integers(0, 2**32)),
    ),
    min_size=4,
    max_size=30,
)


class Machine:
    """A disk, and a store with one log on it."""

    def __init__(self) -> None:
        self.disk = SimFiles(SetClock())
        self.files = self.disk.mounted()
        self.store = self.open()
        self.store.directories.set_cluster_id("a" * 22)
        self.log = self.created()
        self.written: dict[int, bytes] = {}
        """By base offset: the batches that were appended and not cut off again."""
        self.cut_off: dict[int, list[bytes]] = {}
        """Those that the disk may still have, for nothing was flushed since."""
        self.cleaned_to = 0
        self.flushed = 0

    def open(self) -> LogStore:
        self.files = self.disk.mounted()
        return LogStore.open(self.files, [LOGS], config=CONFIG, broker_id=0, now_ms=0)

    def created(self) -> Log:
        return self.store.create(NAME, bytes(range(16)), CONFIG)

    def reopen(self) -> None:
        """With a new log, if nothing of the old one was flushed, nor its name."""
        self.store = self.open()
        self.log = self.store.logs.get(NAME) or self.created()

    def found(self) -> dict[int, bytes]:
        """The batches that are there, by base offset."""
        raw = read(self.log, self.log.log_start_offset)
        return {
            header.base_offset: bytes(raw[position : position + header.size_bytes])
            for position, header in iterate_batches(raw)
        }

    def took(self, before: int) -> None:
        """Something was appended at this log end."""
        self.written |= {base: raw for base, raw in self.found().items() if base >= before}

    def ended(self) -> None:
        """The log may be shorter than it was."""
        end = self.log.log_end_offset
        for base, raw in self.written.items():
            if base >= end:
                self.cut_off.setdefault(base, []).append(raw)
        self.written = {base: raw for base, raw in self.written.items() if base < end}
        self.cleaned_to = min(self.cleaned_to, end)
        self.flushed = min(self.flushed, max(self.written, default=-1) + 1)

    def check(self, before: dict[int, bytes]) -> None:
        """`before`: what was found last."""
        log, found = self.log, self.found()
        start, end = log.log_start_offset, log.log_end_offset
        wanted = {base: raw for base, raw in before.items() if base < self.cleaned_to}
        wanted |= {base: raw for base, raw in self.written.items() if base >= self.cleaned_to}
        # What a cut off end has left may be of another past, and is whole all the same.
        certain = min((end, *self.cut_off))
        for base, raw in wanted.items():
            if start <= base < certain:
                assert found.get(base) == raw, base
        for base, raw in found.items():
            assert raw == wanted.get(base) or raw in self.cut_off.get(base, ()), base
        assert list(found) == sorted(found)
        for offset in range(start, end):
            for each in log.read(offset, 1, end):
                each.release()
        self.written = {base: raw for base, raw in self.written.items() if base < end} | found


def _do(machine: Machine, leading: Machine, step: Step) -> None:
    log, store, leader = machine.log, machine.store, leading.log
    follows = leader is not log
    match step:
        case Write(count):
            before = leader.log_end_offset
            for i in range(count):
                append(leader, keyed((b"k%d" % (i % 3), bytes(60)), (b"k", b""), timestamp=T0))
            if not follows:
                machine.took(before)
        case Roll() if log.segments[-1].size_bytes:
            log.roll()
        case Copy(max_bytes) if follows and log.log_end_offset < leader.log_end_offset:
            before = log.log_end_offset
            raw = read(leader, before, max_bytes)
            log.append_as_follower(memoryview(raw), T0)
            log.write_staged()
            machine.took(before)
        case Flush(True):
            log.take_flush()()
            machine.cut_off.clear()
            machine.flushed = max(machine.written, default=-1) + 1
        case Flush(False):
            for flush in log.take_unflushed():
                flush()
        case Checkpoint():
            store.checkpoint_recovery_points()
        case Clean(limits):
            done = clean(log, now_ms=NOW, limits=limits, files=machine.files)
            if done is not None:
                machine.cleaned_to = max(machine.cleaned_to, done.first_dirty_offset)
                machine.files.sync(log.directory)
                event("cleaned")
        case CleanLeader() if follows:
            if leader.segments[-1].size_bytes:
                leader.roll()
            clean(leader, files=leading.files)
        case Cut(part) if follows:
            # Nothing is cleaned, nor deleted, before it is committed.
            start, end = max(log.log_start_offset, machine.cleaned_to), log.log_end_offset
            store.truncations.truncate(NAME, max(start, end * part // 100))
            machine.ended()
        case Delete(part):
            start, end = log.log_start_offset, log.log_end_offset
            log.raise_log_start(start + (end - start) * part // 100)
            log.enforce_retention(0, end, 0)
        case _:
            pass


def _die(machine: Machine, step: Kill | PowerCut) -> None:
    log, before = machine.log, machine.found()
    start, end = log.log_start_offset, max(before, default=-1) + 1
    if isinstance(step, Kill):
        machine.disk.process_died()
    else:
        machine.disk.power_cut(Random(step.seed))
    machine.reopen()
    if isinstance(step, Kill):
        assert machine.log.log_end_offset >= end
    assert machine.log.log_end_offset >= machine.flushed
    if machine.log.log_end_offset < end:
        event("lost something")
    machine.log.raise_log_start(min(start, machine.log.log_end_offset))
    machine.check(before)
    if isinstance(step, PowerCut):
        machine.cut_off.clear()
    machine.cleaned_to = min(machine.cleaned_to, machine.log.log_end_offset)


def _live(machine: Machine, leading: Machine, steps: list[Step]) -> None:
    for step in steps:
        if isinstance(step, Kill | PowerCut):
            _die(machine, step)
        else:
            _do(machine, leading, step)


@given(STEPS)
@settings(max_examples=examples(200), deadline=None)
def test_st_8_the_log_of_a_leader_loses_nothing_but_its_end(steps: list[Step]) -> None:
    machine = Machine()
    _live(machine, machine, steps)


@given(STEPS)
@settings(max_examples=examples(200), deadline=None)
def test_st_8_the_log_of_a_follower_loses_nothing_but_its_end(steps: list[Step]) -> None:
    """Its leader's may have gaps already."""
    _live(Machine(), Machine(), steps)
