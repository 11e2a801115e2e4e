"""Injects faults into whole brokers and makes operators' requests; each fault undoes itself in
time.

A broker that is down is restarted until it serves, as a process supervisor does. If brokers do not
flush before they answer, a machine loses power only while all replicas are in sync, and is killed
instead at other times: nothing is promised if two lose power at almost the same time.
"""

from __future__ import annotations

import asyncio
import errno
from collections import Counter
from collections.abc import Callable, Coroutine
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from barnabas.errors import BarnabasError
from barnabas.storage.directory import DELETED_SUFFIX
from barnabas.types import TopicPartition
from simulation.options import Fault
from simulation.whole.brokers import DATA, SECOND_DATA, Brokers, MachineRoom, SimBroker
from simulation.whole.costs import BUSY_TURN_US, SLOW_SYNC_US
from simulation.whole.guests import Guests
from simulation.whole.lives import LifeOver
from simulation.whole.operators import Operators
from simulation.whole.plan import (
    AT_A_DELETION,
    BUSY,
    CLOCK,
    CLOCK_AT_BOOT,
    DESCRIPTORS,
    DISK_SLOW,
    EMPTIED,
    FLIP_AT_A_CRASH,
    MACHINE_FAULTS,
    MOVE_LOG_DIR,
    OPERATIONS,
    PIPELINED,
    POWER_IN_A_TURN,
    STRIKES,
    UNREAD,
)

if TYPE_CHECKING:
    from simulation.whole.environment import Environment
    from simulation.whole.plan import Plan

_RETRY_MS = 300
_BOUNCE_MS = 30
_SLOW_US = 40_000
_FLIPPED_MS = 2_500
_MINUTE_MS = 60_000
_DAY_MS = 24 * 60 * _MINUTE_MS
_STEPS_MS = (30 * _DAY_MS, 400 * _DAY_MS, 2 * _DAY_MS, -50 * _MINUTE_MS, -30 * _DAY_MS)
_STARTED_AGAIN = ("kill", "bounce", "power", "power all", "stop")


