"""Members of a group that read, commit, leave and come back; records what is processed, by whom,
and what is committed."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from barnabas.client import Consumer, RebalanceListener
from barnabas.errors import BarnabasError
from barnabas.types import TopicPartition
from simulation.whole.actor import Actor, has_started
from simulation.whole.environment import MEMBERS, SURE, Environment
from simulation.whole.history import Commit, Owned, Stretch

_COMMIT_CHANCE = 0.5


def group_consumer(around: Environment, name: str, group: str, *, is_committed: bool) -> Consumer:
    options = around.options
    return Consumer(
        around.servers,
        seams=around.seams(name),
        group_id=group,
        isolation_level="read_committed" if is_committed else "read_uncommitted",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        partition_assignment_strategy=options.assignor,
        session_timeout_ms=options.session_timeout_ms,
        heartbeat_interval_ms=options.heartbeat_interval_ms,
        max_poll_interval_ms=options.max_poll_interval_ms,
        fetch_max_wait_ms=options.poll_ms,
        max_poll_records=20,
        **around.common(),
    )


async def has_group_read_all(
    around: Environment, consumer: Consumer, topics: Sequence[str]
) -> bool:
    """Return whether the group has committed the ends of these topics, or False if that is
    currently unknown."""
    names = [name for topic in topics for name in around.partitions(topic)]
    try:
        ends = await consumer.end_offsets(names)
        committed = await consumer.committed(*names)
    except BarnabasError as error:
        around.history.tell("how far the group is cannot be known: {}", error)
        return False
    for name in names:
        at = committed[name]
        if ends[name] > (0 if at is None else at.offset):
            return False
    return True


class Listener(RebalanceListener):
    """Records what a member is assigned, and begins a new stretch of reading with it."""

    def __init__(self, around: Environment, consumer: Consumer, stretch: Stretch) -> None:
        self._around = around
        self._consumer = consumer
        self.stretch = stretch

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        history, stretch = self._around.history, self.stretch
        who = self._consumer.group_metadata()
        self.stretch = history.stretch(
            stretch.reader, stretch.group, is_committed=stretch.is_committed
        )
        history.readers_by_member[who.member_id] = stretch.reader
        has_offsets = stretch.group in history.groups_with_offsets
        for name in partitions:
            owned = Owned(stretch.group, who.generation, stretch.reader, name, has_offsets)
            owned = owned._replace(at_ms=self._around.clock.wall_ms())
            history.owns(owned)


class Member(Actor):
    """Reads the partitions that its group assigns to it."""

    def __init__(self, around: Environment, name: str, random: Random) -> None:
        super().__init__(around, name, random)
        self._is_done = False

    async def run(self) -> None:
        while not self._is_done:
            await self._live()
            if not self._around.is_draining:
                await self._around.rest(self._random, 2_000)

    async def _live(self) -> None:
        around, random = self._around, self._random
        self._lives += 1
        consumer = group_consumer(around, self.name, MEMBERS, is_committed=False)
        if not await has_started(consumer, around, random):
            return
        attendance = around.history.attends(MEMBERS, self._who)
        try:
            await self._read_all(consumer)
        finally:
            around.history.leaves(attendance)
            await consumer.close()

    async def _read_all(self, consumer: Consumer) -> None:
        """Read until this member leaves, or the group has read everything."""
        around, random, history = self._around, self._random, self._around.history
        reader = self._who
        listener = Listener(around, consumer, history.stretch(reader, MEMBERS, is_committed=False))
        consumer.subscribe([SURE], listener)
        while True:
            try:
                records = await consumer.poll(around.options.poll_ms)
            except BarnabasError as error:
                history.tell("{} cannot read: {}", reader, error)
                await around.rest(random, 500)
                continue
            self._notes(listener.stretch, records)
            if around.is_draining or random.random() < _COMMIT_CHANCE:
                await self._commit(consumer, listener.stretch)
            if around.is_draining:
                if not records:
                    self._is_done = await has_group_read_all(around, consumer, [SURE])
                if self._is_done:
                    return
            elif random.random() < around.options.leave_chance:
                return

    async def _commit(self, consumer: Consumer, stretch: Stretch) -> None:
        """Commit what has been processed since the partitions were assigned."""
        history = self._around.history
        offsets = stretch.positions()
        who = consumer.group_metadata()
        if not offsets:
            return
        try:
            await consumer.commit_sync(offsets)
        except BarnabasError as error:
            history.tell("{} cannot commit: {}", stretch.reader, error)
            return
        for name, offset in offsets.items():
            history.commits_offset(
                Commit(stretch.group, who.generation, stretch.reader, name, offset)
            )
