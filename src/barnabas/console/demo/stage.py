"""Carries out the script of the demonstration on a cluster of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Final

from barnabas.console.demo.load import INVOICES_PER_S, ORDERS, PAGE_VIEWS, Load
from barnabas.console.demo.script import KILLED_BROKER, PAUSED_BROKER, ROUND_S, SCRIPT, Action, Step
from barnabas.testing.embedded.cluster import Cluster

_CONFIG: Final = {
    "default.replication.factor": 3,
    "min.insync.replicas": 2,
    "offsets.topic.replication.factor": 3,
    "offsets.topic.num.partitions": 3,
    # A visitor should not have to wait half a minute for each event.
    "replica.lag.time.max.ms": 5_000,
    "group.initial.rebalance.delay.ms": 0,
    # A paused broker must fall behind, not fail, so it keeps its session.
    "zookeeper.session.timeout.ms": 60_000,
}

Report = Callable[[Step], None]


class Stage:
    """Runs the cluster and its load inside `async with`, and runs the script with `play`."""

    def __init__(self) -> None:
        self._cluster = Cluster(3, config=_CONFIG, own_threads=True)
        self._load: Load | None = None

    async def __aenter__(self) -> Stage:
        await asyncio.to_thread(self._cluster.start)
        try:
            self._load = Load(self._cluster.bootstrap_servers)
            await self._load.start()
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._close()

    async def _close(self) -> None:
        if self._load is not None:
            await self._load.close()
        await asyncio.to_thread(self._cluster.close)

    @property
    def servers(self) -> str:
        """The brokers' addresses."""
        return self._cluster.bootstrap_servers

    async def play(self, report: Report, pace: float = 1.0) -> None:
        """Run the script once, and report each step before it is carried out.

        `pace` is the speed factor: with 2, the script takes half the time.
        """
        clock = asyncio.get_running_loop().time
        began_s = clock()
        for step in SCRIPT:
            await asyncio.sleep(began_s + step.at_s / pace - clock())
            report(step)
            await self._do(step.action)
        await asyncio.sleep(began_s + ROUND_S / pace - clock())

    async def _do(self, action: Action) -> None:
        assert self._load is not None
        load, cluster = self._load, self._cluster
        if action is Action.JOIN:
            load.join("analytics-3", "analytics", PAGE_VIEWS)
        elif action is Action.LEAVE:
            await load.leave("analytics-3")
        elif action is Action.HELP:
            # Without help, the consumer would need the rest of the round to stop falling behind.
            load.join("invoices-2", "invoices", ORDERS, 10 * INVOICES_PER_S)
        elif action is Action.CRASH_LOOP:
            load.crash_loop("checkout-3", "checkout", ORDERS)
        elif action is Action.END_HELP:
            await load.leave("invoices-2")
        elif action is Action.START_PROCESS:
            load.start_process("reports", ORDERS)
        elif action is Action.KILL_PROCESS:
            load.kill_process()
        else:
            changes: dict[Action, Callable[[], object]] = {
                Action.KILL_BROKER: partial(cluster.kill_broker, KILLED_BROKER),
                Action.START_BROKER: partial(cluster.start_broker, KILLED_BROKER),
                Action.PAUSE_BROKER: partial(cluster.pause, PAUSED_BROKER),
                Action.RESUME_BROKER: partial(cluster.resume, PAUSED_BROKER),
            }
            await asyncio.to_thread(changes[action])
