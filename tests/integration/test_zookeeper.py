"""ZooKeeper when it fails: cut links, restarts, sessions that end, strangers (ZK-5, ZK-6)."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import socket
import threading
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from barnabas.cluster.store import (
    Create,
    OutcomeUnknown,
    SessionExpired,
    SessionState,
    Set,
)
from barnabas.cluster.zookeeper import ZooKeeperStore, rights_of
from barnabas.cluster.zookeeper_requests import Commit
from barnabas.cluster.zookeeper_settings import Settings
from barnabas.errors import ConfigError
from tests.kit.metadata_stores import SESSION_MS, data_of, end_session, opened
from tests.kit.processes.zookeeper_process import ZooKeeperProcess, zookeeper_process
from tests.kit.processes.zookeeper_proxy import (
    MULTI,
    MULTI_READ,
    Cut,
    ZooKeeperProxy,
    zookeeper_proxy,
)
from tests.kit.waiting import until

CONNECTED, SUSPENDED, EXPIRED = SessionState


@pytest.fixture
def cut_off(
    zookeeper: ZooKeeperProcess, tmp_path: Path
) -> Callable[[Callable[[ZooKeeperStore, ZooKeeperStore, ZooKeeperProxy], Awaitable[None]]], None]:
    """Runs a scenario with a store behind a proxy, and another with a wire of its own."""

    def run(
        scenario: Callable[[ZooKeeperStore, ZooKeeperStore, ZooKeeperProxy], Awaitable[None]],
    ) -> None:
        async def scene() -> None:
            root = f"/{tmp_path.name}"
            async with (
                zookeeper_proxy(zookeeper.port) as proxy,
                opened(proxy.connect + root) as store,
                opened(zookeeper.connect + root) as other,
            ):
                await scenario(store, other, proxy)

        asyncio.run(scene())

    return run


CutOff = Callable[
    [Callable[[ZooKeeperStore, ZooKeeperStore, ZooKeeperProxy], Awaitable[None]]], None
]


# The start


@pytest.mark.parametrize("host", ["127.0.0.1", "no-such-host.invalid"])
def test_a_start_without_zookeeper_names_the_address(host: str) -> None:
    """ZK-6"""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and no server listens
        connect = f"{host}:{taken.getsockname()[1]}/chroot"
        with pytest.raises(ConfigError) as refused:
            asyncio.run(ZooKeeperStore.open(Settings(connect, 5000, 3000)))
    assert f"zookeeper.connect={connect}: no response from ZooKeeper" in str(refused.value)
    assert "3000 ms" in str(refused.value)
    assert ("refused" in str(refused.value)) == (host == "127.0.0.1")
    assert ("resolve" in str(refused.value)) == (host != "127.0.0.1")


def test_a_start_against_what_only_listens() -> None:
    """ZK-6: connections are taken, and none is answered."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        began_at = time.monotonic()
        with pytest.raises(ConfigError, match=f"127.0.0.1:{port}: no response from ZooKeeper"):
            asyncio.run(ZooKeeperStore.open(Settings(f"127.0.0.1:{port}", 30_000, 300)))
        assert time.monotonic() - began_at < 25, "not for as long as a session lives"


def test_one_of_several_hosts_is_enough(zookeeper: ZooKeeperProcess) -> None:
    """ZK-6"""

    async def scenario() -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            dead = f"127.0.0.1:{taken.getsockname()[1]}"
            async with opened(f"{dead},{zookeeper.connect},{dead}/several") as store:
                await store.commit([Create("/here")])
        async with opened(zookeeper.connect) as root:
            assert await root.read("/several/here") is not None

    asyncio.run(scenario())


def test_a_chroot_is_made_where_it_is_missing(zookeeper: ZooKeeperProcess) -> None:
    """ZK-6: the whole of it; but not by those who only read."""

    async def scenario() -> None:
        reading = Settings(f"{zookeeper.connect}/only/read", SESSION_MS)
        store = await ZooKeeperStore.open(reading, makes_chroot=False)
        assert await store.read("/") is None
        await store.close()
        async with opened(zookeeper.connect) as root, opened(f"{zookeeper.connect}/a/b") as below:
            assert await root.read("/only") is None
            assert await below.commit([Create("/x", b"1")]) == ["/x"]
            assert await data_of(root, "/a/b/x") == b"1"
            node = await below.read("/")
            assert node is not None and node.children == ("x",)
            fired: list[str] = []
            below.watch("/", lambda: fired.append("/"))
            below.watch("/x", lambda: fired.append("/x"))
            await below.read("/")
            await root.commit([Set("/a/b/x", b"2"), Create("/a/b/y")])
            await until(lambda: sorted(fired) == ["/", "/x"])
            async with opened(f"{zookeeper.connect}/a/b") as again:
                assert await data_of(again, "/x") == b"2"

    asyncio.run(scenario())


