"""The embedded store: what is acknowledged is there again, whole, after any end of its process."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.journal import JOURNAL_NAME, SNAPSHOT_NAME, Journal
from barnabas.cluster.node_bytes import tree_to_bytes
from barnabas.cluster.store import (
    BadVersion,
    Create,
    Delete,
    MetadataError,
    OutcomeUnknown,
    SessionExpired,
    SessionState,
    Set,
    Znode,
)
from barnabas.errors import ConfigError, CorruptData


def test_a_commit_is_there_after_a_restart(tmp_path: Path) -> None:
    async def before() -> None:
        store = EmbeddedStore.open(tmp_path)
        await store.commit([Create("/a", b"1"), Create("/a/b", None)])
        await store.commit([Set("/a", b"", 0)])
        await store.close()

    async def after() -> None:
        store = EmbeddedStore.open(tmp_path)
        assert await store.read("/a") == Znode(b"", 1, 1, 0, ("b",))
        node = await store.read("/a/b")
        assert node is not None and node.data is None, "no data is not empty data"
        await store.close()

    asyncio.run(before())
    asyncio.run(after())


def test_ephemeral_nodes_vanish_with_their_process(tmp_path: Path) -> None:
    """A broker that was killed is not in the way of its next life (ZK-2)."""

    async def killed() -> int:
        journal = Journal(tmp_path)
        store = EmbeddedStore(journal)
        await store.commit([Create("/ids"), Create("/ids/0", ephemeral=True)])
        node = await store.read("/ids/0")
        assert node is not None and node.owner == store.session_id != 0
        journal.close()  # but not the store: all that its end does is that the lock is gone
        return node.czxid

    async def next_life(czxid: int) -> None:
        store = EmbeddedStore.open(tmp_path)
        assert await store.read("/ids/0") is None
        ids = await store.read("/ids")
        assert ids is not None and ids.children == ()
        await store.commit([Create("/ids/0", ephemeral=True)])
        node = await store.read("/ids/0")
        assert node is not None and node.czxid > czxid, "a broker epoch never comes twice"
        await store.close()

    asyncio.run(next_life(asyncio.run(killed())))


def test_a_torn_commit_is_cut(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def write() -> None:
        store = EmbeddedStore.open(tmp_path)
        await store.commit([Create("/a")])
        await store.close()

    async def read() -> tuple[Znode | None, Znode | None]:
        store = EmbeddedStore.open(tmp_path)
        nodes = await store.read("/a"), await store.read("/b")
        await store.commit([Create("/b")])
        await store.close()
        return nodes

    asyncio.run(write())
    journal = tmp_path / JOURNAL_NAME
    journal.write_bytes(journal.read_bytes() + b"\0\0\1\0torn")
    first = asyncio.run(read())
    assert first[0] is not None and first[1] is None
    assert "truncated 8 bytes" in caplog.text
    second = asyncio.run(read_back(tmp_path, "/b"))
    assert second is not None, "what is written after the cut is found"


def test_what_lay_behind_a_torn_commit_never_comes_back(tmp_path: Path) -> None:
    """The disk may have kept a later frame and lost an earlier one: neither was acknowledged."""

    async def write() -> tuple[int, int]:
        journal = Journal(tmp_path)
        store = EmbeddedStore(journal)
        await store.commit([Create("/a")])
        begin = journal.size_bytes
        together = asyncio.gather(store.commit([Create("/b")]), store.commit([Create("/c")]))
        await asyncio.sleep(0)  # both are written, and neither is on disk
        end = journal.size_bytes
        await together
        journal.close()
        return begin, end

    async def write_more() -> None:
        store = EmbeddedStore.open(tmp_path)
        await store.commit([Create("/d")])
        await store.close()

    begin, end = asyncio.run(write())
    content = bytearray((tmp_path / JOURNAL_NAME).read_bytes())
    content[begin] ^= 1
    (tmp_path / JOURNAL_NAME).write_bytes(content[:end])  # the seal never reached the disk
    asyncio.run(write_more())
    assert asyncio.run(read_back(tmp_path, "/a")) is not None
    assert asyncio.run(read_back(tmp_path, "/d")) is not None
    assert asyncio.run(read_back(tmp_path, "/c")) is None


async def read_back(directory: Path, path: str) -> Znode | None:
    store = EmbeddedStore.open(directory)
    try:
        return await store.read(path)
    finally:
        await store.close()


def test_the_journal_gives_way_to_a_snapshot(tmp_path: Path) -> None:
    async def write() -> None:
        store = EmbeddedStore(Journal(tmp_path), snapshot_at_bytes=1000)
        await store.commit([Create("/q")])
        for number in range(200):
            (path,) = await store.commit([Create("/q/n", b"%d" % number, sequential=True)])
            if number % 3:
                await store.commit([Delete(str(path))])
            await store.commit([Set("/q", b"%d" % number)])
        await store.close()

    async def read() -> None:
        store = EmbeddedStore.open(tmp_path)
        node = await store.read("/q")
        assert node is not None
        assert (node.data, node.version, node.czxid) == (b"199", 200, 1)
        await store.commit([Create("/q/n", sequential=True)])
        again = await store.read("/q")
        assert again is not None
        assert max(again.children) > max(node.children), "the counter is in the snapshot"
        await store.close()

    asyncio.run(write())
    assert (tmp_path / SNAPSHOT_NAME).exists()
    assert (tmp_path / JOURNAL_NAME).stat().st_size < 10_000
    asyncio.run(read())


@pytest.mark.parametrize("refused", ["the snapshot", "the directory"])
def test_a_snapshot_that_gets_no_descriptor_is_made_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    """The journal has everything as long as it is not emptied, which comes last."""
    real_open, is_scarce = os.open, [False]
    is_directory = refused == "the directory"

    def scarce(path: Path, *arguments: int) -> int:
        if is_scarce[0] and (Path(path) == tmp_path) is is_directory:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))
        return real_open(path, *arguments)

    monkeypatch.setattr(os, "open", scarce)

    async def test() -> None:
        store = EmbeddedStore(Journal(tmp_path), snapshot_at_bytes=100)
        is_scarce[0] = True
        for number in range(5):
            await store.commit([Create(f"/{number}", bytes(50))])
        is_scarce[0] = False
        await store.commit([Create("/last", bytes(50))])
        await store.close()
        again = EmbeddedStore(Journal(tmp_path))
        assert await again.read("/4") is not None
        assert await again.read("/last") is not None
        await again.close()

    asyncio.run(test())


def test_a_crash_between_snapshot_and_empty_journal_repeats_nothing(tmp_path: Path) -> None:
    async def write() -> bytes:
        own = Journal(tmp_path)
        store = EmbeddedStore(own, snapshot_at_bytes=10)
        store._snapshot_at_bytes = 1 << 30
        await store.commit([Create("/a"), Create("/a/n", sequential=True)])
        await store.commit([Set("/a", b"1")])
        journal = (tmp_path / JOURNAL_NAME).read_bytes()
        store._snapshot_at_bytes = 0
        await store.commit([Set("/a", b"2")])
        own.close()
        return journal

    old_journal = asyncio.run(write())
    assert (tmp_path / JOURNAL_NAME).stat().st_size < len(old_journal)
    (tmp_path / JOURNAL_NAME).write_bytes(old_journal)
    assert asyncio.run(read_back(tmp_path, "/a")) == Znode(b"2", 2, 1, 0, ("n0000000000",))


def test_a_damaged_snapshot_is_an_error(tmp_path: Path) -> None:
    (tmp_path / SNAPSHOT_NAME).write_bytes(b"\0\0\0\1\0\0\0\0x")
    with pytest.raises(CorruptData, match="damaged"):
        EmbeddedStore.open(tmp_path)


def test_the_files_are_plain_ones(tmp_path: Path) -> None:
    """A real Kafka refuses to start on a directory that it does not know."""

    async def write() -> None:
        store = EmbeddedStore(Journal(tmp_path), snapshot_at_bytes=1)
        await store.commit([Create("/a")])
        await store.close()

    asyncio.run(write())
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == sorted(
        [JOURNAL_NAME, SNAPSHOT_NAME]
    )
    assert all(path.is_file() for path in tmp_path.iterdir())


def test_no_other_process_writes_the_same_tree(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = EmbeddedStore.open(tmp_path)
        await store.commit([Create("/a")])
        with pytest.raises(ConfigError, match="in use: stop the broker"):
            EmbeddedStore.open(tmp_path)
        await store.commit([Create("/b")])
        await store.close()
        again = EmbeddedStore.open(tmp_path)
        assert await again.read("/b") is not None
        await again.close()

    asyncio.run(scenario())


def test_reading_only_beside_the_broker_that_writes(tmp_path: Path) -> None:
    """ZK-6: it sees what is on disk, changes nothing, and may not write."""

    async def scenario() -> None:
        store = EmbeddedStore(Journal(tmp_path), snapshot_at_bytes=300)
        await store.commit([Create("/ids"), Create("/ids/0", b"here", ephemeral=True)])
        for number in range(30):
            await store.commit([Create(f"/n{number}", b"x" * 20)])
            with (tmp_path / JOURNAL_NAME).open("ab") as file:
                file.write(b"\0\0\1\0half of the next one")
            before = {path: path.read_bytes() for path in tmp_path.iterdir()}
            reader = EmbeddedStore.open(tmp_path, read_only=True)
            assert reader.tree.nodes.keys() == store.tree.nodes.keys()
            node = await reader.read("/ids/0")
            assert node is not None and node.data == b"here"
            with pytest.raises(MetadataError, match="reading only"):
                await reader.commit([Create("/x")])
            await reader.close()
            assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
            os.truncate(tmp_path / JOURNAL_NAME, len(before[tmp_path / JOURNAL_NAME]) - 24)
        assert (tmp_path / SNAPSHOT_NAME).exists()
        await store.close()

    asyncio.run(scenario())


def test_a_reader_misses_nothing_when_the_journal_gives_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The snapshot that it reads after the journal has at least what the journal had."""

    async def scenario() -> None:
        journal = Journal(tmp_path)
        store = EmbeddedStore(journal)
        await store.commit([Create("/a")])
        read = Path.read_bytes

        def read_and_be_overtaken(path: Path) -> bytes:
            content = read(path)
            if path.name == JOURNAL_NAME:
                journal.replace(tree_to_bytes(store.tree))
            return content

        monkeypatch.setattr(Path, "read_bytes", read_and_be_overtaken)
        for _ in range(2):  # the second time the journal is empty already
            reader = EmbeddedStore.open(tmp_path, read_only=True)
            assert await reader.read("/a") is not None
        await store.close()

    asyncio.run(scenario())


