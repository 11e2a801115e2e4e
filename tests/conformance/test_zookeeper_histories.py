"""ZS-2: concurrent clients judge our ZooKeeper server and Java's by the same rules."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from simulation.keeper import records
from simulation.keeper.checker import RULES, Verdict
from simulation.keeper.client import Client, Target
from simulation.keeper.records import Answer, Expired, History
from simulation.keeper.workload import look, stay, work
from tests.kit.effort import rounds
from tests.kit.processes.own_zookeeper_process import OwnZooKeeperProcess
from tests.kit.processes.zookeeper_process import KeeperProcess, ZooKeeperProcess, running
from tests.kit.second_run import fresh_seed

CLIENTS = 4
OPERATIONS = rounds(300, in_soak=5_000)
SESSION_MS = 20_000
SHORT_SESSION_MS = 1_000
RESETS = 5
KILLS = rounds(3, in_soak=10)

SERVERS = [
    "ours",
    pytest.param("java", marks=[pytest.mark.foreign]),
]


def server_of(kind: str, directory: Path) -> KeeperProcess:
    return OwnZooKeeperProcess(directory) if kind == "ours" else ZooKeeperProcess(directory)


class Crowd:
    """Clients of a server, which work in a thread until `operations` are done by each."""

    def __init__(self, server: KeeperProcess, seed: int, timeout_ms: int = SESSION_MS) -> None:
        self.server = server
        self.seed = seed
        self.histories: list[list[records.Record]] = []
        self._timeout_ms = timeout_ms
        self._clients: list[Client] = []

    def client(self, number: int) -> Client:
        target = Target("127.0.0.1", self.server.port, self._timeout_ms)
        client = Client(target, Random(f"{self.seed} {number}"))
        self.histories.append(client.records)
        return client

    async def run(self, disturb: Callable[[Crowd], None] | None = None) -> Verdict:
        """Let the clients work while something is done to the server, and judge what they saw."""
        self._clients = [self.client(number) for number in range(CLIENTS)]
        disturbing = threading.Event()
        works = [
            asyncio.ensure_future(self._work(each, str(number), disturbing))
            for number, each in enumerate(self._clients)
        ]
        if disturb is not None:
            await asyncio.to_thread(disturb, self)
        disturbing.set()
        await asyncio.gather(*works)
        await look(self.client(CLIENTS))
        return Verdict(History(self.histories))

    async def _work(self, client: Client, name: str, disturbing: threading.Event) -> None:
        await work(
            client, name, lambda number: number >= OPERATIONS and disturbing.is_set(), rest_s=0.02
        )
        await stay(client, disturbing.is_set)

    @property
    def answered(self) -> int:
        return sum(len(each) for each in self.histories)


def check(verdict: Verdict) -> None:
    assert verdict.broken == []
    for rule in RULES:
        assert verdict.judged[rule] or rule == "expired", verdict.judged


@pytest.mark.parametrize("kind", SERVERS)
def test_zs_2_what_concurrent_clients_see_is_consistent(kind: str, tmp_path: Path) -> None:
    seed = fresh_seed()
    with running(server_of(kind, tmp_path)) as server:
        check(asyncio.run(Crowd(server, seed).run()))


@pytest.mark.slow
@pytest.mark.repeated
@pytest.mark.parametrize("kind", SERVERS)
def test_zs_2_what_concurrent_clients_see_is_consistent_through_kills(
    kind: str, tmp_path: Path
) -> None:
    def kill(crowd: Crowd) -> None:
        for _ in range(KILLS):
            wait_for_more(crowd)
            crowd.server.kill()
            crowd.server.start()
        wait_for_more(crowd)

    seed = fresh_seed()
    with running(server_of(kind, tmp_path)) as server:
        crowd = Crowd(server, seed)
        verdict = asyncio.run(crowd.run(kill))
    check(verdict)
    lost = [
        each
        for history in crowd.histories
        for each in history
        if isinstance(each, Answer) and each.error == records.LOST
    ]
    assert lost, "the kills have hit nothing"
    assert not any(isinstance(each, Expired) for history in crowd.histories for each in history)


def wait_for_more(crowd: Crowd, count: int = 200) -> None:
    before = crowd.answered
    while crowd.answered < before + count:
        threading.Event().wait(0.001)
