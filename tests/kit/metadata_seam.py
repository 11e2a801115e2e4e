"""The suite that every implementation of the metadata seam passes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from barnabas.cluster.store import (
    BadVersion,
    Check,
    Create,
    Delete,
    MetadataError,
    MetadataStore,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    SessionExpired,
    SessionState,
    Set,
    Znode,
)
from tests.kit.metadata_stores import Stores
from tests.kit.raw_client import PATIENCE_S
from tests.kit.waiting import until

Run = Callable[[Callable[[Stores], Awaitable[None]]], None]
"""Runs a scenario on a tree of its own."""

CHANGES: list[tuple[str, list[Operation]]] = [
    ("/new", [Create("/new")]),
    ("/a", [Set("/a", b"2")]),
    ("/a", [Create("/a/c")]),
    ("/a", [Delete("/a/b")]),
    ("/a/b", [Delete("/a/b")]),
    ("/a/b", [Set("/a", b"2"), Set("/a/b", b"2")]),
]


async def node_of(store: MetadataStore, path: str) -> Znode:
    node = await store.read(path)
    assert node is not None, path
    return node


async def settled(store: MetadataStore) -> None:
    """Whatever was on its way to this session when this was called has come."""
    await store.read("/")
    await asyncio.sleep(0.02)


class MetadataSeamSuite:
    """Subclassed where the `run` fixture gives the stores to be tried."""

    def test_a_node_from_its_creation_to_its_end(self, run: Run) -> None:
        async def scenario(stores: Stores) -> None:
            store = await stores.open()
            root = await node_of(store, "/")
            assert (root.children, root.owner) == ((), 0)
            assert await store.read("/a") is None
            assert await store.commit([Create("/a", b"1")]) == ["/a"]
            made = await node_of(store, "/a")
            assert made == Znode(b"1", 0, made.czxid, 0, ())
            assert await store.commit([Set("/a", b"")]) == [1]
            assert await store.commit([Set("/a", None, 1)]) == [2]
            assert await node_of(store, "/a") == Znode(None, 2, made.czxid, 0, ())
            assert await store.commit([Check("/a", 2)]) == [2]
            assert await store.commit([Delete("/a", 2)]) == [2]
            assert await store.read("/a") is None
            await store.commit([Create("/a", b"")])
            again = await node_of(store, "/a")
            assert again.data == b"" and again.version == 0
            assert again.czxid > made.czxid, "a number that never comes twice"
            assert await store.commit([]) == []

        run(scenario)

    def test_operations_of_a_commit_see_those_before_them(self, run: Run) -> None:
        async def scenario(stores: Stores) -> None:
            store = await stores.open()
            results = await store.commit(
                [Create("/a"), Create("/a/b", b"x"), Set("/a/b", b"y", 0), Check("/a/b", 1)]
            )
            assert results == ["/a", "/a/b", 1, 1]
            a, b = await node_of(store, "/a"), await node_of(store, "/a/b")
            assert a.czxid == b.czxid and a.children == ("b",) and b.data == b"y"
            await store.commit([Delete("/a/b"), Delete("/a"), Create("/a", b"new")])
            assert (await node_of(store, "/a")).children == ()

        run(scenario)

    @pytest.mark.parametrize(
        ("operation", "error"),
        [
            (Create("/a"), NodeExists),
            (Create("/missing/b"), NoNode),
            (Create("/a/mortal/b"), NoNode),
            (Set("/missing", b""), NoNode),
            (Set("/a", b"", 7), BadVersion),
            (Delete("/missing"), NoNode),
            (Delete("/a"), NotEmpty),
            (Delete("/a/b", 7), BadVersion),
            (Check("/a", 7), BadVersion),
            (Check("/missing", 0), NoNode),
        ],
    )
    def test_a_commit_does_all_or_nothing(
        self, run: Run, operation: Operation, error: type[MetadataError]
    ) -> None:
        """ZK-3: a fenced controller's whole commit fails, and names the path that refused it."""

        async def scenario(stores: Stores) -> None:
            store = await stores.open()
            await store.commit(
                [Create("/a", b"1"), Create("/a/b"), Create("/a/mortal", None, True)]
            )
            with pytest.raises(error) as refused:
                await store.commit([Set("/a", b"2"), Create("/new"), operation, Create("/newer")])
            assert refused.value.path == operation.path
            assert (await node_of(store, "/a")).data == b"1"
            assert (await node_of(store, "/")).children == ("a",)

        run(scenario)

    def test_sequential_names_are_counted_by_the_parent(self, run: Run) -> None:
        async def scenario(stores: Stores) -> None:
            store = await stores.open()
            await store.commit([Create("/q")])
            first = await store.commit([Create("/q/n_", b"0", sequential=True)])
            assert first == ["/q/n_0000000000"]
            await store.commit([Delete("/q/n_0000000000"), Create("/q/other")])
            two = [Create("/q/n_", sequential=True), Create("/q/m", None, True, sequential=True)]
            assert await store.commit(two) == ["/q/n_0000000002", "/q/m0000000003"]
            owner = (await node_of(store, "/q/m0000000003")).owner
            assert owner == store.session_id

        run(scenario)

    def test_an_ephemeral_node_goes_with_its_session(self, run: Run) -> None:
        """ZK-2"""

        async def scenario(stores: Stores) -> None:
            one, other = await stores.open(), await stores.open()
            assert one.session_id != other.session_id and 0 not in (
                one.session_id,
                other.session_id,
            )
            await one.commit([Create("/ids"), Create("/ids/1", b"here", ephemeral=True)])
            assert (await node_of(other, "/ids/1")).owner == one.session_id
            fired: list[str] = []
            other.watch("/ids", lambda: fired.append("children"))
            other.watch("/ids/1", lambda: fired.append("node"))
            await settled(other)
            await one.close()
            await until(lambda: len(fired) == 2)
            assert await other.read("/ids/1") is None
            assert (await node_of(other, "/ids")).children == ()
            for use in (one.read("/ids"), one.commit([Create("/x")]), one.commit([])):
                with pytest.raises(SessionExpired):
                    await use
            assert one.session_state is SessionState.EXPIRED
            await one.close()

        run(scenario)

    @pytest.mark.parametrize(("path", "change"), CHANGES)
    def test_a_watch_fires_once(self, run: Run, path: str, change: list[Operation]) -> None:
        async def scenario(stores: Stores) -> None:
            store, other = await stores.open(), await stores.open()
            await store.commit([Create("/a", b"1"), Create("/a/b")])
            before = await store.read(path)
            seen: list[object] = []

            def fired() -> None:
                seen.append(asyncio.ensure_future(store.read(path)))

            store.watch(path, fired)
            store.watch(path, fired)
            await store.commit([Check("/a", 0)])
            await settled(store)
            assert seen == [], "nothing has changed yet"
            await other.commit(change)
            await until(lambda: bool(seen))
            read = seen[0]
            assert isinstance(read, asyncio.Future) and await read != before
            await other.commit([Create("/later")])
            await other.commit([Set("/a", b"3")])
            await settled(store)
            assert len(seen) == 1, "once, and for a callback that was given twice as well"

        run(scenario)

    def test_a_watch_is_deaf_to_what_is_below_its_children(self, run: Run) -> None:
        async def scenario(stores: Stores) -> None:
            store = await stores.open()
            await store.commit([Create("/a"), Create("/a/b"), Create("/a/b/c")])
            fired: list[str] = []
            store.watch("/a", lambda: fired.append("a"))
            await store.commit(
                [Set("/a/b", b"x"), Create("/a/b/d"), Create("/e"), Delete("/a/b/c")]
            )
            await settled(store)
            assert fired == []
            await store.commit([Delete("/a/b/d"), Delete("/a/b")])
            await until(lambda: fired == ["a"])

        run(scenario)

    def test_a_watch_that_is_set_again_misses_nothing(self, run: Run) -> None:
        """Watch, then read: whatever is not in what was read fires."""

        async def scenario(stores: Stores) -> None:
            store, other = await stores.open(), await stores.open()
            await store.commit([Create("/n", b"0")])
            seen: list[bytes | None] = []
            wake = asyncio.Event()

            async def follow() -> None:
                while not seen or seen[-1] != b"200":
                    wake.clear()
                    store.watch("/n", wake.set)
                    seen.append((await node_of(store, "/n")).data)
                    if seen[-1] != b"200":
                        await wake.wait()

            following = asyncio.ensure_future(follow())
            for number in range(1, 201):
                await other.commit([Set("/n", b"%d" % number)])
            await asyncio.wait_for(following, PATIENCE_S)
            assert seen == sorted(seen, key=lambda data: int(data or b"")), "never backwards"

        run(scenario)

    def test_a_session_that_expires(self, run: Run) -> None:
        """ZK-5: every listener is notified before the next session can do anything."""

        async def scenario(stores: Stores) -> None:
            store, other = await stores.open(), await stores.open()
            first = store.session_id
            await store.commit([Create("/mortal", None, True), Create("/stays")])
            states: list[SessionState] = []
            fired: list[SessionState] = []
            store.on_session(states.append)
            store.watch("/stays", lambda: fired.append(store.session_state))
            await settled(store)
            await stores.expire(store)
            await until(lambda: states[-1:] == [SessionState.CONNECTED])
            changes = [state for state in states if state is not SessionState.SUSPENDED]
            assert changes == [SessionState.EXPIRED, SessionState.CONNECTED]
            assert fired == [SessionState.EXPIRED]
            assert store.session_id != first
            await until(lambda: store.session_state is SessionState.CONNECTED)
            assert await store.read("/mortal") is None and await store.read("/stays") is not None
            store.watch("/stays", lambda: fired.append(store.session_state))
            await store.commit([Create("/mortal", None, True)])
            assert (await node_of(other, "/mortal")).owner == store.session_id
            await other.commit([Set("/stays", b"x")])
            await until(lambda: len(fired) == 2)

        run(scenario)

    def test_many_nodes_at_once(self, run: Run) -> None:
        async def scenario(stores: Stores) -> None:
            store = await stores.open()
            await store.commit([Create("/t")])
            created = [Create(f"/t/{n}", b"%d" % n) for n in range(1200)]
            assert len(await store.commit(created)) == 1200
            await store.commit([Create("/t/7/x"), Create("/größe", b"\0" * 400_000)])
            wanted = ["/t/7", "/none", *(f"/t/{n}" for n in range(1199, -1, -1)), "/none", "/größe"]
            found = await store.read_many(wanted)
            assert [None if node is None else node.data for node in found] == [
                b"7", None, *(b"%d" % n for n in range(1199, -1, -1)), None, b"\0" * 400_000
            ]  # fmt: skip
            assert found[0] is not None and found[0].children == ("x",)
            assert len((await node_of(store, "/t")).children) == 1200
            assert await store.read_many([]) == []

        run(scenario)
