"""Plans `groups reset-offsets`: the new offset of a group in each partition. Pure.

An offset outside the log is moved to the nearer end of the log, with a remark in the plan.
Otherwise, the group would silently start according to its `auto.offset.reset`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from barnabas.errors import BarnabasError
from barnabas.types import TopicPartition


class BadReset(BarnabasError):
    """Raised if a reset is impossible; the message gives the partition and the reason."""


class Goal(Enum):
    EARLIEST = "earliest"
    LATEST = "latest"
    CURRENT = "current"
    TIME = "time"
    SHIFT = "shift"
    OFFSET = "offset"


class Target(NamedTuple):
    """Describes a target that applies to all partitions."""

    goal: Goal
    number: int = 0  # TIME: ms since the epoch; SHIFT: a record count; OFFSET: the offset


class Log(NamedTuple):
    """Holds a partition's offsets."""

    start: int
    end: int
    committed: int | None
    at_time: int | None = None  # the first offset that is not older than the time, if any


class Move(NamedTuple):
    """Describes a change to a group's offset in one partition."""

    group_id: str
    partition: TopicPartition
    before: int | None  # None if no offset was committed
    after: int
    remark: str | None = None


class Selection(NamedTuple):
    """Selects a topic, `t`, or some of its partitions, `t:0,1`."""

    topic: str
    partitions: tuple[int, ...] | None  # None means all


def selection(text: str) -> Selection:
    """Return the selection that `--topic` describes. Raises BadReset."""
    topic, colon, numbers = text.partition(":")
    if not topic:
        raise BadReset(f"--topic {text}: not the name of a topic")
    if not colon:
        return Selection(topic, None)
    parts = [number.strip() for number in numbers.split(",")]
    # A number of ten digits may not fit the protocol's partition field.
    if not all(part.isascii() and part.isdecimal() and len(part) < 10 for part in parts):
        raise BadReset(f"--topic {text}: not a topic with partitions, such as orders:0,1")
    return Selection(topic, tuple(sorted({int(part) for part in parts})))


def select_partitions(
    selections: Iterable[Selection], topics: Mapping[str, list[int]]
) -> list[TopicPartition]:
    """Return the selected partitions, without duplicates. Raises BadReset if one does not exist."""
    found: dict[TopicPartition, None] = {}
    for topic, numbers in selections:
        existing = topics.get(topic)
        if existing is None:
            raise BadReset(f"topic {topic} does not exist")
        for number in existing if numbers is None else numbers:
            if number not in existing:
                raise BadReset(
                    f"topic {topic} has partitions 0 to {len(existing) - 1}, not {number}"
                )
            found[TopicPartition(topic, number)] = None
    return list(found)


def plan_move(group_id: str, partition: TopicPartition, target: Target, log: Log) -> Move:
    """Return the group's move in this partition. Raises BadReset."""
    wanted, remark = _wanted_offset(partition, target, log)
    # If the offset were outside the log, the group would start according to its
    # `auto.offset.reset`.
    after = min(max(wanted, log.start), log.end)
    if after < wanted:
        remark = _limit_remark(partition, wanted, after, "higher than latest")
    elif after > wanted:
        remark = _limit_remark(partition, wanted, after, "lower than earliest")
    return Move(group_id, partition, log.committed, after, remark)


def _limit_remark(partition: TopicPartition, wanted: int, after: int, how: str) -> str:
    """Return a remark, in Kafka's words, on an offset that was moved into the log."""
    return (
        f"New offset ({wanted}) is {how} offset for topic partition {partition}. "
        f"Value will be set to {after}"
    )


def _wanted_offset(partition: TopicPartition, target: Target, log: Log) -> tuple[int, str | None]:
    """Return the requested offset, which may still be outside the log, and a remark on it."""
    match target.goal:
        case Goal.EARLIEST:
            return log.start, None
        case Goal.LATEST:
            return log.end, None
        case Goal.OFFSET:
            return target.number, None
        case Goal.SHIFT:
            # Kafka also rejects this, because there is nothing to count from.
            if log.committed is None:
                raise BadReset(f"cannot shift the offset of {partition}: no offset is committed")
            return log.committed + target.number, None
        case Goal.CURRENT:
            found, lacking = log.committed, "committed offset"
        case Goal.TIME:
            found, lacking = log.at_time, "record at or after this time"
    if found is not None:
        return found, None
    # As in Kafka, if there is no record from that time, or no commit, the group reads only new
    # records.
    return log.end, f"{partition} has no {lacking}. Value will be set to its end, {log.end}"