class Trouble:
    """Carries out a plan. `done` counts, by kind, the faults that took effect."""

    def __init__(
        self, room: MachineRoom, brokers: Brokers, plan: Plan, around: Environment
    ) -> None:
        self._room = room
        self._loop = room.loop
        self._network = room.network
        self._brokers = brokers
        self._plan = plan
        self._history = around.history
        self._operators = Operators(room, brokers, plan, around)
        self._guests = Guests(room, brokers, around.history)
        self._supervised: dict[int, asyncio.Task[None]] = {}
        self._tasks: list[asyncio.Task[Any]] = []
        self._down_until_us: dict[int, int] = {}
        self._flips: list[Callable[[], None]] = []
        self.done: Counter[str] = Counter()
        self.on_fault: Callable[[str, int, int, int], object] = _ignore
        """Called with the kind of each fault that takes effect, its brokers and how long it
        lasts."""
        self.over_at_us = 0
        """When every fault has been undone, including faults that go on after their end."""

    def begin(self) -> None:
        """Begin the plan: its times count from now."""
        ends_ms = [fault.at_ms + fault.for_ms + _FLIPPED_MS for fault in self._plan.faults]
        self.over_at_us = self._loop.now_us + 1000 * max(ends_ms, default=0)
        for fault in self._plan.faults:
            at_us = self._loop.now_us + fault.at_ms * 1000
            self._loop.world_at_us(at_us, self._happen, fault)

    def _spare(self) -> None:
        for broker in self._brokers.by_id.values():
            broker.files.spare()
            broker.files.limit(None)
            broker.files.slow(0)
        for undo in self._flips:
            undo()  # because the rules look at the bytes

    async def heal(self, limit_ms: int) -> None:
        """Return when every broker serves; faults still going on end by themselves.

        May time out.
        """
        self._history.tell("no more faults")
        self._down_until_us.clear()
        self._spare()
        async with asyncio.timeout(limit_ms / 1000):
            while not all(
                each.is_serving and not _has_damaged(each) for each in self._brokers.by_id.values()
            ):
                self._start_the_damaged_again()
                for broker_id in self._brokers.by_id:
                    self.supervise(broker_id)
                await asyncio.sleep(_RETRY_MS / 1000)

    def _start_the_damaged_again(self) -> None:
        """Kill brokers that have found a damaged log, because their files read right by now, but
        only a start finds that out."""
        for broker in self._brokers.by_id.values():
            if broker.is_serving and _has_damaged(broker):
                broker.kill()

    def _happen(self, fault: Fault) -> None:
        kind = fault.kind
        if kind in _STARTED_AGAIN:
            self._end(fault)
        elif kind in STRIKES or kind == AT_A_DELETION:
            broker = self._brokers[fault.first]
            begins_with = DELETED_SUFFIX if kind == AT_A_DELETION else ""
            broker.strike(fault.second, lambda: self._fall(fault, broker), begins_with)
        elif kind == FLIP_AT_A_CRASH:
            self._flip_at_a_crash(fault, self._brokers[fault.first])
        elif kind in ("pause", "store cut", "expire", "store away"):
            self._disturb_session(fault)
        elif kind in ("disk full", "disk broken"):
            self._spoil_disk(fault)
        elif kind == EMPTIED:
            self._empty(fault, self._brokers[fault.first])
        elif kind == CLOCK_AT_BOOT:
            self._boot_at_another_time(fault, self._brokers[fault.first])
        elif kind in (UNREAD, PIPELINED):
            self._tell(fault, f"broker {fault.first}")
            is_unread = kind == UNREAD
            self._start((self._guests.do_not_read if is_unread else self._guests.pipeline)(fault))
        elif kind in MACHINE_FAULTS:
            self._befall(fault, self._brokers[fault.first])
        elif kind in ("preferred", "reassign", MOVE_LOG_DIR, *OPERATIONS):
            self._tell(fault, "an operator asks for it")
            self._start(self._operators.operate(fault))
        else:
            self._disturb_network(fault)

    def _tell(self, fault: Fault, what: str) -> None:
        self.done[fault.kind] += 1
        self.on_fault(fault.kind, fault.first, fault.second, fault.for_ms)
        self._history.tell("{}: {} ({} ms)", what, fault.kind, fault.for_ms)

    def _start(self, work: Coroutine[Any, Any, Any]) -> None:
        self._tasks.append(self._loop.create_task(work, context=self._loop.world))

    def _later(self, after_ms: int, action: Any, *values: Any) -> None:
        self._loop.world_at_us(self._loop.now_us + 1000 * after_ms, action, *values)

    # ---- processes ----

    def _end(self, fault: Fault) -> None:
        kind = fault.kind
        victims = [self._brokers[fault.first]]
        if kind == "power all":
            victims = list(self._brokers.by_id.values())
        loses_power = kind.startswith("power") and self._may_lose_power(len(victims))
        for number, broker in enumerate(victims):
            if not broker.is_running:
                continue
            self._tell(fault._replace(first=broker.broker_id), f"broker {broker.broker_id}")
            after_ms = (
                _BOUNCE_MS if kind in ("bounce", CLOCK_AT_BOOT) else fault.for_ms + 200 * number
            )
            self._down_until_us[broker.broker_id] = self._loop.now_us + 1000 * after_ms
            if kind == "stop" and broker.is_serving:
                self._start(self._stop(broker))
                continue
            if loses_power:
                broker.power_cut()
            else:
                broker.kill()
            self.supervise(broker.broker_id)

    def _fall(self, fault: Fault, broker: SimBroker) -> None:
        """Kill the broker or cut its power, in the middle of one of its turns."""
        self._tell(fault, f"broker {broker.broker_id}")
        until_us = self._loop.now_us + 1000 * fault.for_ms
        self._down_until_us[broker.broker_id] = until_us
        if fault.kind in (POWER_IN_A_TURN, AT_A_DELETION) and self._may_lose_power(1):
            broker.power_cut()
        else:
            broker.kill()
        self.supervise(broker.broker_id)

    def _may_lose_power(self, victims: int) -> bool:
        is_flushed = self._plan.flush_interval_messages == 1
        return is_flushed or (victims == 1 and self.are_all_in_sync())

    def are_all_in_sync(self) -> bool:
        """Return whether every replica that any broker has is in the ISR of its leader."""
        partitions = []
        for broker in self._brokers.by_id.values():
            if not broker.is_serving or broker.server is None:
                return False
            partitions += [replica.partition for replica in broker.server.node.replicas]
        epochs: dict[TopicPartition, int] = {}
        for each in partitions:
            epochs[each.topic_partition] = max(
                each.leader_epoch, epochs.get(each.topic_partition, 0)
            )
        led = [each for each in partitions if each.is_leader]
        return (
            all(each.leader_epoch == epochs[each.topic_partition] for each in partitions)
            and {each.topic_partition for each in led} == epochs.keys()
            and all(sorted(each.isr) == sorted(each.replicas) for each in led)
        )

    async def _stop(self, broker: SimBroker) -> None:
        try:
            await broker.stop()
        except LifeOver:
            self._history.tell("broker {} was killed while it stopped", broker.broker_id)
        except OSError as error:  # its disk is broken, or it has no descriptor left
            self._history.tell("broker {} has not stopped cleanly: {}", broker.broker_id, error)
        self.supervise(broker.broker_id)

    def supervise(self, broker_id: int) -> None:
        """Make sure that the broker runs again, once its time has come."""
        task = self._supervised.get(broker_id)
        if (task is None or task.done()) and not self._brokers[broker_id].is_running:
            self._supervised[broker_id] = self._loop.create_task(
                self._bring_up(self._brokers[broker_id]), context=self._loop.world
            )

    async def _bring_up(self, broker: SimBroker) -> None:
        while not broker.is_running:
            until_us = self._down_until_us.get(broker.broker_id, 0)
            if self._loop.now_us < until_us:
                await asyncio.sleep((until_us - self._loop.now_us) / 1e6)
                continue
            try:
                await broker.start()
            except (LifeOver, BarnabasError, OSError) as error:
                self._history.tell("broker {} does not start: {}", broker.broker_id, error)
                await asyncio.sleep(_RETRY_MS / 1000)
            else:
                self._history.tell("broker {} serves", broker.broker_id)

    # ---- network ----

    def _disturb_network(self, fault: Fault) -> None:
        network, host = self._network, self._brokers[fault.first].host
        self._tell(fault, host)
        if fault.kind == "reset":
            network.reset(host)
            return
        if fault.kind == "slow":
            network.slow(host, _SLOW_US)
            self._later(fault.for_ms, network.slow, host, 0)
            return
        others = [each.host for each in self._brokers.by_id.values() if each.host != host]
        ways = [(host, self._brokers[fault.second].host)]
        if fault.kind == "isolate":
            ways = [(host, other) for other in others] + [(other, host) for other in others]
        elif fault.kind == "cut clients":
            ways = [(host, "clients"), ("clients", host)]
        for way in ways:
            network.cut(*way)
            self._later(fault.for_ms, network.mend, *way)

    # ---- the metadata store ----

    def _disturb_session(self, fault: Fault) -> None:
        store, broker = self._room.store, self._brokers[fault.first]
        if fault.kind == "store away":
            self._tell(fault, "the metadata store")
            store.stop()
            self._later(fault.for_ms, store.start)
            return
        if not broker.is_running or broker.session is None:
            return
        self._tell(fault, broker.host)
        if fault.kind == "pause":
            broker.pause(fault.for_ms)
        elif fault.kind == "expire":
            store.expire(broker.session.session_id)
        else:
            broker.session.cut()
            self._later(fault.for_ms, broker.session.mend)

    # ---- machines ----

    def _empty(self, fault: Fault, broker: SimBroker) -> None:
        if broker.is_running and self.are_all_in_sync():
            self._end(fault)
            self.replace_disk(broker, fault.second)

    def replace_disk(self, broker: SimBroker, number: int) -> None:
        """Replace the disk of one of the log directories with a new one."""
        paths = [DATA, SECOND_DATA] if self._plan.has_two_log_dirs else [DATA]
        path = paths[number % len(paths)]
        broker.files.empty(path)
        broker.finds_ahead_ms = 0  # the time to compare it with may be gone
        self._history.tell("broker {} has a new disk for {}", broker.broker_id, path)

    def _befall(self, fault: Fault, broker: SimBroker) -> None:
        """Inject a temporary fault that stops no broker."""
        kind = fault.kind
        undo: Callable[[], None] | None = None
        if kind == CLOCK:
            broker.set_calendar(_STEPS_MS[fault.for_ms % len(_STEPS_MS)])
            undo = partial(broker.set_calendar, 0)
        elif kind == DISK_SLOW:
            broker.files.slow(SLOW_SYNC_US, self._loop.now_us + 1000 * fault.for_ms)
            undo = partial(broker.files.slow, 0)
        elif kind == DESCRIPTORS:
            broker.files.limit(fault.second)
            undo = partial(broker.files.limit, None)
        elif kind == BUSY:
            if broker.life is not None:
                broker.life.turn_us = BUSY_TURN_US
                undo = partial(setattr, broker.life, "turn_us", 0)
        else:
            undo = broker.files.flip(DATA, self._dice_of(fault))
            if undo is not None:
                self._flips.append(undo)
        if undo is not None:
            self._tell(fault, broker.host)
            self._later(fault.for_ms, undo)

    def _flip_at_a_crash(self, fault: Fault, broker: SimBroker) -> None:
        """Flip a bit and stop the broker: its next start meets the damage, unless that has ended
        by then."""
        undo = None
        if broker.is_running:
            undo = broker.files.flip(DATA, self._dice_of(fault), with_snapshots=True)
        if undo is None:
            return
        self._flips.append(undo)
        self._tell(fault, broker.host)
        self._later(fault.for_ms + _FLIPPED_MS, undo)
        self._end(fault._replace(kind="power" if fault.second == 1 else "kill"))

    def _dice_of(self, fault: Fault) -> Random:
        return Random(f"flip {self._plan.seed} {fault.at_ms}")

    def _boot_at_another_time(self, fault: Fault, broker: SimBroker) -> None:
        if broker.is_running:
            broker.finds_ahead_ms = _STEPS_MS[fault.for_ms % len(_STEPS_MS)]
            self._end(fault)
            self._later(_BOUNCE_MS + fault.for_ms, self._right_again, broker)

    def _right_again(self, broker: SimBroker) -> None:
        broker.finds_ahead_ms = 0
        broker.set_calendar(0)

    # ---- disks ----

    def _spoil_disk(self, fault: Fault) -> None:
        broker = self._brokers[fault.first]
        self._tell(fault, broker.host)
        code = errno.ENOSPC if fault.kind == "disk full" else errno.EIO
        broker.files.fail(DATA, code, fault.for_ms)  # immediately, or after some more bytes
        self._later(fault.for_ms, self._repair, broker)

    def _repair(self, broker: SimBroker) -> None:
        """Repair the disk and restart the broker, which then uses again what it had given up."""
        broker.files.heal(DATA)
        if broker.is_running:
            broker.kill()
        self.supervise(broker.broker_id)


def _ignore(kind: str, first: int, second: int, for_ms: int) -> None:
    """Do nothing."""


def _has_damaged(broker: SimBroker) -> bool:
    """Return whether its broker has found a damaged log."""
    server = broker.server
    return broker.is_serving and server is not None and bool(server.node.replicas.store.damaged)
