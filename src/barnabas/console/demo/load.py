"""Sends records to the demonstration's topics, and reads them in groups.

page-views ─▶ analytics   two members, and a third from time to time
orders     ─▶ checkout    two members that keep up
           └▶ invoices    one member that is too slow, until another one helps it
           └▶ reports     a process of its own, which can be killed
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
from collections.abc import Awaitable
from contextlib import suppress
from typing import Final, NamedTuple

from barnabas.client import Admin, Consumer, NewTopic, Producer
from barnabas.errors import BarnabasError

REPLICAS: Final = 3
SESSION_TIMEOUT_MS: Final = 6_000
_PATHS: Final = ("/", "/shoes", "/shoes/trail-runner", "/hats", "/cart", "/checkout", "/search")
_COUNTRIES: Final = ("DE", "FR", "GB", "IN", "US")
_BEAT_S: Final = 0.1
_POLL_MS: Final = 500
_CRASHES: Final = 6
_HEARTBEAT_MS: Final = 500
"""The maximum time until a member notices a rebalance."""


class Topic(NamedTuple):
    """Represents a topic and the rate at which records are produced to it."""

    name: str
    partitions: int
    rate: int


PAGE_VIEWS: Final = Topic("page-views", 6, 200)
ORDERS: Final = Topic("orders", 3, 40)
INVOICES_PER_S: Final = 25
"""The rate of one member of the group invoices. It is too slow to keep up with the orders."""


class Load:
    """Runs the producers and consumers of the demonstration until `close` is called."""

    def __init__(self, servers: str, seed: int = 1) -> None:
        self._servers = servers
        self._random = random.Random(seed)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        """Create the topics, and start the producers and consumers."""
        async with Admin(self._servers) as admin:
            await admin.create_topics(
                NewTopic(topic.name, topic.partitions, REPLICAS) for topic in (PAGE_VIEWS, ORDERS)
            )
        self._begin("producer", self._send())
        for member in ("analytics-1", "analytics-2"):
            self.join(member, "analytics", PAGE_VIEWS)
        for member in ("checkout-1", "checkout-2"):
            self.join(member, "checkout", ORDERS)
        self.join("invoices-1", "invoices", ORDERS, INVOICES_PER_S)

    async def close(self) -> None:
        """Stop all producers and consumers. The members leave their groups."""
        self.kill_process()
        for name in [*self._tasks]:
            await self.leave(name)

    def join(self, member: str, group: str, topic: Topic, per_s: int | None = None) -> None:
        """Start a group member with this client id.

        `per_s` is the maximum number of records processed per second; None means no limit.
        """
        self._begin(member, self._read(member, group, topic, per_s))

    def crash_loop(self, member: str, group: str, topic: Topic) -> None:
        """Start a member that exits after its first poll, several times in a row."""
        if member in self._tasks:
            self._tasks.pop(member).cancel()
        self._begin(member, self._crash(member, group, topic))

    async def leave(self, name: str) -> None:
        """Stop a member, which then leaves its group, or the producer."""
        task = self._tasks.pop(name)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    def start_process(self, group: str, topic: Topic) -> None:
        """Start `barnabas consume` as a group member in a separate process."""
        command = [sys.executable, "-c", "from barnabas.cli.main import main; main()", "consume"]
        command += [topic.name, "--group", group, "--bootstrap-server", self._servers]
        command += ["--consumer-property", f"session.timeout.ms={SESSION_TIMEOUT_MS}"]
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def kill_process(self) -> None:
        """Kill the process started by `start_process`, so that it does not leave its group."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _begin(self, name: str, work: Awaitable[None]) -> None:
        self._tasks[name] = asyncio.ensure_future(work)

    async def _send(self) -> None:
        async with Producer(self._servers, client_id="shop", linger_ms=20) as producer:
            while True:
                for topic, new in ((PAGE_VIEWS, self._page_view), (ORDERS, self._order)):
                    for _ in range(int(topic.rate * _BEAT_S)):
                        key, value = new()
                        await producer.send(topic.name, json.dumps(value).encode(), key=key)
                await asyncio.sleep(_BEAT_S)

    def _page_view(self) -> tuple[bytes, dict[str, object]]:
        visitor = f"visitor-{self._random.randrange(400)}"
        path, country = self._random.choice(_PATHS), self._random.choice(_COUNTRIES)
        return visitor.encode(), {"visitor": visitor, "path": path, "country": country}

    def _order(self) -> tuple[bytes, dict[str, object]]:
        customer = f"customer-{self._random.randrange(100)}"
        cents = self._random.randrange(500, 20_000)
        return customer.encode(), {"customer": customer, "cents": cents, "currency": "EUR"}

    async def _crash(self, member: str, group: str, topic: Topic) -> None:
        for _ in range(_CRASHES):
            with suppress(BarnabasError):
                async with Consumer(
                    self._servers, group_id=group, client_id=member, enable_auto_commit=False
                ) as consumer:
                    consumer.subscribe([topic.name])
                    while not consumer.assignment():
                        await consumer.poll(_POLL_MS)
            await asyncio.sleep(1)

    async def _read(self, member: str, group: str, topic: Topic, per_s: int | None) -> None:
        while True:
            try:
                async with Consumer(
                    self._servers,
                    group_id=group,
                    client_id=member,
                    auto_offset_reset="earliest",
                    auto_commit_interval_ms=1_000,
                    session_timeout_ms=SESSION_TIMEOUT_MS,
                    heartbeat_interval_ms=_HEARTBEAT_MS,
                ) as consumer:
                    consumer.subscribe([topic.name])
                    while True:
                        # A slow member reads few records at a time, so that it polls often.
                        most = None if per_s is None else max(1, per_s // 2)
                        records = await consumer.poll(_POLL_MS, most)
                        if per_s is not None:
                            await asyncio.sleep(len(records) / per_s)
            except BarnabasError:
                # A fault injected by the demonstration lasted longer than the client's retries.
                await asyncio.sleep(1)
