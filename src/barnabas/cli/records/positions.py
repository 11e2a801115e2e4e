"""Determines the positions at which a console consumer starts and ends.

Start: at assigned offsets, or as a member of a group. Like Kafka's tool, it joins a private group
(`console-consumer-1234`, which commits nothing) unless a group or a position is given. "From now
on" means from the start of the command. The ends of the partitions are therefore noted before it
joins the group, which takes `group.initial.rebalance.delay.ms`.

In between: a private group commits nothing, so `OwnGroup` remembers its positions. Without them,
each rebalance (for example, after partitions were added) would restart according to
`auto.offset.reset`, and records would be printed twice or never.

End, if requested: at a time, or at the ends of its partitions. A partition's end is looked up once,
when it is assigned; the command does not wait for later records, and therefore always ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import NamedTuple

import click

from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.fetched import ConsumerRecord
from barnabas.client.consumer.record_offsets import Span, last_records
from barnabas.client.consumer.subscription import RebalanceListener
from barnabas.client.errors import UnknownPartition
from barnabas.errors import BarnabasError
from barnabas.types import TopicPartition


class Since(NamedTuple):
    """Specifies the first record at or after this time, or the end if all records are older."""

    at_ms: int


Origin = str | int | Since
"""earliest, latest, an offset (if negative, that many records before the end), or a time."""


class Start(NamedTuple):
    """Describes the partitions to read, and where to start."""

    topic: str
    partitions: tuple[int, ...]  # if empty, all partitions
    origin: Origin


class Subscribed(NamedTuple):
    """Describes topics that a group consumes, starting at its offsets."""

    topics: tuple[str, ...] | re.Pattern[str]
    is_own_group: bool = False  # a group for this command only
    from_now: bool = False  # for a private group: at the current ends
    later_topics: tuple[str, ...] = ()  # created after the start, so all records are new


async def go_to(consumer: Consumer, start: Start | Subscribed) -> None:
    """Subscribe to the topics, or assign the partitions and determine where to start.

    Raises UnknownTopicOrPartition or UnknownPartition, so that nobody waits for records of a
    mistyped name.
    """
    if isinstance(start, Subscribed):
        await _subscribe(consumer, start)
    else:
        await _assign(consumer, start)


async def _subscribe(consumer: Consumer, start: Subscribed) -> None:
    if not isinstance(start.topics, re.Pattern):
        for topic in start.topics:
            await consumer.partitions_for(topic)  # raises an error if a name is mistyped
    listener: RebalanceListener | None = None
    # The topic was created after the command started, so `latest` would skip its first records.
    if start.later_topics and not start.is_own_group:
        listener = LaterTopic(consumer)
    if start.is_own_group:
        listener = OwnGroup(consumer, await _begins(consumer, start) if start.from_now else None)
    consumer.subscribe(start.topics, listener)


async def _begins(consumer: Consumer, start: Subscribed) -> Mapping[TopicPartition, int | None]:
    """Return the current ends of the partitions. For a pattern, return only the partitions, because
    there may be many.
    """
    if isinstance(start.topics, re.Pattern):
        found = await consumer.list_topics()
        matching = [topic for topic in found if start.topics.fullmatch(topic)]
        return {
            TopicPartition(topic, number): None for topic in matching for number in found[topic]
        }
    names = [
        TopicPartition(topic, number)
        for topic in start.topics
        if topic not in start.later_topics
        for number in await consumer.partitions_for(topic)
    ]
    return {**await consumer.end_offsets(names)} if names else {}


async def _assign(consumer: Consumer, start: Start) -> None:
    existing = await consumer.partitions_for(start.topic)
    for number in start.partitions:
        if number not in existing:
            raise UnknownPartition(
                f"topic {start.topic!r} has partitions 0 to {len(existing) - 1}, not {number}"
            )
    names = [TopicPartition(start.topic, number) for number in start.partitions or existing]
    consumer.assign(names)
    origin = start.origin
    if origin == "earliest":
        await consumer.seek_to_beginning()
    elif origin == "latest":
        await consumer.seek_to_end()
    elif isinstance(origin, Since):
        for name, offset in (await offsets_at(consumer, names, origin.at_ms)).items():
            consumer.seek(name, offset)
    elif isinstance(origin, int) and origin >= 0:
        for name in names:
            consumer.seek(name, origin)
    elif isinstance(origin, int):
        # -N counts records, not offsets, because transaction markers and compacted offsets have no
        # record.
        begins = await consumer.beginning_offsets(names)
        ends = await consumer.end_offsets(names)
        spans = {name: Span(begins[name], ends[name]) for name in names}
        starts = await last_records(consumer, spans, -origin)
        # The search for the last records has assigned the partitions and read from them.
        consumer.assign(names)
        for name in names:
            consumer.seek(name, starts[name])


async def offsets_at(
    consumer: Consumer, names: Sequence[TopicPartition], at_ms: int
) -> dict[TopicPartition, int]:
    """Return the offset of each partition's first record at or after this time, or its end."""
    ends = await consumer.end_offsets(names)
    found = await consumer.offsets_for_times(dict.fromkeys(names, at_ms))
    return {name: ends[name] if (at := found[name]) is None else at.offset for name in names}


