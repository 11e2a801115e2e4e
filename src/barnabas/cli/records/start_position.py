"""Where a console consumer starts: at assigned offsets, or as a member of a group."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import click

from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.fetched import ConsumerRecord
from barnabas.client.errors import UnknownPartition
from barnabas.types import TopicPartition


class Start(NamedTuple):
    """The partitions to read, and where to start."""

    topic: str
    partitions: tuple[int, ...]  # none: all
    offset: str | int  # earliest, latest, or a number; negative: that many before the end


class Subscribed(NamedTuple):
    """Topics that the group shares; it starts at the group's offsets."""

    topics: tuple[str, ...] | re.Pattern[str]


async def go_to(consumer: Consumer, start: Start | Subscribed) -> None:
    """Subscribe, or assign the partitions and find where to start.

    Raises UnknownTopicOrPartition, UnknownPartition: a mistyped name must not wait for records.
    """
    if isinstance(start, Subscribed):
        if not isinstance(start.topics, re.Pattern):
            for topic in start.topics:
                await consumer.partitions_for(topic)
        consumer.subscribe(start.topics)
        return
    existing = await consumer.partitions_for(start.topic)
    for number in start.partitions:
        if number not in existing:
            raise UnknownPartition(
                f"topic {start.topic!r} has partitions 0 to {len(existing) - 1}, not {number}"
            )
    names = [TopicPartition(start.topic, number) for number in start.partitions or existing]
    consumer.assign(names)
    if start.offset == "earliest":
        await consumer.seek_to_beginning()
    elif start.offset == "latest":
        await consumer.seek_to_end()
    elif isinstance(start.offset, int) and start.offset >= 0:
        for name in names:
            consumer.seek(name, start.offset)
    elif isinstance(start.offset, int):
        begins = await consumer.beginning_offsets(names)
        ends = await consumer.end_offsets(names)
        for name in names:
            consumer.seek(name, max(begins[name], ends[name] + start.offset))


def give_back(consumer: Consumer, records: Iterable[ConsumerRecord]) -> None:
    """Seek back to records that were polled and not shown, so that they are not committed."""
    first: dict[TopicPartition, int] = {}
    for record in records:
        first.setdefault(TopicPartition(record.topic, record.partition), record.offset)
    for name in first.keys() & set(consumer.assignment()):
        consumer.seek(name, first[name])


def start_of(
    topic: str | None,
    include: str | None,
    group_id: str | None,
    partitions: tuple[int, ...],
    offset: str | int,
) -> Start | Subscribed:
    """The start for a topic or a pattern, alone or in a group. Raises UsageError."""
    if group_id is not None and partitions:
        raise click.UsageError("a group assigns the partitions by itself: leave out --partition")
    if include is not None:
        return Subscribed(_pattern(include))
    assert topic is not None
    return Start(topic, partitions, offset) if group_id is None else Subscribed((topic,))


def beginning(text: str | None, from_beginning: bool, partitions: tuple[int, ...]) -> str | int:
    """The offset that --offset and --from-beginning stand for. Raises UsageError."""
    if text is None:
        return "earliest" if from_beginning else "latest"
    if not partitions:
        raise click.UsageError("--offset needs --partition: offsets belong to partitions")
    if from_beginning:
        raise click.UsageError("--from-beginning and --offset contradict each other")
    if text in ("earliest", "latest"):
        return text
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdecimal() and len(digits) < 19:
        return int(text)
    raise click.UsageError(f"--offset {text}: not a number, earliest or latest")


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise click.UsageError(f"--include {text}: not a regular expression: {error}") from error
