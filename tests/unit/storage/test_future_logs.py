"""What a start makes of the future replicas that it finds, and of a replica in two directories."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.config import LogConfig
from barnabas.errors import ConfigError
from barnabas.storage.directory import future_name_fits
from barnabas.storage.store import LogStore
from barnabas.types import TopicPartition
from tests.kit.storage.disk import QuickFiles, append, batch

NAME = TopicPartition("t", 0)
TOPIC_ID, OTHER_ID = bytes(15) + b"\x02", bytes(15) + b"\x03"
UNIQUE = bytes(range(16))
FUTURE = f"t-0.{UNIQUE.hex()}-future"
MOVES = ".barnabas_moves"


@pytest.fixture
def two(tmp_path: Path) -> list[Path]:
    return [tmp_path / "one", tmp_path / "two"]


def opened(directories: list[Path]) -> LogStore:
    return LogStore.open(QuickFiles(), directories, config=LogConfig(), broker_id=0, now_ms=0)


def moving(two: list[Path], copied: int = 1) -> LogStore:
    """Two batches in the first directory, of which so many are in the second one by now."""
    store = opened(two)
    log = store.create(NAME, TOPIC_ID, LogConfig(), is_new=True)
    new = store.moves.place(NAME, two[1], UNIQUE)
    store.moves.lay_out(new)
    store.futures.open(new, log)
    for number in range(2):
        append(log, batch(1))
        if number < copied:
            future = store.futures.logs[NAME]
            future.append_as_follower(memoryview(batch_at(number)), 0)
            future.write_staged()
    return store


def batch_at(offset: int) -> bytearray:
    raw = batch(1)
    raw[:8] = offset.to_bytes(8)
    raw[12:16] = bytes(4)  # epoch 0
    return raw


def names(directory: Path) -> list[str]:
    return [path.name for path in sorted(directory.glob("t-0*"))]


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_move_is_found_again(two: list[Path], is_clean: bool) -> None:
    store = moving(two)
    if is_clean:
        store.close()
    else:
        store.release()
    assert names(two[1]) == [FUTURE]
    again = opened(two)
    assert again.logs[NAME].log_end_offset == 2
    assert again.futures.logs[NAME].log_end_offset == 1
    assert again.futures.logs[NAME].topic_id == TOPIC_ID
    assert (again.sizes(two[1])[NAME].offset_lag, again.sizes(two[1])[NAME].is_future) == (1, True)
    again.close()


def test_of_two_directories_that_with_the_move_counts(two: list[Path]) -> None:
    """A crash came between the two renames."""
    store = moving(two, copied=2)
    store.moves.promote(NAME)
    append(store.logs[NAME], batch(1))
    store.release()
    assert names(two[0]) == names(two[1]) == ["t-0"]
    again = opened(two)
    assert again.directory_of(NAME) == two[1]
    assert again.logs[NAME].log_end_offset == 3
    assert names(two[0]) == []
    assert not (two[1] / MOVES).exists()
    again.close()


def test_two_directories_without_a_move_are_refused(two: list[Path]) -> None:
    store = moving(two, copied=2)
    store.moves.promote(NAME)
    store.release()
    (two[1] / MOVES).unlink()
    with pytest.raises(ConfigError, match=r"t-0 is in both .*one and .*two; move the one"):
        opened(two)
    (two[1] / MOVES).write_text("?")
    with pytest.raises(ConfigError, match="barnabas_moves is damaged"):
        opened(two)


def test_a_directory_that_is_offline_may_have_the_current_replica(two: list[Path]) -> None:
    """Nothing is done to the future one, and a later start with both goes on."""
    moving(two).release()
    aside = two[0].with_name("aside")
    two[0].rename(aside)
    two[0].write_text("no directory")
    store = opened(two)
    assert store.directories.failed == (two[0],)
    assert NAME not in store.logs
    assert NAME not in store.futures.logs
    store.close()
    assert names(two[1]) == [FUTURE]
    two[0].unlink()
    aside.rename(two[0])
    store = opened(two)
    assert store.futures.logs[NAME].log_end_offset == 1
    store.close()


def test_a_future_replica_of_none_is_kept_aside(two: list[Path]) -> None:
    moving(two).release()
    (two[0] / "t-0").rename(two[0].with_name("gone"))
    store = opened(two)
    assert NAME not in store.futures.logs
    assert [name[-6:] for name in names(two[1])] == ["-stray"]
    store.close()


@pytest.mark.parametrize("what", ["another topic", "a second", "in the same", "damaged"])
def test_a_future_replica_that_is_of_no_use_is_deleted(two: list[Path], what: str) -> None:
    moving(two).release()
    metadata = two[1] / FUTURE / "partition.metadata"
    if what == "another topic":
        text = metadata.read_text()
        metadata.write_text(text.replace("AAAAAAAAAAAAAAAAAAAAAg", "AAAAAAAAAAAAAAAAAAAAAw"))
    elif what == "a second":
        second = two[1] / FUTURE.replace("t-0.0", "t-0.f")
        second.mkdir()
    elif what == "in the same":
        (two[1] / FUTURE).rename(two[0] / FUTURE)
    else:
        metadata.write_text("version: x")
    store = opened(two)
    is_there = what == "a second"
    assert (NAME in store.futures.logs) == is_there
    left = [name for path in two for name in names(path) if not name.endswith("-delete")]
    assert left == ["t-0", *[FUTURE] * is_there]
    store.close()


def test_a_name_that_is_too_long_cannot_move() -> None:
    """255 bytes, of which a partition below ten takes 42."""
    assert future_name_fits(TopicPartition("x" * 213, 0))
    assert not future_name_fits(TopicPartition("x" * 213, 10))
    assert not future_name_fits(TopicPartition("x" * 214, 0))
