"""Faults that occur one at a time in a healthy cluster, so that their effect has a time limit.

Clients write all the time. When such a fault occurs among others, the only requirement is that no
rule is broken. Here, if a broker that hangs, is paused or has lost a disk exceeds the limit, no
other fault can be the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cluster.layout import GROUP_TOPIC
from barnabas.types import TopicPartition
from simulation.options import Fault
from simulation.whole.brokers import DATA, SECOND_DATA, Brokers, MachineRoom, SimBroker
from simulation.whole.environment import FLEETING, TOPICS
from simulation.whole.guests import Guests
from simulation.whole.plan import HUNG, PAUSED_FOLLOWER, REPLACED
from simulation.whole.rules import RULE_OF_DRILL, Tally

if TYPE_CHECKING:
    from simulation.whole.environment import Environment
    from simulation.whole.plan import Plan
    from simulation.whole.trouble import Trouble

HANG_TIMEOUT_MS = 3_000
"""The `log.dir.failure.timeout.ms` of all brokers."""

_NOTICED_MS = HANG_TIMEOUT_MS * 3 // 2
"""The pulse looks four times in this time, and a write begins at most one look late."""
_ELECTED_MS = 3_000
_BEYOND_MS = 3_000
"""How much longer a fault lasts than its effect may take."""
_SYNC_MS = 60_000
_HEALED_MS = 60_000
_PROMPT_MS = 1_000
_LOOK_EVERY_S = 0.1


class Drills:
    """Carries out the drills of a plan and judges each; the outcome is in `tally`."""

    def __init__(
        self,
        room: MachineRoom,
        brokers: Brokers,
        plan: Plan,
        around: Environment,
        trouble: Trouble,
    ) -> None:
        self.tally = Tally()
        self._loop = room.loop
        self._brokers = brokers
        self._plan = plan
        self._history = around.history
        self._trouble = trouble
        self._guests = Guests(room, brokers, around.history)
        self._drills: Mapping[str, Callable[[Fault], Awaitable[None]]] = {
            HUNG: self._hang,
            PAUSED_FOLLOWER: self._pause_follower,
            REPLACED: self._replace_disk,
        }

    async def run(self) -> None:
        """Run the drills; returns when the last one is over and all brokers serve."""
        if self._plan.drills:
            # For example, a disk is repaired at its time, and its broker is then restarted.
            await asyncio.sleep(max(0, self._trouble.over_at_us - self._loop.now_us) / 1e6)
            await self._trouble.heal(_HEALED_MS)
        for drill in self._plan.drills:
            if not await self._until(self._trouble.are_all_in_sync, _SYNC_MS):
                self._judge(drill, False, "before it, not all replicas came into sync")
                return
            self._trouble.done[drill.kind] += 1
            self._history.tell("the drill begins: {} {}", drill.kind, drill.first)
            await self._drills[drill.kind](drill)
            await self._trouble.heal(_HEALED_MS)

    # ---- a disk that hangs ----

    async def _hang(self, drill: Fault) -> None:
        """Hang the disk of the broker that leads most."""
        broker = self._leading_most()
        life, session = broker.life, broker.session
        assert life is not None and session is not None
        led = [name for name in self._led_by(broker) if name.topic != FLEETING]
        lasts_ms = _NOTICED_MS + _ELECTED_MS + _BEYOND_MS
        self._trouble.on_fault(HUNG, broker.broker_id, 0, lasts_ms)
        until_us = self._loop.now_us + 1000 * lasts_ms
        for path in self._directories(drill):
            broker.files.hang(path, until_us)
        judge_us = self._loop.now_us + 1000 * (_NOTICED_MS + _ELECTED_MS)
        while self._loop.now_us < judge_us:
            session.beat_by_itself()
            await asyncio.sleep(_LOOK_EVERY_S)
        led_by_others = {
            name
            for each in self._brokers.by_id.values()
            if each is not broker
            for name in self._led_by(each)
        }
        left = sorted(set(led) - led_by_others)
        self._judge(drill, not left, "{} leads {} though it hangs", broker.host, left)
        while self._loop.now_us < until_us:
            session.beat_by_itself()
            await asyncio.sleep(_LOOK_EVERY_S)
        has_ended = await self._until(lambda: life.is_over, _BEYOND_MS)
        self._judge(drill, has_ended, "{} goes on after it was hung", broker.host)
        broker.files.go_on()
        if not life.is_over:
            life.kill()
        self._trouble.supervise(broker.broker_id)

    def _directories(self, drill: Fault) -> list[Path]:
        """Return the directories that are on the disk: both, or the first one."""
        if self._plan.has_two_log_dirs and drill.second:
            return [DATA, SECOND_DATA]
        return [DATA]

    # ---- a follower that stands still ----

    async def _pause_follower(self, drill: Fault) -> None:
        """Pause a broker that leads no partition of the offsets topic, so that all coordinators
        of groups go on."""
        leads_offsets = {
            each.broker_id
            for each in self._brokers.by_id.values()
            if any(name.topic == GROUP_TOPIC for name in self._led_by(each))
        }
        idle = [each for each in self._brokers.by_id if each not in leads_offsets]
        if not idle:
            return
        broker = self._brokers[idle[drill.first % len(idle)]]
        # It leaves the ISR by whichever ends first; the ISR is checked every half lag time (RE-8).
        plan = self._plan
        leaves_ms = min(plan.lag_time_max_ms * 3 // 2, plan.session_timeout_ms) + _ELECTED_MS
        self._trouble.on_fault(PAUSED_FOLLOWER, broker.broker_id, 0, leaves_ms + _BEYOND_MS)
        broker.pause(leaves_ms + _BEYOND_MS)
        others = [each for each in self._brokers.by_id if each != broker.broker_id]
        slowest_ms = await self._guests.beat(others, leaves_ms)
        self._judge(drill, slowest_ms < _PROMPT_MS, "a heartbeat took {} ms", slowest_ms)
        still = sorted(
            replica.topic_partition
            for each in self._brokers.by_id.values()
            if each is not broker and each.server is not None
            for replica in each.server.node.replicas
            if replica.partition.is_leader and broker.broker_id in replica.partition.isr
        )
        self._judge(drill, not still, "{} is in sync in {}", broker.host, still)
        broker.resume()

    # ---- a disk that is replaced ----

    async def _replace_disk(self, drill: Fault) -> None:
        """Replace the disk of the broker that leads most: it comes back with nothing, sooner or
        later."""
        broker = self._leading_most()
        had = self._hosted_by(broker)
        self._trouble.on_fault(REPLACED, broker.broker_id, 0, drill.for_ms)
        if drill.second:
            await broker.stop()
        else:
            broker.kill()
        self._trouble.replace_disk(broker, drill.first)
        await asyncio.sleep(drill.for_ms / 1000)
        self._trouble.supervise(broker.broker_id)
        is_whole = await self._until(
            lambda: self._trouble.are_all_in_sync() and had <= self._hosted_by(broker), _SYNC_MS
        )
        self._judge(drill, is_whole, "{} has not got back all of {}", broker.host, sorted(had))

    # ---- what all of them need ----

    def _judge(self, drill: Fault, holds: bool, text: str, *values: object) -> None:
        self.tally.judge(RULE_OF_DRILL[drill.kind], holds, text, *values)

    def _leading_most(self) -> SimBroker:
        return max(self._brokers.by_id.values(), key=lambda each: len(self._led_by(each)))

    def _led_by(self, broker: SimBroker) -> list[TopicPartition]:
        if broker.server is None or not broker.is_serving:
            return []
        replicas = broker.server.node.replicas
        return [each.topic_partition for each in replicas if each.partition.is_leader]

    def _hosted_by(self, broker: SimBroker) -> set[TopicPartition]:
        """Return the hosted partitions of topics that last for the whole run."""
        if broker.server is None or not broker.is_serving:
            return set()
        replicas = broker.server.node.replicas
        return {each.topic_partition for each in replicas if each.topic_partition.topic in TOPICS}

    async def _until(self, holds: Callable[[], bool], most_ms: int) -> bool:
        until_us = self._loop.now_us + 1000 * most_ms
        while not holds():
            if self._loop.now_us >= until_us:
                return False
            await asyncio.sleep(_LOOK_EVERY_S)
        return True
