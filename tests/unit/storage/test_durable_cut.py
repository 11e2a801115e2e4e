"""ST-8, RE-10: what a follower has cut off does not come back with a power cut."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from barnabas.config import LogConfig
from barnabas.records.record import BatchBuilder
from barnabas.storage.cleaner import Checkpoints
from barnabas.storage.log import Log
from barnabas.storage.store import LogStore
from barnabas.types import TopicPartition
from simulation.whole.files import SimFiles
from tests.kit.storage.disk import WatchedFiles, append, batch
from tests.kit.storage.noon import DATA, NAME, Noon


def store(files: SimFiles) -> LogStore:
    return LogStore.open(files, [DATA], config=LogConfig(), broker_id=0, now_ms=0)


def put(log: Log, fill: bytes, size_bytes: int, epoch: int) -> None:
    """A batch of that size, in that leader epoch."""
    builder = BatchBuilder(0, -1, -1, -1)
    builder.append(Noon().wall_ms(), None, fill * (size_bytes - 80))
    data = bytearray(builder.build())
    log.append(memoryview(data), epoch, 0)
    log.write_staged()


@pytest.mark.thorough
@pytest.mark.parametrize("in_steps", [False, True])
@pytest.mark.parametrize("second_bytes", [1096, 1500], ids=["at a page's end", "across it"])
def test_a_record_that_was_cut_is_gone_for_good(second_bytes: int, in_steps: bool) -> None:
    """Offset 1 of epoch 0 is cut, and epoch 4 writes others there, on pages of which any may be
    lost: what stands at offset 1 afterwards is of epoch 4, or nothing."""
    seen = set()
    for seed in range(300):
        files = SimFiles(Noon(), [DATA])
        before = store(files)
        log = before.create(NAME, bytes(range(16)), LogConfig())
        before.directories.set_cluster_id("c")
        files.sync(DATA)
        files.sync(DATA / str(NAME))
        log.assign_leader_epoch(0)
        put(log, b"1", 3000, 0)
        put(log, b"2", second_bytes, 0)
        log.flush()
        before.checkpoint_recovery_points()
        if in_steps:
            before.truncations.begin(NAME, 1)  # who writes next does the rest
        else:
            before.truncations.truncate(NAME, 1)
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


CHECKPOINT = "recovery-point-offset-checkpoint"


class SyncedFiles(WatchedFiles):
    """Counts the syncs of small files too."""

    def write(self, path: Path, data: bytes, *, sync: bool = False) -> None:
        super().write(path, data, sync=sync)
        if sync:
            self.synced.append(path.name.removesuffix(".tmp"))


def many(tmp_path: Path, files: WatchedFiles, count: int = 20) -> LogStore:
    """Logs of ten records, which were flushed, and that is checkpointed."""
    found = LogStore.open(files, [tmp_path], config=LogConfig(), broker_id=0, now_ms=0)
    for number in range(count):
        log = found.create(TopicPartition("t", number), bytes(16), LogConfig())
        for sequence in range(10):
            append(log, batch(1, 50, producer=(9, 0, sequence)))
        log.roll()  # where the recovery point may stand in the checkpoint
        log.flush()
    found.checkpoint_recovery_points()
    files.synced.clear()
    return found


def test_many_cuts_are_one_checkpoint_and_wait_for_no_disk_on_their_own(tmp_path: Path) -> None:
    """RE-10: a leader that is gone may have left something in each of its partitions."""
    files = SyncedFiles()
    found = many(tmp_path, files)
    for name in found.logs:
        found.truncations.begin(name, 9)
    assert files.synced == []
    assert {log.log_end_offset for log in found.logs.values()} == {9}
    for name in found.logs:
        for _ in found.truncations.learn(name):
            assert files.synced == []
    assert found.truncations.settle(list(found.logs)) == []
    assert files.synced.count(CHECKPOINT) == 1
    cut = [str(name) for name in found.logs]
    assert sorted(files.synced) == sorted(
        [*cut, *["0" * 20 + ".log"] * 20, CHECKPOINT, tmp_path.name]
    ), "the directories, the logs themselves, and the checkpoint with its name"
    files.synced.clear()
    for log in found.logs.values():
        append(log, batch(1, 50, producer=(9, 0, 9)), epoch=3)
        assert log.unsettled is None
    assert files.synced == [], "nothing is left to wait for"
    assert (tmp_path / CHECKPOINT).read_text().splitlines()[2:] == [
        f"t {number} 9" for number in range(20)
    ]
    found.close()


def test_a_checkpoint_that_says_no_more_of_a_cut_log_stays(tmp_path: Path) -> None:
    files = SyncedFiles()
    found = many(tmp_path, files, count=1)
    append(found.logs[NAME], batch(1))
    found.truncations.truncate(NAME, 10)
    assert CHECKPOINT not in files.synced
    found.close()


def test_a_write_to_a_truncated_log_waits_for_the_truncation(tmp_path: Path) -> None:
    """A follower that is elected before its thread has come to it."""
    files = SyncedFiles()
    found = many(tmp_path, files, count=2)
    log = found.logs[NAME]
    found.truncations.begin(NAME, 5)
    assert not append(log, batch(1, 50, producer=(9, 0, 5)), epoch=3).is_duplicate
    assert [*files.synced] == [str(NAME), "0" * 20 + ".log", CHECKPOINT, tmp_path.name]
    assert (tmp_path / CHECKPOINT).read_text().splitlines()[2:] == ["t 0 5", "t 1 10"]
    assert found.truncations.settle([NAME]) == []
    assert len(files.synced) == 4
    found.close()


def test_a_cut_looks_at_no_batch_if_none_that_is_gone_had_a_producer(tmp_path: Path) -> None:
    """And so it takes as long in a full segment as in an empty one."""
    files = WatchedFiles()
    found = LogStore.open(files, [tmp_path], config=LogConfig(), broker_id=0, now_ms=0)
    log = found.create(NAME, bytes(16), LogConfig())
    append(log, batch(1, 50, producer=(9, 0, 0)))
    for _ in range(5_000):
        log.append(memoryview(batch(1, 50)), 0, 0)
    log.write_staged()
    files.bytes_read.clear()
    found.truncations.truncate(NAME, 4_999)
    assert sum(files.bytes_read.values()) < 50_000 < log.size_bytes
    assert append(log, batch(1, 50, producer=(9, 0, 0))).is_duplicate
    found.close()


def test_producers_are_learned_in_steps(tmp_path: Path) -> None:
    found = LogStore.open(WatchedFiles(), [tmp_path], config=LogConfig(), broker_id=0, now_ms=0)
    log = found.create(NAME, bytes(16), LogConfig())
    for sequence in range(3_000):
        log.append(memoryview(batch(1, 50, producer=(9, 0, sequence))), 0, 0)
    log.write_staged()
    found.truncations.begin(NAME, 2_990)
    steps = sum(1 for _ in found.truncations.learn(NAME))
    assert steps > 3
    log.release()  # what rests gives its files back meanwhile
    assert append(log, batch(1, 50, producer=(9, 0, 2_989))).is_duplicate
    assert not append(log, batch(1, 50, producer=(9, 0, 2_990))).is_duplicate
    found.close()


def test_st_7_a_cut_log_is_not_clean_above_it_after_a_crash(tmp_path: Path) -> None:
    """The cleaner's own checkpoint is up to fifteen seconds late, and may say more."""
    files = WatchedFiles()
    found = many(tmp_path, files, count=1)
    log = found.logs[NAME]
    log.gaps.note(10)  # as before a swap
    log.first_dirty_offset = 10
    Checkpoints(files).write(tmp_path, {NAME: 10})
    found.truncations.truncate(NAME, 4)
    append(log, batch(8), epoch=3)
    found.release()  # as a crash
    found = LogStore.open(files, [tmp_path], config=LogConfig(), broker_id=0, now_ms=0)
    Checkpoints(files).recall(found.logs[NAME], tmp_path)
    assert found.logs[NAME].first_dirty_offset == 4
    found.close()
