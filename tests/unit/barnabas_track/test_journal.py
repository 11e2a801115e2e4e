"""BT-1: what a journal has stored survives a crash at any byte, and damage is reported."""

from __future__ import annotations

import asyncio
import resource
from pathlib import Path

import pytest

from barnabas.client.producer.batch import ProducerRecord
from barnabas.errors import ConfigError
from barnabas_track.journal import Journal, JournalFull
from barnabas_track.journal_outbox import JournalOutbox
from barnabas_track.outbox import NotStored, Outgoing


def outgoing(*ids: str, size: int = 10) -> list[Outgoing]:
    headers = (("id", b"x"), ("none", None))
    return [
        Outgoing(each, ProducerRecord("events", b"v" * size, None, headers=headers)) for each in ids
    ]


def written(directory: Path, *frames: list[Outgoing]) -> Path:
    """The only file of a journal with these frames."""
    journal = Journal(directory)
    for each in frames:
        journal.append(each)
    journal.close()
    [path] = directory.glob("*.log")
    return path


def unsent(directory: Path) -> tuple[list[Outgoing], int]:
    journal = Journal(directory)
    try:
        return journal.unsent(1 << 20)
    finally:
        journal.close()


def test_a_frame_that_was_cut_at_any_byte_is_as_if_never_written(tmp_path: Path) -> None:
    first, second = outgoing("a", "b"), outgoing("c")
    path = written(tmp_path, first, second)
    whole = path.read_bytes()
    path.write_bytes(b"")
    complete = written(tmp_path, first).read_bytes()
    assert whole.startswith(complete)
    for size in range(len(complete), len(whole)):
        path.write_bytes(whole[:size])
        assert unsent(tmp_path) == (first, 1)
        path.write_bytes(whole[:size] if size == len(complete) else complete + b"\0" * 99)
        assert unsent(tmp_path) == (first, 1)
    path.write_bytes(whole)
    assert unsent(tmp_path) == (first + second, 2)


def test_a_damaged_frame_is_an_error_with_its_place(tmp_path: Path) -> None:
    path = written(tmp_path, outgoing("a"), outgoing("b"))
    data = path.read_bytes()
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(ConfigError, match=r"\.log: the frame at byte \d+ has a wrong checksum"):
            Journal(tmp_path)


def test_missing_frames_are_an_error(tmp_path: Path) -> None:
    path = written(tmp_path, outgoing("a"), outgoing("b"), outgoing("c"))
    data = path.read_bytes()
    size = len(data) // 3
    path.write_bytes(data[:size] + data[2 * size :])
    with pytest.raises(ConfigError, match="frames are missing before 3"):
        Journal(tmp_path)


def test_a_full_journal_refuses_frames_until_others_are_sent(tmp_path: Path) -> None:
    journal = Journal(tmp_path, most_bytes=40_000)
    with pytest.raises(JournalFull, match="its limit of 40,000 bytes"):
        for each in range(100):
            journal.append(outgoing(f"id-{each}", size=2_000))
    last = journal.last
    assert 10 < last < 20
    journal.mark_sent(last - 2)
    journal.append(outgoing("next", size=2_000))
    assert sum(each.stat().st_size for each in tmp_path.glob("*.log")) <= 40_000
    found, sequence = journal.unsent(1 << 20)
    assert ([each.id for each in found][-1], sequence, len(found)) == ("next", last + 1, 3)
    journal.close()


def test_the_directory_is_locked(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    with pytest.raises(ConfigError, match="another process uses the journal"):
        Journal(tmp_path)
    journal.close()
    Journal(tmp_path).close()


def test_an_id_is_known_after_a_restart_and_a_refused_one_is_not(tmp_path: Path) -> None:
    async def run() -> None:
        outbox = JournalOutbox(Journal(tmp_path))
        both = outbox.store(outgoing("a", "b")), outbox.store(outgoing("b"))
        assert sorted(await asyncio.gather(*both)) == [0, 1]
        await outbox.close()
        outbox = JournalOutbox(Journal(tmp_path))
        assert await outbox.store(outgoing("a", "b")) == 2
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (500, limits[1]))  # the disk is full
        try:
            with pytest.raises(NotStored, match="cannot write to the journal: File too large"):
                await outbox.store(outgoing("c", size=1_000))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert outbox.trouble
        assert await outbox.store(outgoing("c", size=1_000)) == 0
        assert outbox.trouble == ""
        await outbox.close()
        journal = Journal(tmp_path)
        assert [each.id for each in journal.unsent(1 << 20)[0]] == ["a", "b", "c"]
        journal.close()

    asyncio.run(run())
