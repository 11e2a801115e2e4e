"""The simulated metadata store: sessions, watches, and answers that are lost."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any

from barnabas.cluster.nodes import Effect, Tree
from barnabas.cluster.store import (
    Create,
    MetadataError,
    OutcomeUnknown,
    SessionExpired,
    SessionState,
    Set,
)
from simulation.metadata import Ensemble, Session
from simulation.world import Life, World


class NoListener:
    """Ignores every commit."""

    def committed(self, session_id: int, effects: Sequence[Effect], tree: Tree) -> None: ...


def _store(seed: int = 1) -> tuple[World, Ensemble, Session]:
    world = World(seed)
    ensemble = Ensemble(world, NoListener())
    return world, ensemble, Session(ensemble, Life(), timeout_ms=1000)


def _state(session: Session) -> SessionState:
    return session.session_state


def _outcome(world: World, life: Life, work: Coroutine[Any, Any, Any], ms: int = 300) -> Any:
    found: list[Any] = []

    async def wait() -> None:
        try:
            found.append(await work)
        except MetadataError as error:
            found.append(error)

    world.start(life, wait())
    world.run_until(world.now_ms + ms)
    return found[0] if found else None


def test_a_commit_takes_its_time_and_is_seen_by_all() -> None:
    world, ensemble, session = _store()
    other = Session(ensemble, Life(), 1000)
    assert _outcome(world, session.life, session.commit([Create("/a", b"1")])) == ["/a"]
    node = _outcome(world, other.life, other.read("/a"))
    assert node is not None and node.data == b"1"
    assert _outcome(world, other.life, other.read_many(["/a", "/b"]))[1] is None


def test_a_silent_session_expires_with_its_nodes_and_is_notified_later() -> None:
    world, ensemble, session = _store()
    states: list[SessionState] = []
    session.on_session(states.append)
    _outcome(world, session.life, session.commit([Create("/me", ephemeral=True)]))
    before = session.session_id
    session.silent()
    world.run_until(world.now_ms + 900)
    assert ensemble.tree.read("/me") is not None
    world.run_until(world.now_ms + 200)
    assert ensemble.tree.read("/me") is None
    refused = _outcome(world, session.life, session.commit([Create("/b")]))
    assert isinstance(refused, SessionExpired)
    session.reachable()
    assert session.session_id > before
    world.run_until(world.now_ms + 400)
    assert states == [SessionState.EXPIRED]


def test_a_short_silence_costs_nothing() -> None:
    world, ensemble, session = _store()
    _outcome(world, session.life, session.commit([Create("/me", ephemeral=True)]))
    session.silent()
    session.cut_off()
    world.run_until(world.now_ms + 500)
    session.reachable()
    assert _state(session) is SessionState.SUSPENDED
    session.reconnect()
    world.run_until(world.now_ms + 2000)
    assert ensemble.tree.read("/me") is not None
    assert _state(session) is SessionState.CONNECTED


def test_a_lost_answer_leaves_open_whether_it_happened() -> None:
    outcomes = set()
    for seed in range(200):
        world, ensemble, session = _store(seed)
        ensemble.is_flaky = True
        outcome = _outcome(world, session.life, session.commit([Create("/a")]))
        outcomes.add((type(outcome), ensemble.tree.read("/a") is not None))
    assert outcomes == {(list, True), (OutcomeUnknown, True), (OutcomeUnknown, False)}


def test_a_watch_fires_late_and_once_and_waits_while_the_store_is_out_of_reach() -> None:
    world, ensemble, session = _store()
    fired: list[int] = []
    ensemble.do([Create("/a")], 0)
    session.watch("/a", lambda: fired.append(world.now_ms))
    ensemble.do([Set("/a", b"1")], 0)
    ensemble.do([Set("/a", b"2")], 0)
    assert fired == []
    world.run_until(1000)
    assert len(fired) == 1
    session.watch("/a", lambda: fired.append(world.now_ms))
    session.cut_off()
    ensemble.do([Set("/a", b"3")], 0)
    world.run_until(2000)
    assert len(fired) == 1
    session.reconnect()
    assert len(fired) == 2


def test_a_closed_session_is_gone_at_once() -> None:
    world, ensemble, session = _store()
    _outcome(world, session.life, session.commit([Create("/me", ephemeral=True)]))
    _outcome(world, session.life, session.close())
    assert ensemble.tree.read("/me") is None
