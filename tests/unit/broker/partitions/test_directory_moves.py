"""Moves between log directories: the replica is the same afterwards, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import pytest

from barnabas.broker.partitions.cleaner_parts import CleanerParts
from barnabas.broker.partitions.directory_moves import DirectoryMoves
from barnabas.broker.partitions.log_cleaner import LogCleaner
from barnabas.broker.partitions.replica import Replica
from barnabas.broker.partitions.throttles import Throttles
from barnabas.broker.runtime.watched_clock import WatchedClock
from barnabas.clock import SystemClock, SystemRandom
from barnabas.config import BrokerConfig
from barnabas.errors import InvalidProducerEpoch
from barnabas.records.control_records import ABORT, COMMIT, Marker, build_marker
from barnabas.storage.log import Log
from barnabas.types import TopicPartition
from tests.kit.broker.hosting import HeldFiles, Hosted
from tests.kit.effort import places
from tests.kit.storage.disk import T0, QuickFiles, append, batch, read
from tests.kit.storage.dying_files import DyingFiles, Killed
from tests.kit.storage.passes import keyed
from tests.kit.waiting import until

NAME = TopicPartition("t", 0)
SMALL = {"segment_bytes": "20000", "index_interval_bytes": "1000"}


class Moving(Hosted):
    """A broker with two log directories, and the moves between them."""

    def __init__(self, directory: Path, files: QuickFiles | None = None, **settings: str) -> None:
        self.directories = [directory / "one", directory / "two"]
        super().__init__(self.directories, files, **settings)
        config = BrokerConfig({})
        self.throttles = Throttles(config)
        self.moves = DirectoryMoves(self.parts.failures, (), self.throttles, SystemRandom())

    @property
    def home(self) -> Path:
        return self.store.directory_of(NAME)

    @property
    def other(self) -> Path:
        (other,) = set(self.directories) - {self.home}
        return other

    async def move(self) -> None:
        """Move it to the other directory; return when it is there."""
        target = self.other
        await self.moves.alter(NAME, str(target))
        await self.moved(target)

    async def moved(self, target: Path) -> None:
        await until(lambda: self.home == target and self.is_over)
        assert not self.has_failed

    @property
    def is_over(self) -> bool:
        return not self.moves.under_way


def fill(hosted: Hosted, replica: Replica, batches: int = 40) -> None:
    for _ in range(batches):
        hosted.append(replica, 3_000)


def facts(log: Log) -> list[object]:
    """What readers, followers and producers see of a log."""
    return [
        (log.log_start_offset, log.log_end_offset),
        sha256(read(log, log.log_start_offset)).hexdigest(),
        log.epochs.entries,
        list(log.aborted_transactions(0, log.log_end_offset)),
        {each: (found.epoch, found.last_sequence) for each, found in log.producers},
        log.topic_id,
    ]


def with_everything(hosted: Hosted, replica: Replica) -> None:
    """Transactions of both kinds and one that is open, epochs, and deleted records."""
    log = replica.log
    log_start_offset = log.log_end_offset + 4
    for i in range(12):
        log.append(
            memoryview(batch(2, 900, producer=(7, 0, 2 * i), is_transactional=True)), 1 + i // 4, 0
        )
        if i % 3 == 0:
            marker = build_marker(Marker(0, T0, ABORT if i % 2 else COMMIT, 0), 7, 0)
            log.append_control(memoryview(bytearray(marker)), 1 + i // 4, T0)
            log.write_staged()
    log.append(memoryview(batch(1, 500, producer=(8, 0, 0))), 5, 0)
    log.append(memoryview(batch(1, 500)), 5, 0)
    log.raise_log_start(log_start_offset)  # within a batch
    log.assign_leader_epoch(9)
    hosted.replicas.write_staged()
    log.write_staged()


def test_st_10_a_moved_log_is_the_same(tmp_path: Path) -> None:
    hosted = Moving(tmp_path)

    async def there_and_back() -> None:
        replica = hosted.host("t", **SMALL)
        replica.log.append(memoryview(batch(1, producer=(6, 0, 0))), 1, 0)  # and is deleted
        with_everything(hosted, replica)
        before = facts(replica.log)
        for _ in range(2):
            await hosted.move()
            assert facts(replica.log) == before
            assert replica.log.directory == hosted.home / "t-0"
            assert not (hosted.other / "t-0").exists()
        with pytest.raises(InvalidProducerEpoch):
            replica.log.append(memoryview(batch(1, producer=(7, -1, 0))), 9, 0)
        hosted.store.close()
        again = Moving(tmp_path)
        found = facts(again.store.logs[NAME])  # without the epoch that has no record
        assert found[:2] + found[3:] == before[:2] + before[3:]
        again.store.close()

    asyncio.run(there_and_back())


def test_what_is_appended_meanwhile_moves_along(tmp_path: Path) -> None:
    hosted = Moving(tmp_path)

    async def append_all_the_time() -> None:
        replica = hosted.host("t", **SMALL)
        fill(hosted, replica)
        target = hosted.other
        await hosted.moves.alter(NAME, str(target))
        appended = 0
        while hosted.home != target:
            hosted.append(replica, 3_000)
            appended += 1
            # Then no faster than a busy machine copies, or the move would never catch up.
            await asyncio.sleep(0 if appended < 100 else 0.002)
        await hosted.moved(target)
        hosted.append(replica, 3_000)
        offsets = replica.log.log_end_offset
        assert offsets > 41
        assert len(read(replica.log, 0)) == offsets * len(batch(1, 3_000))

    asyncio.run(append_all_the_time())
    hosted.store.close()


async def begun(hosted: Moving, replica: Replica, bytes_per_s: int = 1) -> Log:
    """A move of which one turn was copied, and which waits then."""
    hosted.throttles.moves.bytes_per_s = bytes_per_s
    fill(hosted, replica)
    await hosted.moves.alter(NAME, str(hosted.other))
    future = hosted.store.futures.logs[NAME]
    await until(lambda: future.log_end_offset > 0)
    assert future.log_end_offset < 40
    return future


async def go_on(hosted: Moving) -> None:
    """Without a throttle. The pause of a throttled move ends with its task: begin another."""
    target = hosted.other
    hosted.throttles.moves.bytes_per_s = 2**63 - 1
    await hosted.moved(target)


def test_a_cut_of_the_current_log_cuts_the_future_one(tmp_path: Path) -> None:
    hosted = Moving(tmp_path)

    async def cut() -> None:
        replica = hosted.host("t", **SMALL)
        future = await begun(hosted, replica, 40_000)
        hosted.store.truncations.truncate(NAME, 5)
        assert future.log_end_offset == 5
        for _ in range(20):
            append(replica.log, batch(1, 2_000), epoch=7)
        before = facts(replica.log)
        await go_on(hosted)
        assert facts(replica.log) == before

    asyncio.run(cut())
    hosted.store.close()


def test_records_that_are_deleted_meanwhile_are_not_copied(tmp_path: Path) -> None:
    hosted = Moving(tmp_path)

    async def delete() -> None:
        replica = hosted.host("t", **SMALL)
        future = await begun(hosted, replica, 40_000)
        replica.log.raise_log_start(35)
        await go_on(hosted)
        assert replica.log is future
        assert facts(replica.log)[0] == (35, 40)
        assert replica.log.segments[0].base_offset == 35

    asyncio.run(delete())
    hosted.store.close()


def test_st_7_what_moves_is_not_compacted(tmp_path: Path) -> None:
    """Or a record could have been copied, and the tombstone that deletes it not be there to be."""
    hosted = Moving(tmp_path)

    async def clean() -> None:
        replica = hosted.host("t", cleanup_policy="compact", **SMALL)
        parts, clock = hosted.parts, WatchedClock(SystemClock())
        cleaner = LogCleaner(
            CleanerParts(
                parts.config, clock, parts.replicas, parts.failures, QuickFiles(), inline=True
            )
        )
        for _ in range(20):
            append(replica.log, keyed((b"key", bytes(3_000))), epoch=1)
        hosted.replicas.write_staged()
        replica.count_up_to(0, replica.log.log_end_offset)
        hosted.throttles.moves.bytes_per_s = 1
        await hosted.moves.alter(NAME, str(hosted.other))
        assert not await cleaner.clean_once()
        await go_on(hosted)
        assert await cleaner.clean_once()
        assert replica.log.segments[0].size_bytes == 0

    asyncio.run(clean())
    hosted.store.close()


def test_a_deletion_takes_both_replicas(tmp_path: Path) -> None:
    hosted = Moving(tmp_path)

    async def delete() -> None:
        replica = hosted.host("t", **SMALL)
        await begun(hosted, replica)
        hosted.delete("t")
        for each in hosted.directories:
            assert [path.name[-7:] for path in each.glob("t-0*")] == ["-delete"]
        hosted.host("t", **SMALL)
        await hosted.moves.stop()

    asyncio.run(delete())
    assert not hosted.has_failed
    hosted.store.close()


def test_st_10_a_target_that_fails_ends_the_move_alone(tmp_path: Path) -> None:
    hosted = Moving(tmp_path)

    async def fail() -> None:
        replica = hosted.host("t", **SMALL)
        home, other = hosted.home, hosted.other
        await begun(hosted, replica)
        hosted.parts.failures.on_error(other, OSError(5, "Input/output error"))
        await hosted.moves.stop()
        assert hosted.store.directories.online == (home,)
        assert hosted.replicas.hosts(replica)
        hosted.append(replica)

    asyncio.run(fail())
    hosted.store.close()


def test_a_restart_goes_on(tmp_path: Path) -> None:
    """After a crash, and after a clean stop."""
    expected = b""
    for is_clean in (True, False):
        hosted = Moving(tmp_path)

        async def stop(hosted: Moving = hosted, is_clean: bool = is_clean) -> bytes:
            replica = hosted.resume("t", **SMALL)
            await begun(hosted, replica)
            await hosted.moves.stop()
            found = read(replica.log, 0)
            if is_clean:
                hosted.store.close()
            else:
                hosted.store.release()
            return found

        expected = asyncio.run(stop())
        hosted = Moving(tmp_path)

        async def complete(hosted: Moving = hosted) -> bytes:
            assert hosted.store.futures.logs[NAME].log_end_offset > 0
            target = hosted.other
            replica = hosted.resume("t", **SMALL)
            hosted.moves.on_leading(replica)
            await hosted.moved(target)
            return read(replica.log, 0)

        assert asyncio.run(complete()) == expected
        hosted.store.close()


def test_the_replaced_log_stays_until_the_new_name_is_durable(tmp_path: Path) -> None:
    files = HeldFiles()
    hosted = Moving(tmp_path, files)

    async def hold() -> None:
        replica = hosted.host("t", **SMALL)
        fill(hosted, replica)
        source, target = hosted.home, hosted.other
        await hosted.moves.alter(NAME, str(target))
        files.is_held = lambda path: path == target and hosted.home == target
        await until(lambda: files.arrived == 1)
        assert (source / "t-0").exists()
        assert (target / "t-0").exists()
        hosted.append(replica)
        back = asyncio.ensure_future(hosted.moves.alter(NAME, str(source)))
        await asyncio.sleep(0.05)
        assert not list(source.glob("*-future")), "of two moves none would count after a crash"
        files.let_go()
        await back
        await hosted.moved(source)
        assert not (target / "t-0").exists()
        assert replica.log.log_end_offset == 41

    asyncio.run(hold())
    hosted.store.close()


def test_st_10_what_is_acknowledged_from_disk_is_on_both(tmp_path: Path) -> None:
    """`flush.messages`: or a power cut after the switch would take what was acknowledged."""
    files = HeldFiles()
    hosted = Moving(tmp_path, files)

    async def hold() -> None:
        replica = hosted.host("t", flush_messages="1", **SMALL)
        fill(hosted, replica)
        await hosted.flushed(replica)
        target = hosted.other
        files.is_held = lambda path: target in path.parents and path.suffix == ".log"
        await hosted.moves.alter(NAME, str(target))
        await until(lambda: files.arrived == 1)
        end = hosted.append(replica)
        await until(lambda: replica.log.recovery_point == end)
        waiting = asyncio.ensure_future(replica.wait_for_flush(end))
        await asyncio.sleep(0.05)
        assert replica.high_watermark == 40
        assert not waiting.done()
        files.let_go()
        await hosted.moved(target)
        await waiting
        await hosted.flushed(replica)
        assert replica.high_watermark == end
        assert replica.log.recovery_point == end
        assert hosted.append(replica) == end + 1
        await hosted.flushed(replica)
        assert replica.high_watermark == end + 1

    asyncio.run(hold())
    hosted.store.close()


@pytest.mark.thorough
def test_st_10_the_process_dies_at_any_step(tmp_path: Path) -> None:
    """The replica is found once, with all that it had, and the move comes to its end."""
    total = _move_and_die(tmp_path / "counted", 1 << 30)
    assert total > 60
    _make(tmp_path / "origin")
    origin = Moving(tmp_path / "origin")
    expected = facts(origin.store.logs[NAME])
    origin.store.close()
    for left in places(total):
        directory = tmp_path / str(left)
        assert _move_and_die(directory, left) == left
        _check(directory, expected)
    print(f"{total} steps at which the process may die")


def _make(directory: Path) -> None:
    hosted = Moving(directory)
    replica = hosted.host("t", **SMALL)
    fill(hosted, replica, 9)
    with_everything(hosted, replica)
    hosted.store.checkpoint_high_watermarks(hosted.replicas.high_watermarks())
    hosted.store.checkpoint_recovery_points()
    hosted.store.release()


def _move_and_die(directory: Path, left: int) -> int:
    """After how many changes on disk the move was over, or its process died."""
    _make(directory)
    files = DyingFiles(1 << 30)
    hosted = Moving(directory, files)
    hosted.resume("t", **SMALL)
    before = files.changes
    files.left = before + left

    async def move() -> None:
        target = hosted.other
        await hosted.moves.alter(NAME, str(target))
        await until(lambda: hosted.is_over)
        assert hosted.home == target or files.changes == files.left

    with suppress(Killed):
        asyncio.run(move())
    hosted.store.release()
    return files.changes - before


def _check(directory: Path, before: list[object]) -> None:
    hosted = Moving(directory)
    log = hosted.store.logs[NAME]
    assert hosted.store.high_watermarks[NAME] == 9
    assert facts(log)[:2] == before[:2]
    assert facts(log)[3:] == before[3:]

    async def complete() -> None:
        target = hosted.other if NAME in hosted.store.futures.logs else hosted.home
        replica = hosted.resume("t", **SMALL)
        hosted.moves.on_leading(replica)
        await hosted.moved(target)
        assert facts(replica.log)[:2] == before[:2]
        await hosted.moves.stop()

    asyncio.run(complete())
    assert [each.name for path in hosted.directories for each in path.glob("t-0")] == ["t-0"]
    assert not [each for path in hosted.directories for each in path.glob("*-future")]
    hosted.store.close()
