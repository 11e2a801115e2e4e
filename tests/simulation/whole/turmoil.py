"""Three brokers under a little of everything, with one who writes: what was acknowledged is there.

Run as a program it prints a line per seed, for a comparison of two processes.
"""

from __future__ import annotations

import asyncio
import sys
from random import Random
from typing import NamedTuple

from barnabas.client import Consumer, Producer
from barnabas.cluster.store import MetadataError
from simulation.whole.brokers import Brokers, MachineRoom, SimBroker
from simulation.whole.lives import Life, LifeOver
from simulation.whole.loop import Finding, within
from simulation.whole.seams import client_seams

TOPIC = "topic"
FAULTS_END_S = 15
LONG_MS = 120_000
KINDS = ("kill", "power", "stop", "pause", "cut", "reset", "slow", "store cut", "expire")


class Outcome(NamedTuple):
    """Of one seed; `faults` counts those that happened."""

    digest: str
    arrivals: int
    virtual_s: float
    acknowledged: dict[int, bytes]
    found: dict[int, bytes]
    faults: dict[str, int]
    findings: list[Finding]


class Turmoil:
    def __init__(self, seed: int, kinds: tuple[str, ...] = KINDS) -> None:
        self.random = Random(f"turmoil {seed}")
        self.kinds = kinds
        self.room = MachineRoom.of(seed)
        # On odd seeds nothing that is acknowledged is lost with all machines' power.
        flushed = {"log.flush.interval.messages": "1"} if seed % 2 else {}
        self.brokers = Brokers(self.room, config=flushed)
        self.acknowledged: dict[int, bytes] = {}
        self.faults = dict.fromkeys(kinds, 0)
        self._is_over = False
        self._starting: list[asyncio.Task[None]] = []

    def run(self) -> Outcome:
        loop, network = self.room.loop, self.room.network
        try:
            found = loop.run(within(1_000_000, self._play()))
            return Outcome(
                network.digest,
                network.arrivals,
                loop.time(),
                self.acknowledged,
                found,
                self.faults,
                list(loop.findings),
            )
        finally:
            loop.close()

    async def _play(self) -> dict[int, bytes]:
        await self.brokers.start()
        writing = self._client("producer").start(self._write())
        while self.room.loop.time() < FAULTS_END_S:
            await asyncio.sleep(self.random.random() * 2)
            await self._befall(self.random.choice(self.kinds))
        for each in self._starting:
            await within(LONG_MS, each)
        await asyncio.sleep(5)
        self._is_over = True
        await within(LONG_MS, writing)
        last = max(self.acknowledged)
        found = await within(LONG_MS, self._client("consumer").call(self._read(last)))
        await within(LONG_MS, self.brokers.stop())
        return found

    # ---- clients ----

    def _client(self, name: str) -> Life:
        return self.room.network.process(name)

    async def _write(self) -> None:
        seams = client_seams(self.room.loop, self.room.seed, "producer")
        async with Producer(
            self.brokers.bootstrap_servers,
            seams=seams,
            request_timeout_ms=2000,
            delivery_timeout_ms=LONG_MS,
        ) as producer:
            number = 0
            while not self._is_over:
                value = b"record %d" % number
                delivery = await producer.send(TOPIC, value=value)
                self.acknowledged[(await delivery).offset] = value
                number += 1
                await asyncio.sleep(self.random.random() * 0.05)

    async def _read(self, last: int) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        async with Consumer(
            self.brokers.bootstrap_servers,
            seams=client_seams(self.room.loop, self.room.seed, "consumer"),
            group_id="group",
            auto_offset_reset="earliest",
            request_timeout_ms=2000,
        ) as consumer:
            consumer.subscribe([TOPIC])
            while last not in found:
                for record in await consumer.poll(1000):
                    found[record.offset] = bytes(record.value or b"")
            await consumer.commit_sync()
        return found

    # ---- faults ----

    async def _befall(self, kind: str) -> None:
        broker = self.brokers[self.random.choice((1, 2, 3))]
        if not broker.is_running:
            return
        if kind in ("kill", "power", "stop"):
            if len(self.brokers.running) < 3 or (kind == "stop" and not broker.is_serving):
                return
            await self._end(kind, broker)
            self._starting.append(asyncio.create_task(self._start_again(broker)))
        else:
            self._disturb(kind, broker)
        self.faults[kind] += 1

    async def _end(self, kind: str, broker: SimBroker) -> None:
        if kind == "kill":
            broker.kill()
        elif kind == "power":
            broker.power_cut()
        else:
            await within(LONG_MS, broker.stop())

    async def _start_again(self, broker: SimBroker) -> None:
        """Again and again, as the operator of a machine does."""
        await asyncio.sleep(self.random.random() * 3)
        while not broker.is_running:
            try:
                await broker.start()
            except (LifeOver, MetadataError):
                await asyncio.sleep(1)

    def _disturb(self, kind: str, broker: SimBroker) -> None:
        loop, network, host = self.room.loop, self.room.network, broker.host
        other = self.brokers[broker.broker_id % 3 + 1].host
        later = self.random.random() * 3
        session = broker.session
        assert session is not None
        if kind == "pause":
            broker.pause(round(later * 1000))
        elif kind == "reset":
            network.reset(host)
        elif kind == "slow":
            network.slow(host, self.random.randrange(50_000))
            loop.call_later(later, network.slow, host, 0)
        elif kind == "cut":
            network.cut(host, other)
            loop.call_later(later, network.mend, host, other)
        elif kind == "store cut":
            session.cut()
            loop.call_later(later, session.mend)
        else:
            self.room.store.expire(session.session_id)


if __name__ == "__main__":
    for text in sys.argv[1:]:
        outcome = Turmoil(int(text)).run()
        print(text, outcome.digest, outcome.arrivals, outcome.virtual_s, len(outcome.found))
