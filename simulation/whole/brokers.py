"""Machines with a broker each: started, stopped, killed, cut off from power, paused.

A machine keeps its name, its files and its dice through all of this; each start is a new process,
and each power cut is followed by a new boot. The broker is an unchanged `broker.server.Server`, in
its own life.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Final, NamedTuple

from barnabas.broker.runtime.descriptors import plenty
from barnabas.broker.runtime.disk_threads import LOOP_THREADS
from barnabas.broker.seams import Seams
from barnabas.broker.server import Server
from barnabas.config import BrokerConfig
from simulation.whole.costs import BUDGET_US
from simulation.whole.files import SimFiles
from simulation.whole.journals import SimJournals
from simulation.whole.keeper_session import KeeperSession
from simulation.whole.keeper_store import KeeperStore
from simulation.whole.lives import CURRENT, Life, LifeOver, ProcessOver
from simulation.whole.loop import VirtualLoop
from simulation.whole.network import Network
from simulation.whole.pulse import SimPulse
from simulation.whole.seams import SeededRandom, VirtualClock
from simulation.whole.store import SimStore
from simulation.whole.store_session import SimSession
from simulation.whole.strike import Strike

PORT: Final = 9092
DATA: Final = Path("/data")
SECOND_DATA: Final = Path("/data2")
"""The second log directory, if `log.dirs` names it."""

_MEMORY_BYTES = 1 << 30
_QUICK: Final[Mapping[str, str]] = MappingProxyType(
    {
        # Avoid work that is of no interest here, and waits that are longer than a run.
        "offsets.topic.num.partitions": "2",
        "offsets.topic.replication.factor": "3",
        "transaction.state.log.num.partitions": "2",
        "transaction.state.log.replication.factor": "3",
        "transaction.state.log.min.isr": "2",
        "default.replication.factor": "3",
        "min.insync.replicas": "2",
        "replica.lag.time.max.ms": "1500",
        "barnabas.event.loop.delay.ms": "0",  # real time differs from run to run
        "replica.socket.timeout.ms": "2000",
        "controller.socket.timeout.ms": "2000",
        "replica.high.watermark.checkpoint.interval.ms": "1000",
        "group.min.session.timeout.ms": "500",
        "group.initial.rebalance.delay.ms": "200",
        "controlled.shutdown.retry.backoff.ms": "200",
    }
)


def _ignore(broker: SimBroker) -> None:
    """Do nothing."""


class MachineRoom(NamedTuple):
    """The resources that the machines of a run share."""

    loop: VirtualLoop
    network: Network
    store: SimStore | KeeperStore
    seed: int
    session_timeout_ms: int = 2000
    """How long a broker may be silent towards the metadata store."""

    @classmethod
    def of(
        cls, seed: int, *, max_virtual_ms: int = 600_000, has_keeper: bool = False
    ) -> MachineRoom:
        """Create all of it from one seed; the caller that opens it closes its loop.

        `has_keeper`: the metadata store is our ZooKeeper server, which has to be started.
        """
        loop = VirtualLoop(seed, max_virtual_ms=max_virtual_ms)
        network = Network(loop, seed)
        store: SimStore | KeeperStore = SimStore(Random(f"store {seed}"))
        if has_keeper:
            store = KeeperStore(loop, network, seed)
        return cls(loop, network, store, seed)


class SimBroker:
    """One machine, and the broker that may be running on it."""

    def __init__(
        self,
        room: MachineRoom,
        broker_id: int,
        files: SimFiles,
        config: Mapping[str, str],
        *,
        is_alone: bool = False,
    ) -> None:
        """`is_alone`: the broker keeps its metadata in its log directories."""
        self._loop = room.loop
        self._network = room.network
        self._store = room.store
        self._session_timeout_ms = room.session_timeout_ms
        self.broker_id = broker_id
        self.host = f"broker-{broker_id}"
        self.files = files
        self.clock = VirtualClock(self._loop)
        self._dice = SeededRandom(room.seed, self.host)
        self._outage = Random(f"{self.host} without power {room.seed}")
        self._torn = Random(f"{self.host} torn {room.seed}")
        self._config = config
        self._is_alone = is_alone
        self._is_started = False
        self._paused_until_us = 0
        self._ahead_ms = 0
        self.boots = 1
        self.starts = 0
        self.life: Life | None = None
        self.server: Server | None = None
        self.session: SimSession | KeeperSession | None = None
        self.finds_ahead_ms = 0
        """How far ahead of true time the calendar is that its next start finds."""
        self.on_start: Callable[[SimBroker], object] = _ignore
        """Called when a process begins; `on_stop`: when it begins to stop cleanly."""
        self.on_stop: Callable[[SimBroker], object] = _ignore
        self.unfounded: list[str] = []
        """The reasons why its broker could not go on although nothing was wrong with its disk."""
        self._network.host(self.host)
        files.measure(room.loop.spend)

    @property
    def is_running(self) -> bool:
        """Return whether there is a process, which may be paused or still starting."""
        return self.life is not None and not self.life.is_over

    @property
    def is_serving(self) -> bool:
        """Return whether its start is over and its stop has not begun; it may be paused."""
        return self.is_running and self._is_started

    async def start(self) -> None:
        """Start a new process, switching the machine on if necessary.

        Returns when the broker serves; raises what the start raises (ConfigError while there is no
        metadata store), or LifeOver if it is killed before.
        """
        assert not self.is_running, f"{self.host} runs already"
        self.starts += 1
        self.set_calendar(self.finds_ahead_ms)
        self._is_started = False
        self._paused_until_us = 0
        if not self._network.host(self.host).is_up:
            self._network.power_on(self.host)
        life = self._network.process(f"{self.host}, start {self.starts}", self.host)
        life.at_end(self.files.process_died)
        self.life = life
        try:
            if not self._is_alone:
                await self._open_session(life)
            server = self.server = life.run(self._server)
            self.on_start(self)
            await life.call(server.start())
        except ProcessOver:
            raise LifeOver(life.name) from None  # before there was anything to wait for
        except BaseException:
            life.kill()
            raise
        self._is_started = True
        # A snapshot of the metadata is synced on the loop, and here it is taken after few commits.
        life.budget_us = 0 if self._is_alone else BUDGET_US
        life.start(self._end_when_it_fails(life, server))

    async def _open_session(self, life: Life) -> None:
        store, timeout_ms = self._store, self._session_timeout_ms
        if isinstance(store, SimStore):
            self.session = life.run(store.session, timeout_ms)
            return
        session = self.session = life.run(store.session, timeout_ms)
        await life.call(session.until_open())

    async def stop(self) -> None:
        """Stop cleanly, first giving away what this broker leads.

        If this raises anything, the process ends as well.
        """
        life, server = self._running()
        self._is_started = False
        life.budget_us = 0
        self.on_stop(self)
        try:
            await life.call(server.stop())
        finally:
            if not life.is_over:
                life.kill()

    def kill(self) -> None:
        """Kill the process, as `kill -9` does: what it has written stays, and its kernel closes
        its connections."""
        self._running()[0].kill()

    def power_cut(self) -> None:
        """Switch the machine off; what is not on its disk yet may be lost."""
        self.boots += 1
        self._network.power_off(self.host)
        self.files.power_cut(self._outage)
        if self.life is not None:
            self.life.kill()

    def strike(self, operations: int, befall: Callable[[], object], begins_with: str = "") -> None:
        """Make it die in the middle of a turn, at this many changes of its disk from now on, or
        from the time when something gets a name that ends with `begins_with`. If no process runs
        by then, the next one dies. `befall` kills it or cuts its power."""

        def fall() -> None:
            assert CURRENT.get() is self.life, f"somebody else works on the files of {self.host}"
            # The consequences belong to the world: what a dead process begins is lost.
            self._loop.world.copy().run(befall)

        self.files.strike(Strike(operations, self._torn, fall, begins_with))

    def pause(self, for_ms: int) -> None:
        """Pause it, as SIGSTOP does, and resume it after this time; `resume` may come first, and
        another pause may prolong it."""
        life, _ = self._running()
        life.pause()
        until_us = self._loop.now_us + 1000 * for_ms
        self._paused_until_us = max(self._paused_until_us, until_us)
        self._loop.world_at_us(until_us, self._pause_ends, life)

    def resume(self) -> None:
        self._paused_until_us = 0
        self._loop.resume(self._running()[0])

    def _pause_ends(self, life: Life) -> None:
        if self._loop.now_us >= self._paused_until_us:
            self._loop.resume(life)

    def set_calendar(self, ahead_ms: int) -> None:
        """Set how far the machine's calendar is ahead of true time, until it is set again."""
        self.clock.step(ahead_ms - self._ahead_ms)
        self._ahead_ms = ahead_ms

    def boot_id(self) -> bytes:
        return f"{self.host}, boot {self.boots}".encode()

    def _server(self) -> Server:
        properties = {
            "broker.id": str(self.broker_id),
            "listeners": f"PLAINTEXT://{self.host}:{PORT}",
            "log.dirs": str(DATA),
            **_QUICK,
            **self._config,
        }
        files = self.files.mounted()
        bind, threads = self._network.bind, lambda: LOOP_THREADS  # the loop has no threads
        machine = Seams(
            self.clock,
            self._dice,
            files,
            bind,
            self.boot_id,
            threads,
            cleans_inline=True,
            descriptors=plenty,
            journals=SimJournals(files),
            memory_bytes=lambda: _MEMORY_BYTES,
        )
        if self._is_alone:
            return Server(BrokerConfig(properties), machine)
        life = self.life
        assert life is not None
        machine = machine._replace(pulse=partial(SimPulse, self._loop, life))
        return Server(BrokerConfig(properties), machine, self.session)

    async def _end_when_it_fails(self, life: Life, server: Server) -> None:
        """End the process when it fails, like a process that has no log directory left."""
        assert server.failure is not None
        await server.failure
        if not self.files.is_spoiled:
            self.unfounded.append(server.failure.result())
        life.budget_us = 0
        if not server.is_hung:  # otherwise a stop would wait for the disk
            self.on_stop(self)
            await server.stop()
        self._loop.world_at_us(self._loop.now_us, life.kill)

    def _running(self) -> tuple[Life, Server]:
        assert self.life is not None and self.server is not None and self.is_running, (
            f"{self.host} does not run"
        )
        return self.life, self.server