# Cut links


def test_a_cut_link_does_not_end_the_session(cut_off: CutOff) -> None:
    """ZK-5: what is asked meanwhile is answered afterwards, and a watch sees what it missed."""

    async def scenario(store: ZooKeeperStore, other: ZooKeeperStore, proxy: ZooKeeperProxy) -> None:
        await store.commit([Create("/mortal", None, True), Create("/a"), Create("/b")])
        states: list[SessionState] = []
        fired: list[str] = []
        threads: set[int] = set()

        def on_change(path: str) -> None:
            fired.append(path)
            threads.add(threading.get_ident())

        store.on_session(states.append)
        paths = ("/a", "/b", "/filled", "/made", "/unmade")
        await store.commit([Create("/filled"), Create("/unmade")])
        for path in paths:
            store.watch(path, partial(on_change, path))
        await store.read("/")
        session_id = store.session_id
        proxy.is_refusing = True
        proxy.break_all()
        await until(lambda: states == [SUSPENDED])
        assert store.session_state is SUSPENDED
        read = asyncio.ensure_future(store.read("/a"))
        commit = asyncio.ensure_future(store.commit([Create("/late")]))
        await other.commit([Set("/a", b"1"), Create("/made"), Create("/filled/x")])
        await other.commit([Set("/a", b"2")])
        await asyncio.sleep(0.3)
        assert not read.done() and not commit.done() and fired == []
        proxy.is_refusing = False
        node = await read
        assert node is not None and node.data == b"2"
        assert await commit == ["/late"]
        assert states == [SUSPENDED, CONNECTED] and store.session_id == session_id
        await until(lambda: sorted(fired) == ["/a", "/filled", "/made"])
        await other.commit([Set("/b", b"1"), Set("/a", b"3"), Set("/unmade", b"")])
        await until(lambda: sorted(fired) == ["/a", "/b", "/filled", "/made", "/unmade"])
        assert threads == {threading.get_ident()}, "the loop's thread alone"
        mortal = await other.read("/mortal")
        assert mortal is not None and mortal.owner == session_id

    cut_off(scenario)


@pytest.mark.parametrize("is_forwarded", [True, False])
def test_an_outcome_is_unknown_when_the_answer_is_lost(cut_off: CutOff, is_forwarded: bool) -> None:
    """ZK-5: a read afterwards shows what came of it."""

    async def scenario(store: ZooKeeperStore, other: ZooKeeperStore, proxy: ZooKeeperProxy) -> None:
        await store.commit([Create("/a", b"1")])
        for round_ in range(5):
            proxy.cut = Cut(MULTI, is_forwarded)
            with pytest.raises(OutcomeUnknown, match="/a: "):
                await store.commit([Set("/a", b"%d" % round_), Create("/n", sequential=True)])
            after = await store.read("/a")
            assert after is not None and after.version == (round_ + 1 if is_forwarded else 0)
            assert after == await other.read("/a")

    cut_off(scenario)


def test_a_commit_that_is_too_large_for_the_server(zookeeper: ZooKeeperProcess) -> None:
    """It closes the connection without a word; the error says what it may have been."""

    async def scenario() -> None:
        async with opened(zookeeper.connect) as store:
            with pytest.raises(OutcomeUnknown, match=r"20000\d\d bytes may exceed its jute"):
                await store.commit([Create("/large", b"x" * 2_000_000)])
            assert await store.read("/large") is None

    asyncio.run(scenario())


