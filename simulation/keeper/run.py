"""One run from a seed: our ZooKeeper server, its clients, and what befalls them.

The server is the real one, on the loop, the network and the disk of `simulation.whole`. It dies
between two turns or at any change of its disk, with or without its machine, or stops cleanly.
Connections break, and a client may be cut off for so long that its session expires.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import NamedTuple

from barnabas.errors import BarnabasError
from barnabas.zookeeper.server import Machine, ZooKeeperServer
from barnabas.zookeeper.settings import ZooKeeperSettings
from simulation.exclusive_handler import ExclusiveHandler
from simulation.keeper.checker import Verdict
from simulation.keeper.client import Client, Target
from simulation.keeper.records import History
from simulation.keeper.workload import look, stay, work
from simulation.whole.files import SimFiles
from simulation.whole.journals import SimJournals
from simulation.whole.lives import Life, LifeOver, ProcessOver
from simulation.whole.loop import LoopError, VirtualLoop
from simulation.whole.network import Network
from simulation.whole.seams import VirtualClock
from simulation.whole.strike import Strike

FULL, BROKEN = "full", "broken"
"""Faults of the disk: no more bytes fit on it, or nothing can be written or synced."""

FAULTS = (
    *("kill", "power", "kill in a turn", "power in a turn"),
    *("stop", "reset", "long cut", FULL, BROKEN),
)
TIMEOUT_MS = 1_000
CLIENTS = 3
_HOST, _PORT = "keeper", 2181
_DATA = Path("/data")
_TICK_MS = 100
_STORY_LENGTH = 60
_PATIENCE_S = 600.0
_SNAPSHOT_AT_BYTES = 2_000
_STARTS = 20


class Fault(NamedTuple):
    """Something that happens this long after what happened before."""

    kind: str
    after_ms: int
    number: int
    """The client, or the change of the disk, that it strikes."""


class Plan(NamedTuple):
    """Everything that a run depends on."""

    seed: int
    operations: int
    faults: tuple[Fault, ...]


class Outcome(NamedTuple):
    """The outcome of a run; the story is empty if all was well."""

    plan: Plan
    broken: tuple[str, ...]
    done: Mapping[str, int]
    judged: Mapping[str, int]
    digest: str
    story: str


class _Hearing(ExclusiveHandler):
    """Writes what the server logs into the story."""

    def __init__(self, run: _Run) -> None:
        super().__init__()
        self._run = run

    def emit(self, record: logging.LogRecord) -> None:
        self._run.tell(record.getMessage())


class _Run:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.loop = VirtualLoop(plan.seed)
        self.network = Network(self.loop, plan.seed)
        self.files = SimFiles(VirtualClock(self.loop), [_DATA])
        self.files.measure(self.loop.spend)
        self.network.host(_HOST)
        self.random = Random(f"keeper {plan.seed}")
        self.life: Life | None = None
        self.server: ZooKeeperServer | None = None
        self.clients: list[Client] = []
        self.is_calm = self.is_over = False
        self.lines: list[str] = []
        self.done: Counter[str] = Counter()
        self.broken: list[str] = []

    def tell(self, text: str) -> None:
        self.lines.append(f"{self.loop.now_us / 1e6:9.3f} s  {text}")

    async def play(self) -> None:
        await self._start()
        lives = [self.network.process(f"client-{number}") for number in range(CLIENTS)]
        self.clients = [life.run(self._client, number) for number, life in enumerate(lives)]
        works = [
            asyncio.ensure_future(life.call(self._work(client, str(number))))
            for number, (life, client) in enumerate(zip(lives, self.clients, strict=True))
        ]
        for fault in self.plan.faults:
            await asyncio.sleep(fault.after_ms / 1000)
            await self._befall(fault)
            if self._is_dead:
                await self._start()
        self.files.spare()
        self._kill()
        await self._start()
        witness = self.network.process("witness").run(self._client, CLIENTS)
        self.clients.append(witness)
        self.is_calm = True
        async with asyncio.timeout(_PATIENCE_S):
            await lives[0].call(look(witness))
            self.is_over = True
            await asyncio.gather(*works)
        await self._stop()

    async def _work(self, client: Client, name: str) -> None:
        most = self.plan.operations
        await work(client, name, lambda number: number >= most or self.is_calm, rest_s=0.5)
        await stay(client, lambda: self.is_over)

    @property
    def _is_dead(self) -> bool:
        return self.life is None or self.life.is_over

    def _client(self, number: int) -> Client:
        random = Random(f"client {number} {self.plan.seed}")
        return Client(Target(_HOST, _PORT, TIMEOUT_MS), random)

    # ---- the server ----

    async def _start(self) -> None:
        """Start the server. A strike may hit the start, too."""
        for _ in range(_STARTS):
            if not self.network.host(_HOST).is_up:
                self.network.power_on(_HOST)
            self.done["starts"] += 1
            life = self.network.process(f"keeper, start {self.done['starts']}", _HOST)
            life.at_end(self.files.process_died)
            self.life = life
            try:
                server = self.server = life.run(self._server)
                await life.call(server.start())
            except (ProcessOver, LifeOver):
                continue
            self.tell(f"the server has started at {server.processor.tree.zxid}")
            life.start(self._end_when_it_fails(life, server))
            return
        raise AssertionError("the server never starts")

    async def _end_when_it_fails(self, life: Life, server: ZooKeeperServer) -> None:
        """End the process as `server.run` does, which has to say what an operator can do."""
        assert server.failure is not None
        try:
            await server.failure
        except BarnabasError as error:
            self.done["failures"] += 1
            self.tell(f"the server fails: {error}")
            if str(_DATA) not in str(error) or "start the server again" not in str(error):
                self.broken.append(f"not helpful: {error}")
        await server.stop()
        self.loop.world_at_us(self.loop.now_us, life.kill)

    def _server(self) -> ZooKeeperServer:
        machine = Machine(
            VirtualClock(self.loop),
            SimJournals(self.files.mounted()),
            self.random.randbytes,
            _SNAPSHOT_AT_BYTES,
        )
        settings = ZooKeeperSettings(
            *(_DATA, _PORT, _HOST, _TICK_MS, 0, 2 * _TICK_MS, 20 * _TICK_MS)
        )
        return ZooKeeperServer(settings, machine)

    def _kill(self) -> None:
        self.tell("the server is killed")
        if self.life is not None:
            self.life.kill()

    def _cut_power(self) -> None:
        self.tell("the server's machine loses power")
        self.network.power_off(_HOST)
        self.files.power_cut(self.random)
        if self.life is not None:
            self.life.kill()

    async def _stop(self) -> None:
        if self.life is not None and self.server is not None and not self._is_dead:
            self.tell("the server stops")
            with suppress(LifeOver):
                await self.life.call(self.server.stop())
            self.life.kill()

    # ---- what befalls them ----

    async def _befall(self, fault: Fault) -> None:
        self.done[fault.kind] += 1
        client = f"client-{fault.number % CLIENTS}"
        end: Callable[[], None] = self._cut_power if fault.kind.startswith("power") else self._kill
        if fault.kind in ("kill", "power"):
            end()
        elif fault.kind.endswith("in a turn"):

            def fall() -> None:
                self.loop.world.copy().run(end)

            self.files.strike(Strike(fault.number, self.random, fall))
        elif fault.kind == "stop":
            await self._stop()
        elif fault.kind == "reset":
            self.tell(f"the connections of {client} break")
            self.network.reset(client)
        elif fault.kind == "long cut":
            self.tell(f"{client} is cut off")
            self.network.cut(client, _HOST)
            await asyncio.sleep(TIMEOUT_MS * (0.5 + self.random.random()) / 1000)
            self.network.mend(client, _HOST)
        elif fault.kind in (FULL, BROKEN):
            await self._spoil_disk(fault)

    async def _spoil_disk(self, fault: Fault) -> None:
        """Let the disk refuse what is written, and see whether a server starts on it."""
        self.tell(f"the disk is {fault.kind}")
        code = errno.ENOSPC if fault.kind == FULL else errno.EIO
        self.files.fail(_DATA, code, self.random.randrange(20 * fault.number))
        await asyncio.sleep(self.random.random())
        if self._is_dead:
            try:
                await self._start()
            except OSError as error:
                self.done["refused starts"] += 1
                self.tell(f"the server does not start: {error}")
                self._kill()
        self.files.heal(_DATA)
        self.tell("the disk is as good as new")


def draw(seed: int) -> Plan:
    """Draw the plan of a seed."""
    random = Random(f"keeper plan {seed}")
    faults = [
        Fault(random.choice(FAULTS), random.randrange(1, 1500), random.randrange(1, 40))
        for _ in range(random.randrange(2, 10))
    ]
    return Plan(seed, random.choice((60, 120, 240)), tuple(faults))


def run(plan: Plan) -> Outcome:
    """Run the plan; the same plan gives the same outcome on any machine."""
    play = _Run(plan)
    try:
        with _Hearing(play):
            play.loop.run(play.play())
    except (LoopError, BarnabasError, TimeoutError, AssertionError) as error:
        play.broken.append(f"{error!r}")
    play.broken += [f"{each.life}: {each.message}: {each.error!r}" for each in play.loop.findings]
    history = History([each.records for each in play.clients])
    verdict = Verdict(history)
    play.broken += verdict.broken
    lines = [f"{each.at:9.3f} s  {each}" for every in history.by_client for each in every]
    lines = sorted([*play.lines, *lines])
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    story = ""
    if play.broken:
        parts = [f"seed {plan.seed}: {plan}", *lines[-_STORY_LENGTH:]]
        story = "\n".join([*parts, *(f"BROKEN: {each}" for each in play.broken[:20])])
    play.loop.close()
    return Outcome(plan, tuple(play.broken), dict(play.done), dict(verdict.judged), digest, story)


def shrink(failed: Outcome) -> Outcome:
    """Reduce a failing run to fewer faults with which it still fails."""
    smallest = failed
    for fault in failed.plan.faults:
        faults = list(smallest.plan.faults)
        faults.remove(fault)
        outcome = run(smallest.plan._replace(faults=tuple(faults)))
        if outcome.broken:
            smallest = outcome
    return smallest
