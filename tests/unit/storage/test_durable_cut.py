"""ST-8, RE-10: what a follower has cut off does not come back with a power cut."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from barnabas.config import LogConfig
from barnabas.records.record import BatchBuilder
from barnabas.simulation.whole.files import SimFiles
from barnabas.storage.log import Log
from barnabas.storage.store import LogStore
from barnabas.types import TopicPartition

NAME = TopicPartition("t", 0)
DATA = Path("/data")


class Noon:
    def wall_ms(self) -> int:
        return 1_700_000_000_000

    monotonic_ms = wall_ms


def store(files: SimFiles) -> LogStore:
    return LogStore.open(files, [DATA], config=LogConfig(), broker_id=0, now_ms=0)


def put(log: Log, fill: bytes, size_bytes: int, epoch: int) -> None:
    """A batch of that size, in that leader epoch."""
    builder = BatchBuilder(0, -1, -1, -1)
    builder.append(Noon().wall_ms(), None, fill * (size_bytes - 80))
    data = bytearray(builder.build())
    log.append(memoryview(data), epoch, 0)
    log.write_staged()


@pytest.mark.parametrize("second_bytes", [1096, 1500], ids=["at a page's end", "across it"])
def test_a_record_that_was_cut_is_gone_for_good(second_bytes: int) -> None:
    """Offset 1 of epoch 0 is cut, and epoch 4 writes others there, on pages of which any may be
    lost: what stands at offset 1 afterwards is of epoch 4, or nothing."""
    seen = set()
    for seed in range(300):
        files = SimFiles(Noon(), [DATA])
        before = store(files)
        log = before.create(NAME, bytes(range(16)), LogConfig())
        before.set_cluster_id("c")
        files.sync(DATA)
        files.sync(DATA / str(NAME))
        log.assign_leader_epoch(0)
        put(log, b"1", 3000, 0)
        put(log, b"2", second_bytes, 0)
        log.flush()
        before.checkpoint_recovery_points()
        before.truncate(NAME, 1)
        log.assign_leader_epoch(4)
        put(log, b"3", second_bytes, 4)
        put(log, b"4", 2000, 4)
        files.power_cut(Random(seed))
        found = store(files).logs[NAME]
        epochs = [
            each.header.partition_leader_epoch
            for segment in found.segments
            for each in segment.headers(0)
        ]
        assert epochs[:1] == [0]
        assert set(epochs[1:]) <= {4}, f"seed {seed}: what was cut is back: {epochs}"
        seen.add(len(epochs))
    assert len(seen) > 1, "no power cut has lost anything"
