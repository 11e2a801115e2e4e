"""ZS-2: the files of the ZooKeeper server, which ends at any change that it makes to them."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from barnabas.cluster.journal_frames import frame
from barnabas.errors import CorruptData
from barnabas.zookeeper.journal import Journal
from simulation.whole.files import SimFiles
from simulation.whole.journals import SimJournals
from simulation.whole.lives import ProcessOver
from simulation.whole.loop import VirtualLoop
from simulation.whole.seams import VirtualClock
from simulation.whole.strike import Strike
from tests.kit.effort import places, rounds
from tests.kit.keeper_files import STATES, load, steps

DIRECTORY = Path("/zookeeper")
SNAPSHOTS_AFTER = (2, 4)
MOST_CHANGES = 100
OUTCOMES = rounds(5, in_soak=200)

End = Callable[[SimFiles, Random], None]


def kill(files: SimFiles, random: Random) -> None:
    files.process_died()


def cut_power(files: SimFiles, random: Random) -> None:
    files.power_cut(random)


def work(files: SimFiles, done: list[int]) -> None:
    """Continue after the last state; `done` counts what was acknowledged, also if it dies."""
    disk = SimJournals(files.mounted())
    journal = Journal(DIRECTORY, disk)
    have = len(list(_batches_up_to(journal.synced_zxid)))
    done.append(have)
    for number, (batch, state) in enumerate(steps(), 1):
        if number <= have:
            continue
        journal.append(batch)
        done.append(number)
        if number in SNAPSHOTS_AFTER:
            journal.replace(state)
    journal.stop()


def _batches_up_to(zxid: int) -> list[bytes]:
    return [batch for batch, _ in steps() if int.from_bytes(batch[:8], "big") <= zxid]


def strike(files: SimFiles, changes: int, end: End, random: Random) -> None:
    files.strike(Strike(changes, random, lambda: end(files, random)))


@pytest.mark.parametrize("end", [kill, cut_power])
def test_zs_2_what_was_acknowledged_is_loaded_after_a_crash_at_any_change(end: End) -> None:
    """The process dies twice: at each change of its disk, and at some change of the next start."""
    loop = VirtualLoop(0)
    try:
        deaths = 0
        for changes in places(MOST_CHANGES):
            for outcome in range(OUTCOMES):
                random = Random(f"{changes} {outcome}")
                files = SimFiles(VirtualClock(loop), [DIRECTORY])
                done = [0]
                for struck in (changes + 1, random.randrange(1, 12)):
                    strike(files, struck, end, random)
                    try:
                        work(files, done)
                    except ProcessOver:
                        deaths += 1
                    files.spare()
                    files.process_died()
                try:
                    found = load(DIRECTORY, SimJournals(files.mounted()))
                except CorruptData as error:
                    raise AssertionError((changes, outcome)) from error
                # A batch may be on disk without having been acknowledged.
                assert found in STATES[max(done) : max(done) + 2], (changes, outcome)
                files.process_died()
                work(files, done)
                files.process_died()
                assert load(DIRECTORY, SimJournals(files.mounted())) == STATES[-1]
        assert deaths > len(places(MOST_CHANGES))
    finally:
        loop.close()


def test_a_full_disk_at_the_stop_loses_nothing(caplog: pytest.LogCaptureFixture) -> None:
    loop = VirtualLoop(0)
    try:
        files = SimFiles(VirtualClock(loop), [DIRECTORY])
        journal = Journal(DIRECTORY, SimJournals(files))
        for batch, _ in steps():
            journal.append(batch)
        files.fail(DIRECTORY, 28)
        journal.stop()
        files.heal(DIRECTORY)
        assert "cannot write /zookeeper/zookeeper.stopped" in caplog.text
        assert load(DIRECTORY, SimJournals(files)) == STATES[-1]
    finally:
        loop.close()


@pytest.mark.parametrize("number", range(len(STATES) - 1))
def test_zs_2_a_batch_whose_sync_has_failed_is_written_again_at_the_next_start(
    number: int,
) -> None:
    """The kernel drops what it could not write, but a process that reads it does not notice."""
    batches = [batch for batch, _ in steps()]
    loop = VirtualLoop(0)
    try:
        for outcome in range(5 * OUTCOMES):
            files = SimFiles(VirtualClock(loop), [DIRECTORY])
            journal = Journal(DIRECTORY, SimJournals(files.mounted()))
            for batch in batches[:number]:
                journal.append(batch)
            files.fail(DIRECTORY, errno.EIO, len(frame(batches[number])))
            with pytest.raises(OSError, match="Input/output error"):
                journal.append(batches[number])
            files.heal(DIRECTORY)
            files.process_died()
            shown = load(DIRECTORY, SimJournals(files.mounted()))
            assert shown == STATES[number + 1]
            files.power_cut(Random(outcome))
            assert load(DIRECTORY, SimJournals(files.mounted())) == shown
    finally:
        loop.close()