def test_reading_only_where_there_is_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"has no barnabas-metadata\.journal"):
        EmbeddedStore.open(tmp_path, read_only=True)
    assert not list(tmp_path.iterdir())


def test_a_cancelled_commit_still_fires_its_watches(tmp_path: Path) -> None:
    """A client that disconnects during the write leaves no topic unnoticed."""

    async def scenario() -> None:
        store = EmbeddedStore.open(tmp_path)
        fired: list[str] = []
        store.watch("/a", lambda: fired.append("a"))
        commit = asyncio.ensure_future(store.commit([Create("/a")]))
        await asyncio.sleep(0)
        commit.cancel()
        with pytest.raises(asyncio.CancelledError):
            await commit
        assert fired == ["a"]
        assert await store.read("/a") is not None
        await store.close()

    asyncio.run(scenario())


def test_watches_fire_once_and_only_for_what_changed() -> None:
    async def scenario() -> None:
        store = EmbeddedStore()
        await store.commit([Create("/a"), Create("/b")])
        fired: list[str] = []
        store.watch("/a", lambda: fired.append("a"))
        store.watch("/b", lambda: fired.append("b"))
        store.watch("/c", lambda: fired.append("c"))
        await store.commit([Create("/a/child")])
        await store.commit([Set("/a", b"x")])
        assert fired == ["a"]
        await store.commit([Create("/c")])
        assert fired == ["a", "c"]
        with pytest.raises(BadVersion):
            await store.commit([Set("/b", b"x", 9)])
        assert fired == ["a", "c"]
        await store.close()

    asyncio.run(scenario())