def test_a_link_that_is_cut_all_the_time(cut_off: CutOff) -> None:
    """Every read is answered, every commit happens once, or its outcome is unknown."""

    async def scenario(store: ZooKeeperStore, other: ZooKeeperStore, proxy: ZooKeeperProxy) -> None:
        await store.commit([Create("/counter", b"0")])
        unknown = certain = 0
        # After the sync, reads and commits take turns: the second and the fourth cut a commit.
        proxy.request_limits = itertools.cycle((12, 9, 14, 17))
        proxy.break_all()
        for _ in range(150):
            node = await store.read("/counter")
            assert node is not None and certain <= node.version <= certain + unknown
            try:
                assert await store.commit([Set("/counter", b"", node.version)]) == [
                    node.version + 1
                ]
                certain += 1
            except OutcomeUnknown:
                unknown += 1
        node = await other.read("/counter")
        assert node is not None and certain <= node.version <= certain + unknown
        assert certain and unknown
        print(f"{certain} commits answered, {unknown} of unknown outcome")

    cut_off(scenario)


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda _: b"\0\0\0\x10" + b"\x7f" * 16, id="to-another-question"),
        pytest.param(lambda frame: frame[:16] + b"\x80" * 4 + frame[20:], id="unknown-error"),
    ],
)
def test_a_server_that_answers_nonsense_is_left_for_a_new_session(
    cut_off: CutOff, spoil: Callable[[bytes], bytes]
) -> None:
    async def scenario(store: ZooKeeperStore, other: ZooKeeperStore, proxy: ZooKeeperProxy) -> None:
        await store.commit([Create("/a")])
        states: list[SessionState] = []
        store.on_session(states.append)
        proxy.spoil = spoil
        with pytest.raises(OutcomeUnknown):
            await store.commit([Create("/b")])
        await until(lambda: EXPIRED in states)
        proxy.spoil = None
        node = None
        async with asyncio.timeout(60):
            while node is None:
                await until(lambda: store.session_state is CONNECTED)
                with contextlib.suppress(SessionExpired):  # of one that heard nonsense as well
                    node = await store.read("/b")

    cut_off(scenario)


def test_a_server_before_3_6_is_asked_node_by_node(cut_off: CutOff) -> None:
    async def scenario(store: ZooKeeperStore, other: ZooKeeperStore, proxy: ZooKeeperProxy) -> None:
        await store.commit([Create("/t"), *(Create(f"/t/{n}", b"%d" % n) for n in range(700))])
        wanted = ["/t/3", "/none", "/t", *(f"/t/{n}" for n in range(600))]
        expected = await store.read_many(wanted)
        proxy.renamed[MULTI_READ] = 99
        proxy.requests.clear()
        found = await store.read_many(wanted)
        assert [node and node._replace(children=()) for node in found] == [
            node and node._replace(children=()) for node in expected
        ]
        assert found[2] is not None and len(found[2].children) == 700
        assert proxy.requests.count(MULTI_READ) == 1, "asked once, and never again"
        assert await store.read("/none") is None

    cut_off(scenario)


# Sessions that end


def test_nothing_of_an_old_session_happens_in_the_next_one(
    cut_off: CutOff, zookeeper: ZooKeeperProcess
) -> None:
    """ZK-5"""

    async def scenario(store: ZooKeeperStore, other: ZooKeeperStore, proxy: ZooKeeperProxy) -> None:
        states: list[SessionState] = []
        fired: list[str] = []
        store.on_session(states.append)
        store.watch("/a", lambda: fired.append("/a"))
        await store.commit([Create("/mortal", None, True)])
        first = store.session_id
        proxy.is_refusing = True
        proxy.break_all()
        await until(lambda: states == [SUSPENDED])
        waiting = [asyncio.ensure_future(store.commit([Create(f"/w{n}")])) for n in range(3)]
        waiting += [asyncio.ensure_future(store.commit([]))]
        read = asyncio.ensure_future(store.read("/mortal"))
        await end_session(store, zookeeper.connect)
        proxy.is_refusing = False
        for each in (*waiting, read):
            with pytest.raises(SessionExpired):
                await each
        assert fired == ["/a"]
        await until(lambda: states[-1] is CONNECTED)
        assert states == [SUSPENDED, EXPIRED, CONNECTED] and store.session_id != first
        # One that kazoo has queued already, as if the session had changed just before.
        commit = Commit(
            [Create("/ghost")],
            f"{store._chroot}",
            partial(rights_of, is_protected=False),
            partial(store._connection.is_in_session, first),
        )
        assert await store._connection.send(commit) == []
        assert commit.is_void and not commit.was_sent
        node = await other.read("/")
        assert node is not None and node.children == ()
        await store.commit([Create("/alive")])

    cut_off(scenario)


def test_a_session_that_ends_and_begins_before_anybody_looks(zookeeper: ZooKeeperProcess) -> None:
    """ZK-5: as after a pause of the whole process."""

    async def scenario() -> None:
        async with opened(zookeeper.connect) as store:
            store._on_state(SUSPENDED, 0)
            waiting = asyncio.ensure_future(store.commit([Create("/ghost")]))
            await asyncio.sleep(0.01)
            store._on_state(EXPIRED, 0)
            store._on_state(CONNECTED, store.session_id + 1)
            with pytest.raises(SessionExpired):
                await waiting
            assert await store.read("/ghost") is None

    asyncio.run(scenario())


