"""`python -m simulation.whole.alone --seed N [--seeds COUNT]`: one broker that keeps its metadata.

It has two log directories, with a copy of its journal in each. An operator creates, changes and
deletes topics and writes a few records. The broker stops or dies, between two turns or at any
change of its disks, with or without its machine. Then one directory is damaged: a bit of its
journal or snapshot reads wrong, or one of these files or everything in the directory is gone. The
next start must know everything that was acknowledged, and keep each record whose directory was
spared. Before that, the disk of the same directory may be full or broken for a while; only the
other copy then has what is acknowledged meanwhile.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import logging
import sys
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import NamedTuple

from barnabas.client import Admin, NewTopic, Producer
from barnabas.client.admin.configs import TOPIC, ConfigResource
from barnabas.client.errors import Unreachable
from barnabas.cluster.journal_copies import JOURNAL_NAME, SNAPSHOT_NAME
from barnabas.errors import BarnabasError
from barnabas.types import TopicPartition
from simulation.command import Simulator, run_seeds
from simulation.exclusive_handler import ExclusiveHandler
from simulation.whole.brokers import DATA, SECOND_DATA, MachineRoom, SimBroker
from simulation.whole.files import SimFiles
from simulation.whole.lives import LifeOver
from simulation.whole.loop import LoopError
from simulation.whole.seams import VirtualClock, client_seams

ENDS = ("stop", "kill", "power", "kill in a turn", "power in a turn")
DAMAGES = ("none", "bit flip", "lost file", "emptied")

_CONFIG = {
    "log.dirs": f"{DATA},{SECOND_DATA}",
    "log.flush.interval.messages": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "auto.create.topics.enable": "false",
}
_WEEK_MS = "604800000"  # Kafka's default
_PATIENCE_MS = 2_000
_STARTS = 20  # each of which may die
_STORY_LENGTH = 60


class Round(NamedTuple):
    """What is done to the broker after some operations, and how it ends."""

    operations: int
    end: str
    at_change: int
    """At which change of the disk, counted from the first operation, a broker that ends in a turn
    dies."""
    damage: str
    directory: Path
    spoiled: int
    """The errno with which the same directory's disk fails meanwhile, or 0."""
    after_bytes: int


class Plan(NamedTuple):
    """The plan of one run."""

    seed: int
    rounds: tuple[Round, ...]

    def text(self) -> str:
        """Return the whole plan."""
        return "\n".join(
            f"  {each.operations} operations, {each.end} (change {each.at_change}), then "
            f"{each.damage} in {each.directory}"
            + (f"; {errno.errorcode[each.spoiled]} there before" if each.spoiled else "")
            for each in self.rounds
        )


class Outcome(NamedTuple):
    """The outcome of a run; the story is empty if all was well."""

    plan: Plan
    broken: tuple[str, ...]
    done: Mapping[str, int]
    digest: str
    story: str


