"""What the embedded store's journal keeps if a sync fails and the power is cut later (ZK-6)."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from random import Random
from struct import Struct

import pytest

from barnabas.cluster.journal import Journal
from barnabas.cluster.journal_frames import frame, zxid_of
from simulation.whole.files import SimFiles
from simulation.whole.journals import SimJournals
from simulation.whole.loop import VirtualLoop
from simulation.whole.seams import VirtualClock

DIRECTORY = Path("/data")
OUTCOMES = 25
PAGE_BYTES = 4096
_ZXID = Struct(">q")


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    loop = VirtualLoop(0)
    yield loop
    loop.close()


def commit(zxid: int) -> bytes:
    """It has pages of its own, because a write to a page also saves what the page held before."""
    return _ZXID.pack(zxid) + b"%d" % zxid * 3 * PAGE_BYTES


def opened(files: SimFiles) -> Journal:
    return Journal(DIRECTORY, disk=SimJournals(files.mounted()))


@pytest.mark.parametrize("outcome", range(OUTCOMES))
def test_zk_6_a_commit_whose_sync_has_failed_is_written_again_at_the_next_start(
    loop: VirtualLoop, outcome: int
) -> None:
    """The kernel drops what it could not write, but a process that reads it does not notice.

    So the next start shows the commit, and a later one must not be stored behind a hole.
    """
    files = SimFiles(VirtualClock(loop), [DIRECTORY])
    journal = opened(files)
    journal.append(commit(1))
    journal.sync()
    journal.seal(1)
    files.fail(DIRECTORY, errno.EIO, len(frame(commit(2))))
    with pytest.raises(OSError, match="Input/output error"):
        journal.append(commit(2))
        journal.sync()
    files.heal(DIRECTORY)
    files.process_died()
    journal = opened(files)
    shown = [zxid_of(each) for each in journal.frames]
    assert shown[-1] == 2
    journal.append(commit(3), unsynced=3 - 1 - journal.proven_zxid)
    journal.sync()
    journal.seal(3)
    journal.sync()
    files.process_died()
    files.power_cut(Random(outcome))
    assert [zxid_of(each) for each in opened(files).frames] == [*shown, 3]