def test_a_session_that_zookeeper_gives_up_while_the_link_is_cut(
    tmp_path: Path, zookeeper: ZooKeeperProcess
) -> None:
    """ZK-5: the client learns of it when it is back, and not before."""

    async def scenario() -> None:
        root = f"/{tmp_path.name}"
        async with (
            zookeeper_proxy(zookeeper.port) as proxy,
            opened(zookeeper.connect + root) as other,
            opened(Settings(proxy.connect + root, 4000)) as store,
        ):
            await store.commit([Create("/mortal", None, True)])
            gone = asyncio.Event()
            other.watch("/mortal", gone.set)
            proxy.is_refusing = True
            proxy.break_all()
            await asyncio.wait_for(gone.wait(), 60)
            assert store.session_state is SUSPENDED
            proxy.is_refusing = False
            await until(lambda: store.session_state is CONNECTED)
            assert await store.read("/mortal") is None

    asyncio.run(scenario())


@pytest.mark.parametrize("how", ["kill", pytest.param("stop", marks=pytest.mark.slow)])
def test_zookeeper_is_stopped_and_comes_back(
    tmp_path: Path, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """ZK-6: a loss is retried for ever, with a word about it, and the session lives on."""

    async def scenario(server: ZooKeeperProcess) -> None:
        loop = asyncio.get_running_loop()
        async with opened(Settings(server.connect, 60_000)) as store:
            await store.commit([Create("/a", b"1"), Create("/mortal", None, True)])
            fired: list[str] = []
            store.watch("/a", lambda: fired.append("/a"))
            await store.read("/a")
            session_id = store.session_id
            await loop.run_in_executor(None, getattr(server, how))
            await until(lambda: store.session_state is SUSPENDED)
            waiting = asyncio.ensure_future(store.commit([Create("/b")]))
            await asyncio.sleep(0.4)
            await loop.run_in_executor(None, server.start)
            assert await waiting == ["/b"]
            assert store.session_id == session_id and fired == []
            mortal = await store.read("/mortal")
            assert mortal is not None and mortal.owner == session_id
            await store.commit([Set("/a", b"2")])
            await until(lambda: fired == ["/a"])

    caplog.set_level(logging.INFO)
    with zookeeper_process(tmp_path) as server:
        asyncio.run(scenario(server))
    assert caplog.text.count(f"connection to ZooKeeper at {server.connect} lost") == 1
    assert caplog.text.count("reconnected to ZooKeeper") == 1


@pytest.mark.slow
def test_a_connection_that_is_taken_and_forgotten_costs_no_session(
    zookeeper: ZooKeeperProcess,
) -> None:
    """ZK-5: as a server does that is just starting."""

    async def scenario() -> None:
        async with (
            zookeeper_proxy(zookeeper.port) as proxy,
            opened(Settings(proxy.connect, 60_000)) as store,
        ):
            session_id = store.session_id
            proxy.is_silent = True
            proxy.break_all()
            await until(lambda: store.session_state is SUSPENDED and proxy.connection_count)
            proxy.is_silent = False
            await until(lambda: store.session_state is CONNECTED, within_s=40)
            assert store.session_id == session_id

    asyncio.run(scenario())


def test_a_server_that_hangs_is_noticed(tmp_path: Path) -> None:
    """ZK-5: silence is a loss too."""

    async def scenario(server: ZooKeeperProcess) -> None:
        async with opened(Settings(server.connect, 4000)) as store:
            server.pause()
            await until(lambda: store.session_state is SUSPENDED)
            read = asyncio.ensure_future(store.read("/zookeeper"))
            await asyncio.sleep(0.2)
            assert not read.done()
            server.resume()
            try:
                assert await read is not None
            except SessionExpired:  # it was paused for longer than the session lives
                await until(lambda: store.session_state is CONNECTED)

    with zookeeper_process(tmp_path) as server:
        asyncio.run(scenario(server))


def test_closing_while_there_is_no_zookeeper(tmp_path: Path) -> None:
    async def scenario(server: ZooKeeperProcess) -> None:
        store = await ZooKeeperStore.open(Settings(server.connect, 2000))
        await asyncio.get_running_loop().run_in_executor(None, server.kill)
        await until(lambda: store.session_state is SUSPENDED)
        waiting = asyncio.ensure_future(store.read("/"))
        await asyncio.sleep(0)
        async with asyncio.timeout(60):
            await store.close()
        with pytest.raises(SessionExpired, match="closed"):
            await waiting

    with zookeeper_process(tmp_path) as server:
        asyncio.run(scenario(server))


# Strangers
