"""Makes one run of whole brokers: first with faults, and then without faults, until everything has
recovered.

Brokers and clients are those that users run; loop, network, disks and metadata store are simulated.
"""

from __future__ import annotations

import asyncio
import hashlib
import traceback
from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import NamedTuple

from barnabas.broker.server import Server
from barnabas.cluster.store import SessionState
from simulation.options import Fault
from simulation.story import words
from simulation.whole.brokers import DATA, SECOND_DATA, Brokers, MachineRoom
from simulation.whole.causes import Causes
from simulation.whole.clients import Clients
from simulation.whole.deeds import Deeds
from simulation.whole.drills import HANG_TIMEOUT_MS, Drills
from simulation.whole.environment import Options
from simulation.whole.generations import Generations
from simulation.whole.hearing import Hearing
from simulation.whole.keeper_store import KeeperStore
from simulation.whole.lives import Life
from simulation.whole.loop import LoopError
from simulation.whole.plan import STRIKES, Plan
from simulation.whole.removals import Removals
from simulation.whole.rules import RULES, Allowed
from simulation.whole.seams import EPOCH_MS, VirtualClock, client_seams
from simulation.whole.trouble import Trouble
from simulation.whole.verdict import Judged, judge
from simulation.whole.witness import Witness

_LOOK_EVERY_S = 0.05
_HEALED_MS = 60_000
_AFTER_FAULTS_MS = 2_000
_STORY_LENGTH = 80
_EACH_SECOND = dict.fromkeys(
    (
        "log.cleaner.backoff.ms",
        "log.retention.check.interval.ms",
        "offsets.retention.check.interval.ms",
        "producer.id.expiration.check.interval.ms",
        "transaction.remove.expired.transaction.cleanup.interval.ms",
    ),
    "1000",
)
"""How often the broker looks for data that is old enough to be removed."""

EVENTS = ("elections", "truncations", "expiries", "rebalances", "deaths in a turn")


class Outcome(NamedTuple):
    """The outcome of a run; `broken` is empty if all was well."""

    plan: Plan
    broken: tuple[str, ...]
    judged: Mapping[str, int]  # by rule
    acknowledged: int  # records, by acks=all
    faults: Mapping[str, int]  # by kind, those that took effect
    events: Mapping[str, int]  # EVENTS
    virtual_ms: int
    steps: int
    digest: str
    story: str
    excused: Mapping[str, int]  # by reason: events that no broker could report


