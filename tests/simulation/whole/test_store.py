"""The simulated ZooKeeper: the seam's own suite, and what goes wrong with connections."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context, ContextVar
from random import Random
from typing import Any

import pytest

from barnabas.cluster.store import (
    Check,
    Create,
    Delete,
    MetadataError,
    MetadataStore,
    NodeExists,
    OutcomeUnknown,
    SessionExpired,
    SessionState,
    Set,
)
from barnabas.errors import ConfigError
from simulation.whole.loop import VirtualLoop
from simulation.whole.store import SimStore
from simulation.whole.store_link import Lane, Timing
from simulation.whole.store_session import SimSession
from tests.kit.metadata_seam import MetadataSeamSuite, Run
from tests.kit.metadata_stores import Stores
from tests.kit.waiting import until

QUICK = Timing(least_ms=0.0, most_ms=0.2, slow_ms=1.0, lag_ms=0.0)
LAGGING = QUICK._replace(lag_ms=100.0)
CONNECTED, SUSPENDED, EXPIRED = SessionState


class SimStores:
    """A tree of its own, whose servers do not lag: the suite has no patience with that."""

    def __init__(self) -> None:
        self._store = SimStore(Random(1), QUICK)
        self._opened: list[SimSession] = []

    async def open(self) -> MetadataStore:
        self._opened.append(self._store.session())
        return self._opened[-1]

    async def expire(self, store: MetadataStore) -> None:
        before = store.session_id
        self._store.expire(before)
        await until(lambda: store.session_id != before)

    async def close(self) -> None:
        for session in self._opened:
            await session.close()


@pytest.fixture
def run() -> Run:
    async def on_its_own(scenario: Callable[[Stores], Awaitable[None]]) -> None:
        stores = SimStores()
        await scenario(stores)
        await stores.close()

    return lambda scenario: asyncio.run(on_its_own(scenario))


class TestSimulatedStore(MetadataSeamSuite):
    pass


def _play(scenario: Coroutine[Any, Any, None], seed: int = 1) -> None:
    """In virtual time; nothing may be left unsaid."""
    loop = VirtualLoop(seed)
    try:
        loop.run(scenario)
        assert loop.findings == []
    finally:
        loop.close()


def _watched(session: SimSession) -> list[SessionState]:
    states: list[SessionState] = []
    session.on_session(states.append)
    return states


def test_a_reset_connection_is_replaced_within_the_session() -> None:
    async def scenario() -> None:
        store = SimStore(Random(2), QUICK)
        session, other = store.session(), store.session()
        await session.commit([Create("/mine", None, True), Create("/n"), Create("/same")])
        fired: list[str] = []
        states = _watched(session)
        for path in ("/n", "/same"):
            session.watch(path, lambda path=path: fired.append(path))  # type: ignore[misc]
        await session.read("/")
        first = session.session_id
        session.reset()
        await until(lambda: states == [SUSPENDED])
        session.watch("/late", lambda: fired.append("/late"))
        await other.commit([Set("/n", b"while it was away")])
        waiting = asyncio.ensure_future(session.commit([Create("/later")]))
        await until(lambda: states == [SUSPENDED, CONNECTED])
        assert await waiting == ["/later"]
        assert session.session_id == first
        assert await other.read("/mine") is not None
        await until(lambda: sorted(fired) == ["/late", "/n"])
        await other.commit([Set("/same", b"1")])
        await until(lambda: "/same" in fired)

    _play(scenario())


def test_a_commit_whose_answer_is_lost_may_have_happened_or_happen_yet() -> None:
    """But not any more when there is a connection again, so that a read shows what came of it."""

    async def outcome(seed: int, slow_ms: float = 2) -> tuple[str, bool, bool]:
        store = SimStore(Random(seed), Timing(1, 2, slow_ms, 0))
        session = store.session(500)
        commit = asyncio.ensure_future(session.commit([Create("/n")]))
        await asyncio.sleep(0.001 * (seed % 4))
        session.reset()
        try:
            await commit
            result = "done"
        except OutcomeUnknown:
            result = "unknown"
        was_there = "/n" in store.tree.nodes
        is_there = await session.read("/n") is not None
        await asyncio.sleep(1)
        assert is_there == ("/n" in store.tree.nodes)
        await session.close()
        return result, was_there, is_there

    async def scenario() -> None:
        found = {await outcome(seed) for seed in range(60)}
        assert found == {
            ("done", True, True),
            ("unknown", True, True),
            ("unknown", False, True),
            ("unknown", False, False),
        }
        for seed in range(100):
            await outcome(4 * seed, slow_ms=400)

    _play(scenario())


def test_a_slow_message_holds_up_those_behind_it() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        lane = Lane(Context(), Random(1), Timing(1, 1, 100, 0))
        arrived: list[tuple[int, float]] = []
        for number in range(300):
            lane.send(lambda number=number: arrived.append((number, loop.time())))
            await asyncio.sleep(0.001)
        await until(lambda: len(arrived) == 300)
        assert [number for number, _ in arrived] == list(range(300))
        instants = [at for _, at in arrived]
        assert instants == sorted(instants)
        assert max(instants.count(at) for at in instants) > 5, "together, after a slow one"

    _play(scenario())


def test_what_is_cut_off_is_over_before_its_owner_knows() -> None:
    """ZK-5"""

    async def scenario() -> None:
        store = SimStore(Random(3), QUICK)
        session, other = store.session(600), store.session(600)
        await session.commit([Create("/mine", None, True), Create("/n")])
        first, states, fired = session.session_id, _watched(session), list[SessionState]()
        session.watch("/n", lambda: fired.append(session.session_state))
        gone: list[int] = []
        other.watch("/mine", lambda: gone.append(session.session_id))
        await session.read("/")
        session.cut()
        commits = [asyncio.ensure_future(session.commit([Set("/n", b"1")]))]
        read = asyncio.ensure_future(session.read("/n"))
        await until(lambda: states == [SUSPENDED])
        commits.append(asyncio.ensure_future(session.commit([Set("/n", b"2")])))
        await until(lambda: gone == [first])
        assert states == [SUSPENDED] and await other.read("/mine") is None
        await asyncio.sleep(0.3)
        assert states == [SUSPENDED], "no server can have notified it"
        session.mend()
        await until(lambda: states == [SUSPENDED, EXPIRED, CONNECTED])
        assert fired == [EXPIRED] and session.session_id != first
        with pytest.raises(OutcomeUnknown):
            await commits[0]
        for begun in (commits[1], read):
            with pytest.raises(SessionExpired):
                await begun
        node = await session.read("/n")
        assert node is not None and node.data is None, "nothing begun before happens afterwards"
        await session.commit([Create("/mine", None, True)])

    _play(scenario())


def test_a_short_cut_holds_things_up_and_no_more() -> None:
    async def scenario() -> None:
        store = SimStore(Random(4), QUICK)
        session = store.session(3000)
        states = _watched(session)
        session.cut()
        commit = asyncio.ensure_future(session.commit([Create("/n")]))
        await asyncio.sleep(0.1)
        assert not commit.done() and "/n" not in store.tree.nodes
        session.mend()
        mended_at = asyncio.get_running_loop().time()
        assert await commit == ["/n"] and states == []
        assert asyncio.get_running_loop().time() - mended_at < 0.05

    _play(scenario())


def test_while_all_servers_are_away_no_session_ends() -> None:
    async def scenario() -> None:
        store = SimStore(Random(5), QUICK)
        sessions = [store.session(400) for _ in range(3)]
        await sessions[0].commit([Create("/mine", None, True)])
        states = [_watched(session) for session in sessions]
        store.stop()
        await asyncio.sleep(0.01)
        assert states == [[SUSPENDED]] * 3, "a connection that breaks is noticed"
        with pytest.raises(ConfigError):
            store.session()
        read = asyncio.ensure_future(sessions[1].read("/mine"))
        await asyncio.sleep(1)
        assert not read.done()
        store.start()
        assert await read is not None
        await until(lambda: states == [[SUSPENDED, CONNECTED]] * 3)
        assert [session.session_id for session in sessions] == [1, 2, 3]
        sessions[0].cut()
        await until(lambda: "/mine" not in store.tree.nodes)

    _play(scenario())


OWNER: ContextVar[str] = ContextVar("owner", default="no owner")


def test_callbacks_run_in_their_owners_context_and_end_with_it() -> None:
    async def scenario() -> None:
        store = SimStore(Random(6), QUICK)
        seen: list[str] = []

        def begin() -> SimSession:
            OWNER.set("one")
            return store.session(300)

        context = Context()
        session = context.run(begin)
        session.on_session(lambda state: seen.append(OWNER.get()))
        session.watch("/n", lambda: seen.append(OWNER.get()))
        await session.commit([Create("/n")])
        store.expire(session.session_id)
        await until(lambda: len(seen) == 4)
        session.reset()
        await until(lambda: len(seen) == 6)
        assert seen == ["one"] * 6

    _play(scenario())


def test_a_killed_owners_commit_arrives_and_its_session_ends_in_time() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        store = SimStore(Random(7), QUICK)
        watcher, victim = store.session(), loop.life("victim")
        session = victim.run(store.session, 300)
        await victim.call(session.commit([Create("/mine", None, True)]))
        gone: list[float] = []
        heard: list[str] = []
        watcher.watch("/mine", lambda: gone.append(loop.time()))
        session.watch("/mine", lambda: heard.append("of its own end"))
        states = _watched(session)
        await watcher.read("/")
        last = victim.start(session.commit([Create("/last")]))
        await asyncio.sleep(0)
        victim.kill()
        killed_at = loop.time()
        await until(lambda: bool(gone))
        assert 0.19 < gone[0] - killed_at < 0.31, "the servers wait for it"
        assert "/last" in store.tree.nodes and not last.done()
        assert (heard, states) == ([], [])

    _play(scenario())


def test_a_paused_owner_learns_late_that_its_session_is_over() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        store = SimStore(Random(12), QUICK)
        life = loop.life("sleeper")
        session = life.run(store.session, 600)
        states = _watched(session)
        await life.call(session.commit([Create("/mine", None, True), Create("/n")]))
        life.pause()
        await asyncio.sleep(1)
        assert "/mine" not in store.tree.nodes
        assert (session.session_state, states) == (CONNECTED, [])
        loop.resume(life)
        with pytest.raises((OutcomeUnknown, SessionExpired)):
            await life.call(session.commit([Set("/n", b"of a zombie")]))
        await until(lambda: states == [SUSPENDED, EXPIRED, CONNECTED])
        assert store.tree.nodes["/n"].data is None

    _play(scenario())


def test_a_run_is_the_same_for_the_same_seed() -> None:
    def run(seed: int) -> list[tuple[int, str]]:
        events: list[tuple[int, str]] = []

        async def scenario() -> None:
            loop = asyncio.get_running_loop()
            assert isinstance(loop, VirtualLoop)
            store = SimStore(Random(seed))

            async def count(session: SimSession, name: str) -> None:
                for number in range(20):
                    try:
                        await session.commit([Create(f"/{name}{number}", None, number % 3 == 0)])
                    except MetadataError as error:
                        events.append((loop.now_us, f"{name}: {type(error).__name__}"))
                        await asyncio.sleep(0.05)
                    events.append((loop.now_us, f"{name}: {number}"))

            sessions = [store.session(300) for _ in range(3)]
            tasks = [
                asyncio.ensure_future(count(session, name))
                for session, name in zip(sessions, "abc", strict=True)
            ]
            await asyncio.sleep(0.02)
            sessions[0].cut()
            sessions[1].reset()
            await asyncio.sleep(0.5)
            sessions[0].mend()
            for task in tasks:
                await task

        _play(scenario(), seed)
        return events

    assert run(1) == run(1) != run(2)


def test_servers_lag_but_never_behind_what_a_session_has_seen() -> None:
    async def scenario() -> None:
        store = SimStore(Random(8), LAGGING)
        sessions = [store.session() for _ in range(6)]
        await sessions[0].commit([Create("/n", b"0")])
        seen = {session.session_id: 0 for session in sessions}
        stale = 0
        for number in range(1, 60):
            writer = sessions[number % 2]
            await writer.commit([Set("/n", b"%d" % number)])
            for session in sessions:
                if number % 4 == 0 and session is sessions[number % 3]:
                    session.reset()
                node = await session.read("/n")
                found = int(node.data or b"0") if node is not None else 0
                assert found >= seen[session.session_id]
                assert session is not writer or found == number
                stale += found < number
                seen[session.session_id] = found
        assert stale, "no session has seen anything old"

    _play(scenario())


def test_a_watch_then_a_read_misses_nothing_through_resets() -> None:
    async def scenario() -> None:
        store = SimStore(Random(9), LAGGING)
        reader, writer = store.session(), store.session()
        await writer.commit([Create("/n", b"0")])
        last = b"0"

        async def follow() -> None:
            nonlocal last
            wake = asyncio.Event()
            while last != b"40":
                wake.clear()
                reader.watch("/n", wake.set)
                node = await reader.read("/n")
                last = b"0" if node is None else node.data or b""
                if last != b"40":
                    await wake.wait()

        following = asyncio.ensure_future(follow())
        for number in range(1, 41):
            await writer.commit([Set("/n", b"%d" % number)])
            if number % 10 == 0:
                reader.reset()
        await asyncio.wait_for(following, 20)

    _play(scenario())


def test_the_order_of_one_session_is_kept_and_errors_come_back() -> None:
    async def scenario() -> None:
        store = SimStore(Random(10), Timing(0, 5, 5, 5))
        session = store.session()
        operations = [[Create("/n")], [Create("/n")], [Check("/n", 0)], [Delete("/n")]]
        begun = [asyncio.ensure_future(session.commit(each)) for each in operations]
        read = asyncio.ensure_future(session.read("/n"))
        assert await begun[0] == ["/n"]
        with pytest.raises(NodeExists):
            await begun[1]
        assert (await begun[2], await begun[3], await read) == ([0], [0], None)

    _play(scenario())


def test_a_closed_session_is_silent() -> None:
    async def scenario() -> None:
        store = SimStore(Random(11), QUICK)
        session, other = store.session(300), store.session()
        states, fired = _watched(session), list[str]()
        await session.commit([Create("/mine", None, True), Create("/n")])
        session.watch("/n", lambda: fired.append("/n"))
        await session.read("/")
        await session.close()
        assert await other.read("/mine") is None
        await other.commit([Set("/n", b"1")])
        await asyncio.sleep(0.4)
        assert (states, fired) == ([], [])
        cut = store.session(300)
        await cut.commit([Create("/mine", None, True)])
        cut.cut()
        commit = asyncio.ensure_future(cut.commit([Set("/n", b"2")]))
        await asyncio.sleep(0)
        closing = asyncio.ensure_future(cut.close())
        await asyncio.sleep(0.001)
        with pytest.raises(OutcomeUnknown):
            await commit
        assert not closing.done()
        await closing
        await until(lambda: "/mine" not in store.tree.nodes)

    _play(scenario())
