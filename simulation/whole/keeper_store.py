"""The metadata store of a run: our real ZooKeeper server, on a machine of the simulated world.

When the plan takes the store away, the server is killed, stops cleanly, or its machine loses power,
between two turns or at a change of its disk; the next start may be struck as well. Or its disk is
slow for that time. It has to serve exactly what was on its disk.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

from barnabas.cluster import nodes
from barnabas.cluster.nodes import Stage, Tree
from barnabas.cluster.store import Operation
from barnabas.zookeeper import tree as trees
from barnabas.zookeeper.codes import Op
from barnabas.zookeeper.connection import ClientConnection
from barnabas.zookeeper.server import Machine, ZooKeeperServer
from barnabas.zookeeper.settings import ZooKeeperSettings
from simulation.whole.costs import SYNC_US
from simulation.whole.files import SimFiles
from simulation.whole.keeper_journal import WatchedJournals, Written
from simulation.whole.keeper_session import KeeperSession
from simulation.whole.lives import CURRENT, Life, LifeOver, ProcessOver
from simulation.whole.loop import VirtualLoop
from simulation.whole.network import Network
from simulation.whole.seams import VirtualClock
from simulation.whole.store import Observer
from simulation.whole.strike import Strike

_HOST, _PORT = "zookeeper", 2181
_DATA = Path("/zookeeper")
_TICK_MS = 100
_SNAPSHOT_AT_BYTES = 8_000
WAYS = ("kill", "power", "stop", "kill in a turn", "power in a turn", "slow")
_STRUCK_STARTS = 0.4
_XID_BYTES = 4


class KeeperStore:
    """The server and its machine, with the interface of `SimStore`."""

    def __init__(self, loop: VirtualLoop, network: Network, seed: int) -> None:
        self.tree = Tree()
        """The decided state: what is on the disk of the server."""
        self.observer = Observer()
        self.done: Counter[str] = Counter()
        """What befell the server."""
        self.broken: list[str] = []
        """The differences between what was decided and what the server had after a start."""
        self.address = (_HOST, _PORT)
        self._loop = loop
        self._network = network
        self._random = Random(f"keeper store {seed}")
        self._clock = VirtualClock(loop)
        self._files = SimFiles(self._clock, [_DATA])
        self._files.measure(loop.spend)
        network.host(_HOST)
        self._life: Life | None = None
        self._server: _Server | None = None
        self._is_wanted = False
        self._starting: asyncio.Task[None] | None = None
        self._authors: dict[int, tuple[int, bool]] = {}
        self._decided: dict[int, list[Operation]] = {}

    # --- sessions --------------------------------------------------------------------------------

    def session(self, timeout_ms: int) -> KeeperSession:
        """Make the client of the process in whose life this is called; it is not connected yet."""
        life = self.life_here()
        assert life is not None
        return KeeperSession(self, timeout_ms, life.host)

    def life_here(self) -> Life | None:
        return CURRENT.get()

    def answered(self, zxid: int) -> None:
        """Handle the arrival of the response to a commit at the process that asked for it."""
        self.observer.answered(self._decided.get(zxid, ()))

    def expire(self, session_id: int) -> None:
        """End a session from the server's side, if the server runs."""
        server, life = self._server, self._life
        if server is None or life is None or life.is_over:
            return
        if session_id in server.processor.sessions.by_id:
            life.run(server.processor.expire, session_id, self._clock.wall_ms())

    def cut(self, host: str) -> None:
        self._network.cut(host, _HOST)
        self._network.cut(_HOST, host)

    def mend(self, host: str) -> None:
        self._network.mend(host, _HOST)
        self._network.mend(_HOST, host)

    # --- what befalls it -------------------------------------------------------------------------

    def start(self) -> None:
        """Start the server, unless it is running; undo what was to befall it."""
        self._is_wanted = True
        self._files.slow(0)
        if not self._is_dead:
            self._files.spare()
        elif self._starting is None or self._starting.done():
            self._starting = self._loop.create_task(self._bring_up(), context=self._loop.world)

    def stop(self) -> None:
        """Take the store away in one of several ways, until `start`."""
        self._is_wanted = False
        if self._is_dead:
            return
        way = self._random.choice(WAYS)
        self.done[way] += 1
        end = self._cut_power if way.startswith("power") else self._kill
        if way.endswith("in a turn"):
            self._files.strike(self._strike(end, 12))
        elif way == "stop":
            self._loop.create_task(self._stop_cleanly(), context=self._loop.world)
        elif way == "slow":
            self._files.slow(20 * SYNC_US, self._loop.now_us + 3_600_000_000)
        else:
            end()
        if way in ("kill", "power") and self._random.random() < _STRUCK_STARTS:
            self._files.strike(self._strike(self._random.choice((self._kill, self._cut_power)), 5))

    def _strike(self, end: Callable[[], None], most: int) -> Strike:
        def fall() -> None:
            self.done["struck"] += 1
            self._loop.world.copy().run(end)

        return Strike(self._random.randint(1, most), self._random, fall)

    @property
    def _is_dead(self) -> bool:
        return self._life is None or self._life.is_over

    def _kill(self) -> None:
        if self._life is not None:
            self._life.kill()

    def _cut_power(self) -> None:
        self._network.power_off(_HOST)
        self._files.power_cut(self._random)
        self._kill()

    async def _stop_cleanly(self) -> None:
        life, server = self._life, self._server
        if life is None or server is None:
            return
        with suppress(LifeOver, ProcessOver):
            await life.call(server.stop())
        life.kill()
        if self._is_wanted:
            self.start()

    async def _bring_up(self) -> None:
        while self._is_wanted and self._is_dead:
            if not self._network.host(_HOST).is_up:
                self._network.power_on(_HOST)
            self.done["starts"] += 1
            life = self._network.process(f"zookeeper, start {self.done['starts']}", _HOST)
            life.at_end(self._files.process_died)
            self._life = life
            try:
                server = self._server = life.run(self._make_server)
                self._forget_lost_authors()
                self.judge()
                await life.call(server.start())
            except (ProcessOver, LifeOver):
                continue
            self._files.spare()  # a strike at the start, which was shorter

    def _forget_lost_authors(self) -> None:
        for zxid in [each for each in self._authors if each > self.tree.zxid]:
            del self._authors[zxid]

    def _make_server(self) -> _Server:
        disk = WatchedJournals(self._files.mounted(), self._decide)
        machine = Machine(self._clock, disk, self._random.randbytes, _SNAPSHOT_AT_BYTES)
        limits = (2 * _TICK_MS, 100 * _TICK_MS)
        settings = ZooKeeperSettings(_DATA, _PORT, _HOST, _TICK_MS, 0, *limits)
        return _Server(settings, machine, self._authors)

    # --- what it decides -------------------------------------------------------------------------

    def _decide(self, written: Written) -> None:
        """Apply a transaction that is on disk."""
        if written.zxid <= self.tree.zxid:
            return
        stage = Stage(self.tree, written.zxid)
        session_id, is_close = self._authors.get(written.zxid, (0, False))
        for each in written.effects:
            if each.kind == trees.CREATE:
                stage.do(nodes.Effect(nodes.CREATE, each.path, each.data, each.number))
            elif each.kind == trees.SET_DATA:
                stage.do(nodes.Effect(nodes.SET, each.path, each.data))
            elif each.kind == trees.DELETE:
                stage.do(nodes.Effect(nodes.DELETE, each.path))
            elif each.kind == trees.CLOSE_SESSION:
                session_id = each.number
        if is_close:
            self.observer.closes(session_id)
        if stage.effects:
            # The record of a run knows a commit by its operations.
            operations = self._decided[written.zxid] = []
            self.observer.commits(session_id, operations, stage)
        self.tree.merge(stage)

    def judge(self) -> None:
        """Compare what the server serves with what was decided."""
        server = self._server
        if server is None or server.processor.tree.zxid > server.synced_zxid:
            return
        served = {
            path: (node.data, node.version, node.czxid, node.owner)
            for path, node in server.processor.tree.nodes.items()
            if path not in trees.RESERVED
        }
        decided = {
            path: (node.data, node.version, node.czxid, node.owner)
            for path, node in self.tree.nodes.items()
            if path != "/"
        }
        for path in sorted(served.keys() | decided.keys()):
            if served.get(path) != decided.get(path):
                self.broken.append(
                    f"ZooKeeper has {path} as {served.get(path)} instead of {decided.get(path)}"
                )
        sessions = server.processor.sessions.by_id
        for path, node in server.processor.tree.nodes.items():
            if node.owner and node.owner not in sessions:
                self.broken.append(f"{path} has outlived its session {node.owner:#x}")


class _Server(ZooKeeperServer):
    """The real server; it only notes which session has made which transaction."""

    def __init__(
        self,
        settings: ZooKeeperSettings,
        machine: Machine,
        authors: dict[int, tuple[int, bool]],
    ) -> None:
        super().__init__(settings, machine)
        self._authors = authors

    def execute(self, connection: ClientConnection, frame: bytes) -> None:
        session, before = connection.session, self.processor.tree.zxid
        super().execute(connection, frame)
        if session is not None and self.processor.tree.zxid > before:
            op = int.from_bytes(frame[_XID_BYTES : 2 * _XID_BYTES], "big", signed=True)
            is_close = op == Op.CLOSE_SESSION
            self._authors[self.processor.tree.zxid] = session.session_id, is_close
