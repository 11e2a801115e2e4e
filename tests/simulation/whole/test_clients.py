"""The clients that the simulator runs, on real brokers and a real loop."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest

from barnabas.client.channel import system_seams
from barnabas.clock import SystemClock
from simulation.story import words
from simulation.whole.clients import Clients
from simulation.whole.environment import Options
from simulation.whole.history import FAIL, OK
from simulation.whole.rules import Allowed
from simulation.whole.verdict import Judged, judge
from simulation.whole.witness import Witness
from tests.simulation.whole.real_brokers import PATIENCE_MS, Brokers, run_for

OF_THE_SIMULATION = {
    "awake",
    "cause",
    "compacted",
    "healthy",
    "hung",
    "lagging",
    "namesake",
    "refilled",
    "reported",
    "start",
    "young",
}
"""Rules that are judged of simulated brokers alone, or of topics that these clients do not have."""

OPTIONS = Options(
    pause_ms=100,
    finish_ms=PATIENCE_MS,
    prepare_ms=PATIENCE_MS,
    dawdle_chance=0.0,
    request_timeout_ms=30_000,  # a disk that is busy is no fault
)


@pytest.mark.slow
def test_without_faults_every_rule_holds_and_has_something_to_judge(tmp_path: Path) -> None:
    """DL-1, DL-2, PR-6, PR-7, CO-6, RE-3: all kinds of producers and consumers at once."""

    async def play() -> tuple[Clients, Judged]:
        async with Brokers(tmp_path) as brokers:
            clients, witness = brokers.clients(1, OPTIONS), Witness()
            await clients.prepare()
            clients.start()
            for _ in range(50):
                await asyncio.sleep(0.1)
                witness.look(brokers.servers)
            clients.stop()
            await clients.finished()
            judged = await judge(clients, brokers.servers, Allowed(is_calm=True), witness)
            return clients, judged

    clients, judged = asyncio.run(play())
    judged.raise_if_broken()
    assert set(judged.idle()) == OF_THE_SIMULATION
    assert judged.acknowledged > 100
    outcomes = {writing.outcome for writing in clients.history.writings.values()}
    assert {OK, FAIL} <= outcomes
    # If a follower leaves the ISR on a busy machine, a record that was refused may wait to be sent
    # again when its transaction is aborted. Nothing else leaves a doubt.
    assert set(clients.history.doubtful.values()) <= {"the transaction was aborted"}
    assert all(words(line) for line in clients.history.lines), "the story can be printed"


@pytest.mark.slow
def test_brokers_that_come_and_go_break_no_rule(tmp_path: Path) -> None:
    """DL-2, RE-10, RE-13, GC-3: each broker in turn stops, and comes back while all goes on."""

    async def play() -> Judged:
        async with Brokers(tmp_path) as brokers:
            clients, witness = brokers.clients(2, OPTIONS), Witness()
            await clients.prepare()
            clients.start()
            for broker_id in (1, 2, 3):
                await asyncio.sleep(1.5)
                witness.look(brokers.servers)
                await brokers.stop(broker_id)
                await asyncio.sleep(0.5)
                witness.look(brokers.servers)
                await brokers.start(broker_id)
            await asyncio.sleep(1.5)
            clients.stop()
            await clients.finished()
            return await judge(clients, brokers.servers, Allowed(), witness)

    judged = asyncio.run(play())
    judged.raise_if_broken()
    assert set(judged.idle()) - OF_THE_SIMULATION <= {"kept by one"}, (
        "leaders have moved, so acks=1 has no promise"
    )


def test_a_client_that_does_not_end_is_named_and_stopped() -> None:
    """No broker listens there: writers give up when they are asked to, readers have nothing to end
    with."""
    options = Options(finish_ms=300, sure_writers=1, members=1, copiers=0, readers=1)

    async def play() -> Clients:
        clients = Clients(
            ["127.0.0.1:1"], lambda _: system_seams(), Random(1), SystemClock(), options
        )
        clients.start()
        await asyncio.sleep(0.1)
        clients.stop()
        async with asyncio.timeout(PATIENCE_MS / 1000):
            await clients.finished()
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        assert left == []
        return clients

    clients = asyncio.run(play())
    named = {"member-0", "reader-0-all", "reader-0-committed"}
    assert named <= set(clients.history.unfinished)
    assert clients.history.surprises == []


@pytest.mark.slow
def test_a_seed_says_what_is_written(tmp_path: Path) -> None:
    """How far each one comes depends on the machine; what it does until then does not."""

    async def play(directory: Path) -> list[str]:
        async with Brokers(directory) as brokers:
            clients = brokers.clients(7, OPTIONS)
            await run_for(clients, 1.0)
            found = clients.history.writings.values()
            return [f"{each} {each.name}" for each in found if each.writer == "sure-0.1"]

    once, again = asyncio.run(play(tmp_path / "1")), asyncio.run(play(tmp_path / "2"))
    least = min(len(once), len(again))
    assert least > 0
    assert once[:least] == again[:least]
