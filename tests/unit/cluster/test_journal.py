"""Copies of the metadata: what is damaged is repaired from another, or nothing starts (ZK-6)."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.journal import JOURNAL_NAME, SNAPSHOT_NAME, Journal
from barnabas.cluster.store import Create, Set
from barnabas.errors import ConfigError, CorruptData

_COMMIT_BYTES = 39

Change = Callable[[Path], None]


@pytest.fixture
def one(tmp_path: Path) -> Path:
    """A directory with a snapshot of six commits, and three commits after it."""
    return _written(tmp_path / "a")[0]


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, ...]:
    """The same in two directories."""
    return _written(tmp_path / "a", tmp_path / "b")


def _written(*directories: Path) -> tuple[Path, ...]:
    for each in directories:
        each.mkdir()

    async def write() -> None:
        journal = Journal(*directories)
        store = EmbeddedStore(journal, snapshot_at_bytes=6 * _COMMIT_BYTES)
        for number in range(9):
            await store.commit([Create(f"/n{number}", b"%d" % number)])
        journal.close()  # but not the store: its process is killed

    asyncio.run(write())
    return directories


def _names(directories: Sequence[Path], **options: bool) -> list[str]:
    """What there is after a start."""

    async def read() -> list[str]:
        store = EmbeddedStore.open(*directories, **options)
        root = await store.read("/")
        await store.close()
        assert root is not None
        return list(root.children)

    return asyncio.run(read())


ALL = [f"n{number}" for number in range(9)]


def _contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def _flip(name: str, position: int) -> Change:
    def change(directory: Path) -> None:
        content = bytearray((directory / name).read_bytes())
        content[position] ^= 4
        (directory / name).write_bytes(content)

    return change


def _remove(*names: str) -> Change:
    def change(directory: Path) -> None:
        for name in names:
            (directory / name).unlink()

    return change


def _empty(*names: str) -> Change:
    def change(directory: Path) -> None:
        for name in names:
            (directory / name).write_bytes(b"")

    return change


DAMAGE: list[tuple[str, Change]] = [
    ("a length", _flip(JOURNAL_NAME, 0)),
    ("a length that becomes small", _flip(JOURNAL_NAME, 3)),
    ("a checksum", _flip(JOURNAL_NAME, 5)),
    ("a count", _flip(JOURNAL_NAME, 9)),
    ("a number", _flip(JOURNAL_NAME, 19)),
    ("content", _flip(JOURNAL_NAME, 30)),
    ("the last commit", _flip(JOURNAL_NAME, -25)),
    ("the snapshot's length", _flip(SNAPSHOT_NAME, 2)),
    ("the snapshot", _flip(SNAPSHOT_NAME, 60)),
    ("no journal", _remove(JOURNAL_NAME)),
    ("an empty journal", _empty(JOURNAL_NAME)),
    ("no snapshot", _remove(SNAPSHOT_NAME)),
    ("an empty snapshot", _empty(SNAPSHOT_NAME)),
]


@pytest.mark.parametrize("damage", [change for _, change in DAMAGE], ids=[n for n, _ in DAMAGE])
def test_damage_of_the_only_copy_is_refused_and_changes_nothing(one: Path, damage: Change) -> None:
    damage(one)
    before = {name: content for name, content in _contents(one).items() if content}
    for options in ({}, {"read_only": True}):
        if options and not (one / JOURNAL_NAME).exists():
            continue
        with pytest.raises(CorruptData, match=r"Restore .* --accept-loss --dir") as refusal:
            _names([one], **options)
        assert str(one) in str(refusal.value)
    after = {name: content for name, content in _contents(one).items() if content}
    assert after == before


@pytest.mark.parametrize("damage", [change for _, change in DAMAGE], ids=[n for n, _ in DAMAGE])
@pytest.mark.parametrize("which", [0, 1])
def test_damage_of_one_of_two_copies_is_repaired(
    two: tuple[Path, ...], damage: Change, which: int, caplog: pytest.LogCaptureFixture
) -> None:
    damage(two[which])
    damaged = _contents(two[which])
    assert _names(two) == ALL
    assert str(two[which]) in caplog.text
    kept = [content for name, content in _contents(two[which]).items() if ".damaged" in name]
    assert sorted(kept) == sorted(content for content in damaged.values() if content)
    for each in two:
        assert _names([each]) == ALL, "and each is whole by itself again"


def test_the_message_says_file_position_and_commit(one: Path) -> None:
    _flip(JOURNAL_NAME, 30)(one)
    with pytest.raises(CorruptData) as refusal:
        _names([one])
    text = str(refusal.value)
    assert f"{one / JOURNAL_NAME} is damaged at byte 0" in text
    assert "can be read up to commit 6, but at least 9 commits were written" in text


def test_copies_that_are_damaged_in_different_places_complete_each_other(
    two: tuple[Path, ...],
) -> None:
    _flip(JOURNAL_NAME, 30)(two[0])
    _flip(JOURNAL_NAME, -25)(two[1])
    _flip(SNAPSHOT_NAME, 40)(two[1])
    assert _names(two) == ALL


FILES = [(which, name) for which in (0, 1) for name in (JOURNAL_NAME, SNAPSHOT_NAME)]


@pytest.mark.parametrize("change", [_remove, _empty], ids=["removed", "emptied"])
@pytest.mark.parametrize("gone", range(1, 15))
def test_what_is_complete_together_is_enough(
    two: tuple[Path, ...], gone: int, change: Callable[[str], Change]
) -> None:
    """Whatever is gone: a snapshot of one copy and the journal of the other are all of it."""
    left = {name for i, (_, name) in enumerate(FILES) if not gone >> i & 1}
    for i, (which, name) in enumerate(FILES):
        if gone >> i & 1:
            change(name)(two[which])
    if len(left) < 2:
        with pytest.raises(CorruptData, match="Nothing was changed"):
            _names(two)
        return
    assert _names(two) == ALL
    for each in two:
        assert _names([each]) == ALL, "and each is whole by itself again"


def test_the_loss_is_accepted_explicitly(one: Path) -> None:
    _flip(JOURNAL_NAME, 30)(one)
    damaged = (one / JOURNAL_NAME).read_bytes()
    journal = Journal(one, accepts_loss=True)
    assert [each.name for each in journal.kept] == [
        f"{JOURNAL_NAME}.damaged",
        f"{SNAPSHOT_NAME}.damaged",
    ]
    assert journal.kept[0].read_bytes() == damaged
    journal.close()
    assert _names([one]) == ALL[:6]


def test_an_emptied_directory_is_filled_and_never_believed(two: tuple[Path, ...]) -> None:
    shutil.rmtree(two[0])
    two[0].mkdir()
    assert _names(two) == ALL
    assert _names(two[:1]) == ALL


def test_a_copy_that_is_behind_catches_up(tmp_path: Path) -> None:
    directories = _written(tmp_path / "a", tmp_path / "b")
    old = _contents(directories[0])

    async def write(*used: Path) -> None:
        store = EmbeddedStore.open(*used)
        await store.commit([Create("/later")])
        await store.close()

    asyncio.run(write(directories[1]))
    assert _contents(directories[0]) == old
    assert "later" in _names(directories)
    assert "later" in _names(directories[:1])


def test_two_histories_are_refused(two: tuple[Path, ...]) -> None:
    """Each copy went on alone: which one counts only the operator knows."""

    async def write(used: Path, name: str) -> None:
        store = EmbeddedStore.open(used)
        await store.commit([Create(f"/{name}")])
        await store.close()

    asyncio.run(write(two[0], "left"))
    asyncio.run(write(two[1], "right"))
    with pytest.raises(ConfigError, match="has diverged"):
        _names(two)


def test_a_disk_that_fails_costs_its_copy_only(
    two: tuple[Path, ...], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real_write, broken = os.pwrite, [b""]

    def write(fd: int, data: bytes, position: int) -> int:
        path = os.readlink(f"/proc/self/fd/{fd}")
        if broken[0] and path.startswith(os.fsdecode(broken[0])):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real_write(fd, data, position)

    monkeypatch.setattr(os, "pwrite", write)

    async def scenario() -> None:
        store = EmbeddedStore.open(*two)
        broken[0] = os.fsencode(two[0])
        await store.commit([Set("/n0", b"after")])
        await store.commit([Create("/more")])
        await store.close()

    asyncio.run(scenario())
    assert f"no longer writing the metadata to {two[0]}" in caplog.text
    broken[0] = b""
    assert "more" in _names(two)
    assert "more" in _names(two[:1]), "it is up to date after the next start"


def test_a_directory_that_cannot_be_used_is_left_out(
    two: tuple[Path, ...], caplog: pytest.LogCaptureFixture
) -> None:
    shutil.rmtree(two[0])
    assert _names(two) == ALL
    assert f"cannot keep a copy of the metadata in {two[0]}" in caplog.text
    shutil.rmtree(two[1])
    with pytest.raises(OSError):
        _names(two)


def test_the_files_of_an_earlier_version_are_read(tmp_path: Path) -> None:
    """They have frames without a count, no seal, and an empty journal beside a snapshot."""
    import zlib
    from struct import pack

    def earlier(payload: bytes) -> bytes:
        return pack(">II", len(payload), zlib.crc32(payload)) + payload

    def commit(zxid: int, path: str) -> bytes:
        node = pack(">qH", 0, len(path)) + path.encode() + pack(">i", -1)
        return earlier(pack(">qB", zxid, 1) + node)

    commits = [commit(number, f"/n{number}") for number in range(1, 4)]
    (tmp_path / JOURNAL_NAME).write_bytes(b"".join(commits))
    assert _names([tmp_path]) == ["n1", "n2", "n3"]
    damaged = bytearray(b"".join(commits))
    damaged[len(commits[0]) + 9] ^= 1
    (tmp_path / JOURNAL_NAME).write_bytes(damaged)
    with pytest.raises(CorruptData, match="up to commit 1, but at least 2 commits were written"):
        _names([tmp_path])
    tree = pack(">q", 7) + pack(">iiq", 0, 0, 0) + pack(">qH", 0, 1) + b"/" + pack(">i", -1)
    (tmp_path / SNAPSHOT_NAME).write_bytes(earlier(tree))
    (tmp_path / JOURNAL_NAME).write_bytes(b"")
    assert _names([tmp_path]) == []


def test_only_the_owner_may_read_the_files(one: Path) -> None:
    """They have the hashes of passwords."""
    before = os.umask(0)
    try:
        assert _names([one]) == ALL
    finally:
        os.umask(before)
    for name in (JOURNAL_NAME, SNAPSHOT_NAME):
        assert (one / name).stat().st_mode & 0o777 == 0o600
