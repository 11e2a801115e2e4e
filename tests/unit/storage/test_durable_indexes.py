"""ST-8, ST-10: the next start rebuilds every index that a power cut damaged."""

from __future__ import annotations

from random import Random

import pytest

from barnabas.config import LogConfig
from barnabas.storage.log import Log
from barnabas.storage.store import LogStore
from simulation.whole.files import SimFiles
from tests.kit.storage.disk import append, batch
from tests.kit.storage.noon import DATA, NAME, Noon

NOW_MS = Noon().wall_ms()
SMALL = LogConfig(segment_bytes=500, index_interval_bytes=100, retention_ms=60_000)


def store(files: SimFiles) -> LogStore:
    return LogStore.open(files, [DATA], config=SMALL, broker_id=0, now_ms=NOW_MS)


def live(log: Log, found: LogStore, segments: int) -> None:
    """Flush every record, and end with one that begins a segment and is not flushed: the recovery
    point stands right where that segment begins."""
    while True:
        append(log, batch(1, 100, timestamp=NOW_MS))
        if len(log.segments) == segments:
            return
        log.take_flush()()
        found.checkpoint_recovery_points()


@pytest.mark.thorough
@pytest.mark.parametrize("is_killed_before", [False, True])
def test_no_segment_is_old_that_lost_its_time_index(is_killed_before: bool) -> None:
    """Its largest timestamp would be zero, and retention would delete what was acknowledged."""
    for seed in range(100):
        files = SimFiles(Noon(), [DATA])
        found = store(files)
        found.directories.set_cluster_id("c")
        log = found.create(NAME, bytes(range(16)), SMALL)
        files.sync(DATA)
        live(log, found, segments=3)
        if is_killed_before:  # all that was written is there, and is not durable for that
            files.process_died()
            found = store(files)
            log = found.logs[NAME]
            live(log, found, segments=4)
        flushed_offset = log.recovery_point
        files.power_cut(Random(seed))
        log = store(files).logs[NAME]
        assert log.log_end_offset >= flushed_offset > 0
        assert {each.max_timestamp for each in log.segments if each.size_bytes} == {NOW_MS}
        assert log.enforce_retention(NOW_MS, log.log_end_offset, NOW_MS).segments == 0, (
            f"seed {seed}"
        )
