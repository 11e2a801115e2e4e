"""ST-8: base offsets are in no checksum; a flipped bit in one moves no reader and no follower."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from barnabas.client.consumer.fetched import Chunk
from barnabas.config import LogConfig
from barnabas.errors import CorruptData
from barnabas.records.batch import iterate_batches
from barnabas.storage.loading import Start
from barnabas.storage.log import Log
from tests.kit.storage.disk import CLEAN, CRASHED, NAME, append, batch, open_at, read

_PER_BATCH = 10
_BATCHES = 24
_END = _PER_BATCH * _BATCHES
_BITS = (*range(9), 13, 20, 30, 31, 32, 45, 62, 63)
_CONFIG = LogConfig(segment_bytes=1000, index_interval_bytes=300)


def _filled(directory: Path, config: LogConfig = _CONFIG) -> None:
    log = open_at(directory, config)
    for _ in range(_BATCHES):
        append(log, batch(_PER_BATCH))
    assert len(log.segments) > 3
    log.close()


def _flip(directory: Path, i: int, bit: int) -> Callable[[], int]:
    """Flip a bit in the i-th batch's base offset; returns what flips it back."""
    for path in sorted(directory.glob("*.log")):
        raw = bytearray(path.read_bytes())
        for position, header in iterate_batches(bytes(raw)):
            if header.base_offset == i * _PER_BATCH:
                raw[position + 7 - bit // 8] ^= 1 << bit % 8
                sound = path.read_bytes()
                path.write_bytes(raw)
                return partial(path.write_bytes, sound)
    raise AssertionError(f"no batch {i}")


def _consumed(log: Log, max_bytes: int) -> list[int]:
    """The offsets that a consumer gets from the beginning on, to the end or an error."""
    got: list[int] = []
    position = 0
    while position < log.log_end_offset:
        try:
            raw = read(log, position, max_bytes)
            chunk = Chunk(NAME, position, memoryview(raw), (), log.log_end_offset)
        except CorruptData:
            break
        assert chunk.next_offset > position
        got += [record.offset for record in chunk.iterate(check_crcs=True)]
        position = chunk.next_offset
    return got


@pytest.mark.parametrize("index_interval_bytes", [1, 300])
@pytest.mark.parametrize("max_bytes", [1, 400, 1 << 20])
def test_readers_get_what_is_before_the_damage(
    tmp_path: Path, max_bytes: int, index_interval_bytes: int
) -> None:
    """After a clean stop nothing is scanned; the broker's answers and our consumer find it."""
    _filled(tmp_path, _CONFIG._replace(index_interval_bytes=index_interval_bytes))
    for i in (0, 1, 8, 9, 10, _BATCHES - 1):
        for bit in _BITS:
            flip_back = _flip(tmp_path, i, bit)
            log = open_at(tmp_path, _CONFIG, Start(is_clean=True, recovery_point=_END))
            assert _consumed(log, max_bytes) == list(range(i * _PER_BATCH)), (i, bit)
            with pytest.raises(CorruptData, match="is not between the offsets"):
                read(log, i * _PER_BATCH, max_bytes)
            log.release()
            flip_back()


def test_the_log_end_survives_damage_at_the_end(tmp_path: Path) -> None:
    _filled(tmp_path)
    for i in (_BATCHES - 2, _BATCHES - 1):
        for bit in _BITS:
            flip_back = _flip(tmp_path, i, bit)
            log = open_at(tmp_path, _CONFIG, Start(is_clean=True, recovery_point=_END))
            assert log.log_end_offset == _END, (i, bit)
            log.release()
            flip_back()


@pytest.mark.parametrize("bit", _BITS)
def test_a_crash_ends_the_log_before_the_damage(tmp_path: Path, bit: int) -> None:
    _filled(tmp_path)
    _flip(tmp_path, 8, bit)
    log = open_at(tmp_path, _CONFIG, CRASHED)
    assert log.log_end_offset == 8 * _PER_BATCH
    assert _consumed(log, 400) == list(range(8 * _PER_BATCH))
    log.close()
    assert open_at(tmp_path, _CONFIG, CLEAN).log_end_offset == 8 * _PER_BATCH


@pytest.mark.parametrize("max_bytes", [1, 400, 1 << 20])
def test_followers_take_nothing_damaged(tmp_path: Path, max_bytes: int) -> None:
    """What is before it may be copied; what is not is fetched again (RE-3)."""
    leader_at, follower_at = tmp_path / "leader", tmp_path / "follower"
    leader_at.mkdir()
    _filled(leader_at)
    sound = b"".join(path.read_bytes() for path in sorted(leader_at.glob("*.log")))
    for bit in _BITS:
        flip_back = _flip(leader_at, 8, bit)
        leader = open_at(leader_at, _CONFIG, Start(is_clean=True, recovery_point=_END))
        follower_at.mkdir()
        follower = open_at(follower_at, _CONFIG)
        with pytest.raises(CorruptData):
            while follower.log_end_offset < _END:
                raw = read(leader, follower.log_end_offset, max_bytes)
                follower.append_as_follower(memoryview(raw), 0, high_watermark=_END)
                follower.write_staged()
        copied = b"".join(path.read_bytes() for path in sorted(follower_at.glob("*.log")))
        assert sound.startswith(copied), bit
        follower.release()
        leader.release()
        flip_back()
        for path in follower_at.iterdir():
            path.unlink()
        follower_at.rmdir()


def test_a_follower_is_cut_back_to_before_the_damage(tmp_path: Path) -> None:
    """Where a truncation meets it: what is behind is fetched again from the leader."""
    for bit in (0, 3, 5, 40, 63):
        directory = tmp_path / str(bit)
        directory.mkdir()
        _filled(directory)
        _flip(directory, 8, bit)
        log = open_at(directory, _CONFIG, Start(is_clean=True, recovery_point=_END))
        log.truncate(9 * _PER_BATCH)
        assert log.log_end_offset == 8 * _PER_BATCH
        assert _consumed(log, 400) == list(range(8 * _PER_BATCH))
        log.release()
