"""Parses the options for the start and end of a read: a name, offsets or timestamps.

Offsets and timestamps by partition are given in JSON: `{"topic": {"0": number, "1": number}}`,
where offset -2 means the earliest and -1 the latest. `survey.py` resolves these options to actual
offsets in the log.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from barnabas.errors import ConfigError
from barnabas.types import TopicPartition
from pyspark_barnabas.given import GivenOptions, instant_ms, parse_option

EARLIEST = -2
LATEST = -1

# As in the connector, the first of the three options that is set applies.
STARTING_NAMES = ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")
ENDING_NAMES = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
STRATEGY_NAME = "startingOffsetsByTimestampStrategy"


class Bound(NamedTuple):
    """One end of the range to read.

    `offset` (EARLIEST or LATEST) applies to every partition, unless `offsets` specifies an offset
    for each partition. Likewise, `timestamp_ms` applies unless `timestamps_ms` is set. `option` is
    the name of the option from which the bound was parsed.
    """

    option: str
    offset: int = EARLIEST
    offsets: Mapping[TopicPartition, int] | None = None
    timestamp_ms: int | None = None
    timestamps_ms: Mapping[TopicPartition, int] | None = None
    latest_if_no_match: bool = True

    @property
    def is_named(self) -> bool:
        """Return whether the bound is just EARLIEST or LATEST."""
        return self.offsets is None and self.timestamp_ms is None and self.timestamps_ms is None


def starting_bound(options: GivenOptions, default: int) -> Bound:
    strategy = (options.get(STRATEGY_NAME) or "error").strip().lower()
    if strategy not in ("error", "latest"):
        raise ConfigError(f"option {STRATEGY_NAME}={strategy!r}: expected error or latest")
    bound = _bound(options, STARTING_NAMES, default)
    return bound._replace(latest_if_no_match=strategy == "latest")


def ending_bound(options: GivenOptions) -> Bound:
    bound = _bound(options, ENDING_NAMES, LATEST)
    refuse(bound, EARLIEST)
    return bound


def refuse(bound: Bound, empty: int) -> None:
    """Reject a batch that starts at LATEST or ends at EARLIEST, because such a batch would read
    nothing.
    """
    name = "latest" if empty == LATEST else "earliest"
    if bound.is_named and bound.offset == empty:
        raise ConfigError(f"option {bound.option}={name} would read nothing")
    for partition, offset in (bound.offsets or {}).items():
        if offset == empty:
            raise ConfigError(
                f"option {bound.option}: {offset} ({name}) for {partition} would read nothing"
            )


def _bound(options: GivenOptions, names: tuple[str, str, str], default: int) -> Bound:
    one_timestamp, timestamps, offsets = names
    if (text := options.get(one_timestamp)) is not None:
        return Bound(one_timestamp, timestamp_ms=parse_option(one_timestamp, text, instant_ms))
    if (text := options.get(timestamps)) is not None:
        return Bound(timestamps, timestamps_ms=parse_option(timestamps, text, _timestamps_ms))
    if (text := options.get(offsets)) is None:
        return Bound(offsets, default)
    named = {"earliest": EARLIEST, "latest": LATEST}.get(text.strip().lower())
    if named is not None:
        return Bound(offsets, named)
    return Bound(offsets, offsets=parse_option(offsets, text, _offsets))


def _offsets(text: str) -> Mapping[TopicPartition, int]:
    expected = 'earliest, latest, or JSON such as {"topic": {"0": 23, "1": -2}}'
    numbers = _numbers_by_partition(text, expected)
    if any(number < EARLIEST for number in numbers.values()):
        raise ValueError("offsets of at least 0, -1 for latest or -2 for earliest")
    return numbers


def _timestamps_ms(text: str) -> Mapping[TopicPartition, int]:
    expected = 'JSON of milliseconds since the epoch such as {"topic": {"0": 1700000000000}}'
    numbers = _numbers_by_partition(text, expected)
    if any(number < 0 for number in numbers.values()):
        raise ValueError(expected)
    return numbers


def _numbers_by_partition(text: str, expected: str) -> Mapping[TopicPartition, int]:
    try:
        return {
            TopicPartition(topic, partition_number(partition)): _whole(number)
            for topic, numbers in json.loads(text).items()
            for partition, number in numbers.items()
        }
    except (ValueError, AttributeError):
        raise ValueError(expected) from None


def partition_number(text: object) -> int:
    """Parse a partition number. It is a string if it was a JSON key, and a number if it was in a
    list.

    Raises `ValueError`.
    """
    number = int(text) if isinstance(text, str) else _whole(text)
    if number < 0:
        raise ValueError("a partition number of at least 0")
    return number


def _whole(number: object) -> int:
    # JSON's true and false become booleans, which are integers in Python.
    if not isinstance(number, int) or isinstance(number, bool):
        raise ValueError("a whole number")
    return number
