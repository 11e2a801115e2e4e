"""The workload: real producers, consumers and transactions, each in a separate task.

    clients = Clients(servers, seams, random, clock, options)
    await clients.prepare(); clients.start() ... clients.stop(); await clients.finished()

It runs on any event loop and draws only from the `random` that it is given. What the clients did
and saw is in `history`. The end has two parts: writers stop and wait for their outcomes, and then
readers read on to the ends of the logs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random

from barnabas.client import Admin, NewTopic
from barnabas.client.channel import Seams
from barnabas.client.errors import Unreachable
from barnabas.clock import Clock
from barnabas.errors import KafkaError, TopicAlreadyExists
from simulation.whole.actor import Actor
from simulation.whole.copiers import Copier
from simulation.whole.environment import (
    KEYED,
    NONE,
    ONE,
    RETENTION_MS,
    SHIFTING,
    SURE,
    Environment,
    Options,
)
from simulation.whole.history import History
from simulation.whole.keyed import KeyedTransactor, KeyedWriter
from simulation.whole.members import Member
from simulation.whole.outbox_writer import OutboxWriter
from simulation.whole.readers import Reader
from simulation.whole.remaker import Remaker
from simulation.whole.transactors import Transactor
from simulation.whole.writers import HastyWriter, Writer

_LOOK_EVERY_S = 0.05
_LAST_WORDS_MS = 5_000

_CONFIGS: Mapping[str, Mapping[str, str]] = {
    KEYED: {
        "cleanup.policy": "compact",
        "segment.bytes": "4096",
        "min.cleanable.dirty.ratio": "0.05",
        "delete.retention.ms": "1500",
    },
    SHIFTING: {"retention.ms": str(RETENTION_MS), "segment.bytes": "2048"},
}


class Clients:
    def __init__(
        self,
        servers: Sequence[str],
        seams: Callable[[str], Seams],
        random: Random,
        clock: Clock,
        options: Options,
    ) -> None:
        """`seams` makes the seams of the client with a given name."""
        self.history = History(clock)
        self.around = Environment(servers, seams, clock, options, self.history)
        self._writing = _writing(self.around, random)
        self._reading = _reading(self.around, random)
        self._tasks: dict[str, asyncio.Task[None]] = {}

    # ---- life ----

    async def prepare(self) -> None:
        """Create the topics, and wait until all their partitions have leaders.

        Raises the last error if that takes longer than `prepare_ms`.
        """
        around = self.around
        deadline_ms = around.clock.monotonic_ms() + around.options.prepare_ms
        while True:
            try:
                async with Admin(
                    around.servers, seams=around.seams("admin"), **around.common()
                ) as admin:
                    await self._make_topics(admin)
                    return
            except (Unreachable, KafkaError) as error:
                around.history.tell("the topics cannot be made yet: {}", error)
                if around.clock.monotonic_ms() >= deadline_ms:
                    raise
                await asyncio.sleep(0.2)

    async def _make_topics(self, admin: Admin) -> None:
        """Create the topics.

        Raises their errors, or BarnabasError while some partitions have no leader.
        """
        options = self.around.options
        configs = {
            "min.insync.replicas": str(options.min_insync_replicas),
            "max.message.bytes": str(options.max_message_bytes),
        }
        for topic in self.around.topics:
            new = NewTopic(
                topic,
                len(self.around.partitions(topic)),
                options.replication_factor,
                {**configs, **_CONFIGS.get(topic, {})},
            )
            try:
                await admin.create_topics([new])
            except TopicAlreadyExists:
                continue  # by an attempt that had no answer
        for described in await admin.describe_topics(self.around.topics):
            for partition in described.partitions:
                if partition.leader < 0:
                    raise Unreachable(f"{described.name}-{partition.partition} has no leader")

    def start(self) -> None:
        """Start all clients."""
        for actor in (*self._writing, *self._reading):
            task = asyncio.get_running_loop().create_task(self._run(actor), name=actor.name)
            self._tasks[actor.name] = task

    async def _run(self, actor: Actor) -> None:
        try:
            await actor.run()
        except Exception as error:
            # Any error of a client that its user could not expect is a finding.
            self.history.surprise(actor.name, error)

    def stop(self) -> None:
        """Stop writing anything new; returns immediately."""
        self.around.history.tell("the clients are asked to come to an end")
        self.around.is_stopping = True

    async def finished(self) -> None:
        """Return when all clients have ended, or `finish_ms` have passed: `history.unfinished`
        has the names of the clients that had not ended and were cancelled."""
        clock, options = self.around.clock, self.around.options
        deadline_ms = clock.monotonic_ms() + options.finish_ms
        await self._ended(self._writing, deadline_ms)
        self.around.is_draining = True
        await self._ended(self._reading, deadline_ms)
        late = [name for name, task in self._tasks.items() if not task.done()]
        self.history.unfinished += late
        for _ in range(2):  # the second time for clients that are still closing
            for name in late:
                self._tasks[name].cancel()
            await self._ended(
                (*self._writing, *self._reading), clock.monotonic_ms() + _LAST_WORDS_MS
            )

    async def _ended(self, actors: Sequence[Actor], deadline_ms: int) -> None:
        tasks = [self._tasks[actor.name] for actor in actors]
        while self.around.clock.monotonic_ms() < deadline_ms:
            if all(task.done() for task in tasks):
                return
            await asyncio.sleep(_LOOK_EVERY_S)


def _writing(around: Environment, random: Random) -> list[Actor]:
    """Yield the clients that write, which end first."""
    options = around.options
    fresh = partial(_fresh, random)
    actors: list[Actor] = []
    for topic, count in (
        (SURE, options.sure_writers),
        (ONE, options.one_writers),
        (NONE, options.none_writers),
    ):
        actors += [Writer(around, f"{topic}-{each}", topic, fresh()) for each in range(count)]
    for each in range(options.large_writers):
        actors.append(Writer(around, f"large-{each}", SURE, fresh(), is_large=True))
    for each in range(options.transactors):
        actors.append(Transactor(around, f"atomic-{each}", fresh()))
    for each in range(options.hasty_writers):
        actors.append(HastyWriter(around, f"hasty-{each}", SURE, fresh()))
    for each in range(options.odd_writers):
        actors.append(OutboxWriter(around, f"odd-{each}", SURE, fresh()))
    for each in range(options.keyed_writers):
        actors.append(KeyedWriter(around, f"keyed-{each}", KEYED, fresh()))
    for each in range(options.keyed_transactors):
        actors.append(KeyedTransactor(around, f"keyed-atomic-{each}", fresh()))
    for each in range(options.shifting_writers):
        actors.append(Writer(around, f"shifting-{each}", SHIFTING, fresh()))
    for each in range(options.remakers):
        actors.append(Remaker(around, f"remaker-{each}", fresh()))
    return actors


def _reading(around: Environment, random: Random) -> list[Actor]:
    options = around.options
    fresh = partial(_fresh, random)
    actors: list[Actor] = []
    for each in range(options.copiers):
        actors.append(Copier(around, f"copier-{each}", fresh()))
    for each in range(options.members):
        actors.append(Member(around, f"member-{each}", fresh()))
    for each in range(options.readers):
        for kind in (False, True):
            name = f"reader-{each}-{'committed' if kind else 'all'}"
            actors.append(Reader(around, name, fresh(), is_committed=kind))
    return actors


def _fresh(random: Random) -> Random:
    return Random(random.getrandbits(64))