class Brokers:
    """All machines of a run, by broker id."""

    def __init__(
        self,
        room: MachineRoom,
        broker_ids: Sequence[int] = (1, 2, 3),
        config: Mapping[str, str] | None = None,
        files: Callable[[int], SimFiles] | None = None,
    ) -> None:
        """`config`: settings for all of them, in addition to those that make them quick."""
        clock = VirtualClock(room.loop)
        self.by_id: dict[int, SimBroker] = {}
        for broker_id in broker_ids:
            disk = SimFiles(clock, [DATA]) if files is None else files(broker_id)
            self.by_id[broker_id] = SimBroker(room, broker_id, disk, config or {})

    @property
    def bootstrap_servers(self) -> list[str]:
        return [f"{each.host}:{PORT}" for each in self.by_id.values()]

    @property
    def running(self) -> list[SimBroker]:
        return [each for each in self.by_id.values() if each.is_running]

    def __getitem__(self, broker_id: int) -> SimBroker:
        return self.by_id[broker_id]

    async def start(self) -> None:
        """Start all brokers, one after another; returns when each broker knows all others."""
        for each in self.by_id.values():
            await each.start()
        for each in self.by_id.values():
            assert each.life is not None and each.server is not None
            await each.life.call(each.server.knows_brokers(self.by_id))

    async def stop(self) -> None:
        """Stop cleanly, as when a whole cluster is switched off."""
        for each in reversed(self.running):
            life, server = each.life, each.server
            assert life is not None and server is not None
            life.budget_us = 0
            await life.call(server.stop(gives_away=False))
            life.kill()