class _Stage:
    """Everything in a run."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        room = MachineRoom.of(plan.seed, has_keeper=plan.has_keeper)
        self.room = room._replace(session_timeout_ms=plan.session_timeout_ms)
        config = {
            "replica.lag.time.max.ms": str(plan.lag_time_max_ms),
            "log.flush.interval.messages": str(plan.flush_interval_messages),
            "log.segment.bytes": str(plan.segment_bytes),
            "log.segment.delete.delay.ms": "500",
            "log.flush.offset.checkpoint.interval.ms": "1000",
            "log.dir.failure.timeout.ms": str(HANG_TIMEOUT_MS),
            "log.cleaner.enable": str(plan.is_cleaning).lower(),
            **_EACH_SECOND,
        }
        if plan.has_two_log_dirs:
            config["log.dirs"] = f"{DATA},{SECOND_DATA}"
        self.brokers = Brokers(self.room, range(1, plan.brokers + 1), config)
        self.life: Life = self.room.network.process("clients")
        loop = self.room.loop
        self.clients: Clients = self.life.run(
            lambda: Clients(
                self.brokers.bootstrap_servers,
                lambda name: client_seams(loop, plan.seed, name),
                Random(f"clients {plan.seed}"),
                VirtualClock(loop),
                _options(plan),
            )
        )
        self.trouble = Trouble(self.room, self.brokers, plan, self.clients.around)
        self.drills = Drills(self.room, self.brokers, plan, self.clients.around, self.trouble)
        self.witness = Witness()
        self.deeds = Deeds(loop, self.room.store.tree, self.brokers)
        self.room.store.observer = self.deeds
        self.trouble.on_fault = self.deeds.did
        self.removals = Removals(self.clients.history, plan.lag_time_max_ms)
        self._true = VirtualClock(loop)
        self.expiries = 0
        self.excused: Counter[str] = Counter()
        self._sessions: list[object] = []

    def servers(self) -> dict[int, Server]:
        """Return the brokers that serve."""
        return {
            broker_id: each.server
            for broker_id, each in self.brokers.by_id.items()
            if each.is_serving and each.server is not None
        }

    async def watch(self) -> None:
        """Look at the brokers all the time."""
        while True:
            self.witness.look(self.servers())
            self.deeds.look()
            self.removals.look(self.brokers.by_id, self._true.wall_ms())
            for each in self.brokers.by_id.values():
                session = each.session
                if session is not None and session not in self._sessions:
                    self._sessions.append(session)
                    session.on_session(self._session_is)
            await asyncio.sleep(_LOOK_EVERY_S)

    def _session_is(self, state: SessionState) -> None:
        self.expiries += state is SessionState.EXPIRED


def run(plan: Plan) -> Outcome:
    """Run the plan; the same plan gives the same outcome on any machine."""
    stage = _Stage(plan)
    room, history = stage.room, stage.clients.history
    broken: list[str] = []
    judged: Counter[str] = Counter()
    acknowledged = 0
    hearing = Hearing(history)
    try:
        with hearing:
            verdict = room.loop.run(_play(stage))
        broken += verdict.broken
        judged.update(verdict.counts)
        acknowledged = verdict.acknowledged
    except (LoopError, TimeoutError) as error:
        broken.append(f"liveness: {error!r}")
    except Exception as error:
        # Any error raised here is a finding like any other, with a story to print.
        broken.append("".join(traceback.format_exception(error)))
    broken += [f"{each.life}: {each.message}: {each.error!r}" for each in room.loop.findings]
    broken += hearing.alarms
    steps, virtual_ms = room.loop.steps, room.loop.now_us // 1000
    events = {
        "elections": stage.witness.elections,
        "truncations": hearing.truncations,
        "expiries": stage.expiries,
        "rebalances": len({(each.group, each.generation) for each in history.owned}),
        "deaths in a turn": sum(stage.trouble.done[kind] for kind in STRIKES),
    }
    digest = hashlib.sha256(room.network.digest.encode())
    for line in history.lines:
        digest.update(words(line).encode())
    outcome = Outcome(
        plan, tuple(broken), {rule: judged[rule] for rule in RULES}, acknowledged,
        _faults(stage), events, virtual_ms, steps, digest.hexdigest(),
        _story(stage, broken) if broken else "", stage.excused,
    )  # fmt: skip
    room.loop.close()
    return outcome


def _faults(stage: _Stage) -> dict[str, int]:
    store = stage.room.store
    done = dict(stage.trouble.done)
    if isinstance(store, KeeperStore):
        done |= {f"ZooKeeper: {kind}": count for kind, count in store.done.items()}
    return done


def _options(plan: Plan) -> Options:
    """Return options with few clients that seldom write: a run's cost is requests, and its value
    is faults."""
    return Options(
        sure_writers=1,
        transactors=1,
        members=plan.group_members,
        partitions=plan.partitions,
        pause_ms=900,
        poll_ms=500,
        dawdle_chance=0.05,
        max_poll_interval_ms=4_000,
        hasty_writers=int(plan.has_hasty),
        odd_writers=int(plan.has_odd),
        keyed_writers=int(plan.has_keyed),
        keyed_transactors=int(plan.has_keyed),
        shifting_writers=int(plan.has_shifting),
        remakers=int(plan.has_fleeting),
        is_flushed=plan.flush_interval_messages == 1,
    )


async def _play(stage: _Stage) -> Judged:
    loop, life, clients = stage.room.loop, stage.life, stage.clients
    watching = loop.create_task(stage.watch())
    if isinstance(stage.room.store, KeeperStore):
        stage.room.store.start()
    await stage.brokers.start()
    await life.call(clients.prepare())
    life.run(clients.start)
    stage.trouble.begin()
    await asyncio.sleep(stage.plan.faults_end_at_ms / 1000)
    await stage.trouble.heal(_HEALED_MS)
    await stage.drills.run()
    await asyncio.sleep(_AFTER_FAULTS_MS / 1000)
    clients.stop()
    await life.call(clients.finished())
    # A session that had expired unseen may have ended a broker meanwhile.
    await stage.trouble.heal(_HEALED_MS)
    judged = await life.call(judge(clients, stage.servers(), Allowed(), stage.witness))
    watching.cancel()
    return _with_brokers(stage, judged)


def _with_brokers(stage: _Stage, judged: Judged) -> Judged:
    """Add what was seen of the brokers by true time, of their disks, and of their events."""
    tally = stage.drills.tally
    stage.removals.judge(tally, Allowed())
    stage.deeds.look()
    causes = Causes(stage.deeds, stage.plan)
    causes.judge(tally)
    generations = Generations(stage.deeds, stage.clients.history, stage.clients.around.options)
    generations.judge(tally)
    store = stage.room.store
    if isinstance(store, KeeperStore):
        store.judge()
        tally.judge("healthy", not store.broken, "{}", store.broken[:5])
    stage.excused = +(causes.excused + generations.excused)
    for broker in stage.brokers.by_id.values():
        tally.judge("healthy", not broker.unfounded, "{}: {}", broker.host, broker.unfounded)
    counts = {rule: judged.counts[rule] + tally.judged[rule] for rule in RULES}
    return judged._replace(counts=counts, broken=(*judged.broken, *tally.broken))


def _story(stage: _Stage, broken: list[str]) -> str:
    """Return the plan, its faults, what is wrong, and the last lines."""
    plan = stage.plan
    parts = [f"seed {plan.seed}: {plan.text()}", "faults:"]
    for fault in plan.faults:
        parts.append(f"  {fault.at_ms / 1000:8.3f} s  {_said(fault)}")
    parts += [f"  afterwards  {_said(drill)}" for drill in plan.drills]
    parts.append("story:")
    lines = stage.clients.history.lines[-_STORY_LENGTH:]
    parts += [f"  {words(line._replace(at_ms=line.at_ms - EPOCH_MS))}" for line in lines]
    parts += [f"BROKEN: {each}" for each in broken]
    return "\n".join(parts)


def _said(fault: Fault) -> str:
    return f"{fault.kind} {fault.first} {fault.second} for {fault.for_ms} ms"