def give_back(consumer: Consumer, records: Iterable[ConsumerRecord]) -> None:
    """Seek back to records that were polled but not shown, so that their offsets are not
    committed.
    """
    first: dict[TopicPartition, int] = {}
    for record in records:
        # A poll returns each partition's records in order, so the first one seen is the lowest.
        first.setdefault(TopicPartition(record.topic, record.partition), record.offset)
    for name in first.keys() & set(consumer.assignment()):
        consumer.seek(name, first[name])


def start_of(
    topic: str | None,
    include: str | None,
    group_id: str | None,
    partitions: tuple[int, ...],
    origin: Origin,
) -> Start | Subscribed:
    """Return the start for a topic or a pattern, alone or in a group. Raises UsageError."""
    if group_id is not None and partitions:
        raise click.UsageError("the group assigns the partitions: leave out --partition")
    if include is not None:
        return Subscribed(_pattern(include))
    assert topic is not None
    return Start(topic, partitions, origin) if group_id is None else Subscribed((topic,))


def beginning(
    text: str | None, from_beginning: bool, partitions: tuple[int, ...], since_ms: int | None = None
) -> Origin:
    """Return the start for --offset, --from and --from-beginning. Raises UsageError."""
    given = {
        "--from-beginning": from_beginning,
        "--offset": text is not None,
        "--from": since_ms is not None,
    }
    named = [option for option, is_given in given.items() if is_given]
    if len(named) > 1:
        raise click.UsageError(f"{' and '.join(named)} cannot be combined")
    if since_ms is not None:
        return Since(since_ms)
    if text is None:
        return "earliest" if from_beginning else "latest"
    if text in ("earliest", "latest"):
        return text
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 19):
        raise click.UsageError(f"--offset {text}: not a number, earliest or latest")
    if not partitions and not text.startswith("-"):
        raise click.UsageError(
            "--offset needs --partition, because offsets belong to partitions; only -N, the last "
            "N records of each partition, does not need it"
        )
    offset = int(text)
    # -0 means none of the existing records; the offset 0 would mean all of them.
    return "latest" if text.startswith("-") and not offset else offset


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise click.UsageError(f"--include {text}: not a regular expression: {error}") from error


class OwnGroup(RebalanceListener):
    """Seeks to the last position of the only member of the group, or to the start.

    `begins` maps each partition that existed when the command started to the offset that "from now
    on" means; None means the end of the partition once the group has formed. Other partitions were
    created later, so all of their records are read. Without `begins`, `auto.offset.reset`
    determines where to start.
    """

    def __init__(
        self, consumer: Consumer, begins: Mapping[TopicPartition, int | None] | None
    ) -> None:
        self._consumer = consumer
        self._positions = dict(begins or {})
        self._is_from_now = begins is not None
        self._topic_ids: dict[str, bytes] = {}

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        known = self._consumer.positions()
        self._positions |= {name: known[name].offset for name in partitions if name in known}

    async def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        await self._forget_topics_that_are_gone({name.topic for name in partitions})
        for name in partitions:
            # All records are new in a partition that did not exist at the start.
            offset = self._positions.get(name, 0 if self._is_from_now else None)
            if offset is not None:
                self._consumer.seek(name, offset)

    async def _forget_topics_that_are_gone(self, topics: Set[str]) -> None:
        """Forget positions in deleted topics, because a recreated topic is a different topic."""
        try:
            ids = await self._consumer.topic_ids(topics)
        except BarnabasError:
            ids = {}  # no broker responds, but the topics are most likely unchanged
        gone = {name for name, known in self._topic_ids.items() if ids.get(name, known) != known}
        self._positions = {
            name: offset
            for name, offset in self._positions.items()
            if name.topic in topics and name.topic not in gone
        }
        self._topic_ids |= ids


class LaterTopic(RebalanceListener):
    """Reads a topic that was created after the command started, from its first record, because all
    of its records are new. If the group has committed an offset, reading continues from it, because
    other members may have been faster.
    """

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer

    async def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        for name, committed in (await self._consumer.committed(partitions)).items():
            if committed is None:
                self._consumer.seek(name, 0)


class Ends:
    """Determines the offset at which to stop in each assigned partition."""

    def __init__(self, consumer: Consumer, to_ms: int | None) -> None:
        """End before the first record at or after `to_ms`, or at the log end if it is None."""
        self._consumer = consumer
        self._to_ms = to_ms
        self._ends: dict[TopicPartition, int] = {}

    async def are_reached(self) -> bool:
        """Return whether all assigned partitions are at their ends. If none are assigned, return
        False.
        """
        names = self._consumer.assignment()
        if not names:
            is_member = bool(self._consumer.subscription())
            return is_member and self._consumer.group_metadata().generation >= 0
        await self.look_up()
        positions = self._consumer.positions()
        reached = [
            name
            for name in names
            if name in positions and positions[name].offset >= self._ends[name]
        ]
        # Pause a partition at its end, because it would only fetch unwanted records.
        if reached:
            self._consumer.pause(*reached)
        return len(reached) == len(names)

    def before(self, records: Iterable[ConsumerRecord]) -> list[ConsumerRecord]:
        """Return the records before the ends."""
        return [
            record
            for record in records
            if record.offset < self._ends[TopicPartition(record.topic, record.partition)]
        ]

    async def look_up(self) -> None:
        """Look up the ends of newly assigned partitions."""
        names = [name for name in self._consumer.assignment() if name not in self._ends]
        if not names:
            return
        if self._to_ms is None:
            self._ends.update(await self._consumer.end_offsets(names))
        else:
            self._ends.update(await offsets_at(self._consumer, names, self._to_ms))