class _Topic:
    """The operator's knowledge of a topic."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self.may_be_there = True
        self.is_sure = False  # whether it is certain that it exists, or does not exist
        self.topic_id = b""
        self.retentions = {_WEEK_MS}  # the values that it may have
        self.ends: Counter[int] = Counter()  # offsets after the acknowledged records, by partition


class _Hearing(ExclusiveHandler):
    """Writes what the broker logs into the story; an error with a traceback is a finding."""

    def __init__(self, run: _Run) -> None:
        super().__init__()
        self._run = run

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, OSError):
            error = None  # a disk error that the run has caused
        (self._run.tell if error is None else self._run.wrong)(
            record.getMessage() if error is None else f"{record.getMessage()}: {error!r}"
        )


class _Run:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.random = Random(f"alone {plan.seed}")
        self.room = MachineRoom.of(plan.seed)
        self.files = SimFiles(VirtualClock(self.room.loop), [DATA, SECOND_DATA])
        self.broker = SimBroker(self.room, 1, self.files, _CONFIG, is_alone=True)
        self.life = self.room.network.process("operator")
        self.topics: dict[str, _Topic] = {}
        self.lines: list[str] = []
        self.broken: list[str] = []
        self.done: Counter[str] = Counter()
        self._numbers = 0

    def tell(self, text: str) -> None:
        self.lines.append(f"{self.room.loop.now_us / 1e6:9.3f} s  {text}")

    def wrong(self, text: str) -> None:
        self.tell(f"WRONG: {text}")
        self.broken.append(text)

    # ---- the world ----

    async def play(self) -> None:
        for each in self.plan.rounds:
            await self._start()
            await self._check()
            if each.end.endswith("in a turn"):
                self.broker.strike(each.at_change, lambda end=each.end: self._end(end))  # type: ignore[misc]
            if each.spoiled:
                self.done[errno.errorcode[each.spoiled]] += 1
                self.files.fail(each.directory, each.spoiled, each.after_bytes)
            for _ in range(each.operations):
                if self.broker.is_running:
                    await self._operate()
            self.files.spare()
            if self.broker.is_running:
                if each.end == "stop":
                    with suppress(LifeOver, OSError):  # its disk may be full or broken
                        await self.broker.stop()
                else:
                    self._end(each.end)
            self.files.heal(each.directory)
            self.done[each.end] += 1
            self._damage(each)
        await self._start()
        await self._check()
        await self.broker.stop()
        for reason in self.broker.unfounded:
            self.wrong(f"the broker has given up: {reason}")

    def _end(self, end: str) -> None:
        self.tell(f"the broker ends: {end}")
        if end.startswith("power"):
            self.broker.power_cut()
        else:
            self.broker.kill()

    async def _start(self) -> None:
        """Start the broker, which sometimes dies during its start, at any change of the disk,
        and is restarted."""
        for number in range(_STARTS):
            if number < 2 and self.random.random() < 0.3:
                end = self.random.choice(("kill", "power"))
                changes = int(2 ** (self.random.random() * 6))
                self.broker.strike(changes, lambda end=end: self._end(end))  # type: ignore[misc]
            try:
                await self.broker.start()
            except LifeOver:
                self.done["death in a start"] += 1
                continue
            finally:
                self.files.spare()
            self.tell("the broker serves")
            return
        raise AssertionError("the broker never starts")

    def _damage(self, made: Round) -> None:
        """Damage one directory; the copy in the other has everything."""
        if made.damage == "emptied":
            self._forget_what_lies_in(made.directory)
            self.files.empty(made.directory)
        elif made.damage != "none":
            names = [JOURNAL_NAME, SNAPSHOT_NAME]
            self.random.shuffle(names)
            if made.damage == "lost file":
                is_done = any(self.files.lose(made.directory / name) for name in names)
            else:
                is_done = any(
                    self.files.damage(made.directory / name, self.random) for name in names
                )
            if not is_done:
                return
        self.done[made.damage] += 1
        self.tell(f"damage: {made.damage} in {made.directory}")

    def _forget_what_lies_in(self, directory: Path) -> None:
        here = {entry.name for entry in self.files.list(directory)}
        for name, topic in self.topics.items():
            for partition in list(topic.ends):
                if f"{name}-{partition}" in here:
                    del topic.ends[partition]

    # ---- the operator ----

    async def _operate(self) -> None:
        there = [
            name for name, topic in self.topics.items() if topic.may_be_there and topic.is_sure
        ]
        operation: Callable[[str], Awaitable[None]] = self.random.choice(
            (self._create, self._create, self._delete, self._alter, self._alter, self._write)
        )
        if operation == self._create or not there:
            self._numbers += 1
            await self._try(self._create, f"t{self._numbers}")
        else:
            await self._try(operation, self.random.choice(there))

    async def _try(self, operation: Callable[[str], Awaitable[None]], name: str) -> None:
        what = f"{operation.__name__.strip('_')} {name}"
        try:
            await self.life.call(self._in_time(operation(name)))
        except (Unreachable, BarnabasError, TimeoutError) as error:
            self.tell(f"{what}: {error!r}")
        else:
            self.done["operations"] += 1
            self.tell(f"{what}: done")

    async def _in_time(self, work: Awaitable[None]) -> None:
        async with asyncio.timeout(4 * _PATIENCE_MS / 1000):
            await work

    def _admin(self) -> Admin:
        return Admin(
            [f"{self.broker.host}:9092"],
            seams=client_seams(self.room.loop, self.plan.seed, "operator"),
            request_timeout_ms=_PATIENCE_MS,
            default_api_timeout_ms=_PATIENCE_MS,
        )

    async def _create(self, name: str) -> None:
        topic = self.topics[name] = _Topic(self.random.randint(1, 3))
        async with self._admin() as admin:
            await admin.create_topics([NewTopic(name, topic.partitions, 1)])
            topic.is_sure = True
            (found,) = await admin.describe_topics([name])
            topic.topic_id = found.topic_id

    async def _delete(self, name: str) -> None:
        topic = self.topics[name]
        topic.is_sure = False
        async with self._admin() as admin:
            await admin.delete_topics([name])
        topic.may_be_there, topic.is_sure = False, True

    async def _alter(self, name: str) -> None:
        topic = self.topics[name]
        value = str(self.random.randrange(10**9, 10**10))
        topic.retentions.add(value)
        async with self._admin() as admin:
            await admin.alter_configs(ConfigResource(TOPIC, name), {"retention.ms": value})
        topic.retentions = {value}

    async def _write(self, name: str) -> None:
        topic = self.topics[name]
        partition = self.random.randrange(topic.partitions)
        producer = Producer(
            [f"{self.broker.host}:9092"],
            seams=client_seams(self.room.loop, self.plan.seed, "writer"),
            acks=-1,
            request_timeout_ms=_PATIENCE_MS,
            delivery_timeout_ms=_PATIENCE_MS,
            max_block_ms=_PATIENCE_MS,
        )
        await producer.start()
        try:
            delivery = await producer.send(name, b"%d" % self._numbers, partition=partition)
            await producer.flush()
            topic.ends[partition] = max(topic.ends[partition], delivery.result().offset + 1)
        finally:
            await producer.close()

    # ---- what must be true of a broker that serves ----

    async def _check(self) -> None:
        try:
            found, retentions = await self.life.call(self._look())
        except (Unreachable, BarnabasError) as error:
            self.wrong(f"the broker does not say what it has: {error!r}")
            return
        for name in sorted(found.keys() - self.topics.keys()):
            self.wrong(f"{name} is there, and was never created")
        for name, topic in self.topics.items():
            self._check_topic(name, topic, found.get(name), retentions.get(name, ""))
        self._check_logs()

    async def _look(self) -> tuple[dict[str, tuple[bytes, int]], dict[str, str]]:
        async with self._admin() as admin:
            described = await admin.describe_topics()
            found = {each.name: (each.topic_id, len(each.partitions)) for each in described}
            retentions = {}
            for name in found:
                entries = await admin.describe_configs(
                    ConfigResource(TOPIC, name), ["retention.ms"]
                )
                retentions[name] = str(entries[0].value)
        return found, retentions

    def _check_topic(
        self, name: str, topic: _Topic, found: tuple[bytes, int] | None, retention: str
    ) -> None:
        self.done["topics looked at"] += 1
        if topic.is_sure and topic.may_be_there != (found is not None):
            was = "created" if topic.may_be_there else "deleted"
            self.wrong(f"{name} was {was}, and is {'there' if found else 'not there'}")
            return
        topic.may_be_there, topic.is_sure = found is not None, True
        if found is None:
            return
        topic_id, partitions = found
        if topic.topic_id not in (b"", topic_id) or partitions != topic.partitions:
            self.wrong(f"{name} is another topic: {topic_id.hex()} with {partitions} partitions")
        topic.topic_id = topic_id
        if retention not in topic.retentions:
            self.wrong(f"retention.ms of {name} is {retention!r}, not of {topic.retentions}")
        topic.retentions = {retention}

    def _check_logs(self) -> None:
        server = self.broker.server
        assert server is not None
        ends = {each.topic_partition: each.log.log_end_offset for each in server.node.replicas}
        for name, topic in self.topics.items():
            for partition, end in topic.ends.items():
                if not topic.may_be_there:
                    continue
                self.done["logs looked at"] += 1
                found = ends.get(TopicPartition(name, partition), -1)
                if found < end:
                    self.wrong(f"{name}-{partition} ends at {found}, and {end} were acknowledged")


def draw(seed: int) -> Plan:
    """Draw the plan of a seed."""
    random = Random(f"alone plan {seed}")
    rounds = [
        Round(
            random.choice((1, 3, 8, 20)),
            random.choice(ENDS),
            int(2 ** (random.random() * 8)),
            random.choice(DAMAGES),
            random.choice((DATA, SECOND_DATA)),
            random.choice((0, 0, 0, errno.ENOSPC, errno.EIO)),
            int(2 ** (random.random() * 12)),
        )
        for _ in range(random.choice((3, 6, 10)))
    ]
    return Plan(seed, tuple(rounds))


def run(plan: Plan) -> Outcome:
    """Run the plan; the same plan gives the same outcome on any machine."""
    play = _Run(plan)
    loop = play.room.loop
    try:
        with _Hearing(play):
            loop.run(play.play())
    except (LoopError, TimeoutError) as error:
        play.wrong(f"{error!r}")
    except Exception as error:
        # Any error of a start or a stop is a finding, with a story to print.
        play.wrong("".join(traceback.format_exception(error)))
    for each in loop.findings:
        play.wrong(f"{each.life}: {each.message}: {each.error!r}")
    digest = hashlib.sha256("\n".join(play.lines).encode()).hexdigest()
    story = ""
    if play.broken:
        parts = [f"seed {plan.seed}:", plan.text(), *play.lines[-_STORY_LENGTH:]]
        story = "\n".join([*parts, *(f"BROKEN: {each}" for each in play.broken)])
    loop.close()
    return Outcome(plan, tuple(play.broken), dict(play.done), digest, story)


def shrink(failed: Outcome) -> Outcome:
    """Reduce a failing run to the smallest number of rounds with which it still fails."""
    smallest = failed
    for number in reversed(range(len(failed.plan.rounds))):
        rounds = smallest.plan.rounds
        outcome = run(smallest.plan._replace(rounds=rounds[:number] + rounds[number + 1 :]))
        if outcome.broken:
            smallest = outcome
    return smallest


def summary(outcomes: Sequence[Outcome]) -> str:
    """Return the totals of all runs."""
    done: Counter[str] = Counter()
    for outcome in outcomes:
        done.update(outcome.done)
    counts = ", ".join(f"{kind} {count:,}" for kind, count in sorted(done.items()))
    failed = sum(bool(each.broken) for each in outcomes)
    return f"{len(outcomes)} seeds of one broker, {failed} failed; {counts}"


def never_met(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the ends and damages that never occurred, if there were enough seeds for them."""
    if len(outcomes) < len(DAMAGES) * len(ENDS):
        return []
    return [kind for kind in (*ENDS, *DAMAGES) if not any(each.done.get(kind) for each in outcomes)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the seeds and return the exit code: 0 if every seed held."""
    simulator = Simulator(
        "python -m simulation.whole.alone", lambda seed: run(draw(seed)), shrink, summary, never_met
    )
    return run_seeds(simulator, arguments)


if __name__ == "__main__":
    sys.exit(main())