def test_a_watch_that_is_set_again_and_again_is_one_watch() -> None:
    async def scenario() -> None:
        store = EmbeddedStore()
        event = asyncio.Event()
        for _ in range(3):
            store.watch("/a", event.set)
        assert len(store._watches["/a"]) == 1
        await store.close()

    asyncio.run(scenario())


def test_commits_that_come_together_share_the_disk(tmp_path: Path) -> None:
    """And each is answered only when an fsync that began after its write is over."""

    class CountingJournal(Journal):
        def __init__(self, directory: Path) -> None:
            super().__init__(directory)
            self.sync_rounds = 0

        def syncs(self) -> list[tuple[Callable[[], None], Callable[[OSError], None]]]:
            self.sync_rounds += 1
            return super().syncs()

    async def scenario() -> None:
        journal = CountingJournal(tmp_path)
        store = EmbeddedStore(journal)
        await asyncio.gather(*(store.commit([Create(f"/n{n}")]) for n in range(50)))
        assert 1 <= journal.sync_rounds <= 3
        await store.close()

    asyncio.run(scenario())


def test_after_a_failed_write_nothing_is_promised_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_write, is_broken = os.pwrite, [False]

    def write(fd: int, data: bytes, position: int) -> int:
        if is_broken[0]:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real_write(fd, data, position)

    monkeypatch.setattr(os, "pwrite", write)

    async def scenario() -> None:
        store = EmbeddedStore.open(tmp_path)
        await store.commit([Create("/a")])
        is_broken[0] = True
        with pytest.raises(OutcomeUnknown, match="journal failed"):
            await store.commit([Create("/b")])
        is_broken[0] = False
        with pytest.raises(OutcomeUnknown, match="journal failed"):
            await store.commit([Create("/c")])
        await store.close()

    asyncio.run(scenario())
    assert asyncio.run(read_back(tmp_path, "/a")) is not None
    assert asyncio.run(read_back(tmp_path, "/b")) is None


def test_a_closed_store_has_no_session() -> None:
    async def scenario() -> None:
        store = EmbeddedStore()
        await store.commit([Create("/a"), Create("/e", ephemeral=True)])
        states = [store.session_state]
        await store.close()
        await store.close()
        assert [*states, store.session_state] == [SessionState.CONNECTED, SessionState.EXPIRED]
        with pytest.raises(SessionExpired):
            await store.read("/a")
        with pytest.raises(SessionExpired):
            await store.commit([Create("/b")])

    asyncio.run(scenario())
