"""Three brokers on a loop of the machine's own, under the clients that the simulator runs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

from barnabas.broker.server import Server
from barnabas.client.channel import system_seams
from barnabas.clock import SystemClock
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.config import BrokerConfig
from simulation.whole.clients import Clients
from simulation.whole.environment import Options
from tests.kit.processes.broker_process import free_port

PATIENCE_MS = 120_000  # of a client that waits, on a machine that does much else


class Brokers:
    """Brokers 1 to 3, on files below a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._store = EmbeddedStore()
        # Which a broker finds free again when it comes back.
        self._ports = {broker_id: free_port() for broker_id in (1, 2, 3)}
        self.servers: dict[int, Server] = {}

    async def __aenter__(self) -> Brokers:
        for broker_id in (1, 2, 3):
            await self.start(broker_id)
        for server in self.servers.values():
            await server.knows_brokers([1, 2, 3])
        return self

    async def __aexit__(self, *error: object) -> None:
        for broker_id in list(self.servers):
            await self.servers.pop(broker_id).stop(gives_away=False)
        await self._store.close()

    async def start(self, broker_id: int) -> None:
        server = Server(BrokerConfig(self._properties(broker_id)), store=self._store.session())
        await server.start()
        self.servers[broker_id] = server

    async def stop(self, broker_id: int) -> None:
        await self.servers.pop(broker_id).stop()

    def log_file(self, broker_id: int, name: str) -> Path:
        """The first segment of the partition `name`."""
        return self._directory / f"broker-{broker_id}" / name / f"{0:020}.log"

    def clients(self, seed: int, options: Options) -> Clients:
        addresses = [f"127.0.0.1:{port}" for port in self._ports.values()]
        return Clients(addresses, lambda _: system_seams(), Random(seed), SystemClock(), options)

    def _properties(self, broker_id: int) -> dict[str, str]:
        return {
            "broker.id": str(broker_id),
            "listeners": f"PLAINTEXT://127.0.0.1:{self._ports[broker_id]}",
            "log.dirs": str(self._directory / f"broker-{broker_id}"),
            "group.initial.rebalance.delay.ms": "0",
            "log.cleaner.enable": "false",
            "offsets.topic.num.partitions": "2",
            "offsets.topic.replication.factor": "3",
            # A broker that a busy machine has kept waiting is no fault: if it left the ISR, writes
            # would be left in doubt (NOT_ENOUGH_REPLICAS_AFTER_APPEND).
            "replica.lag.time.max.ms": str(PATIENCE_MS),
            "transaction.state.log.min.isr": "2",
            "transaction.state.log.num.partitions": "2",
            "transaction.state.log.replication.factor": "3",
        }


async def run_for(clients: Clients, seconds: float) -> None:
    """Have them do their work for so long, and come to an end."""
    await clients.prepare()
    clients.start()
    await asyncio.sleep(seconds)
    clients.stop()
    await clients.finished()
