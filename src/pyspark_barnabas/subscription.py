"""Parses the options for the subscription: topics by name, topics by pattern, or partitions."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from barnabas.errors import ConfigError
from barnabas.types import TopicPartition
from pyspark_barnabas.bounds import partition_number
from pyspark_barnabas.given import GivenOptions

SUBSCRIPTION_NAMES = ("subscribe", "subscribePattern", "assign")


class Subscription(NamedTuple):
    """The partitions to read; exactly one of the three fields is set."""

    topics: tuple[str, ...] = ()
    pattern: str = ""
    partitions: tuple[TopicPartition, ...] = ()


def subscription(options: GivenOptions) -> Subscription:
    """Return the subscription that the options describe.

    Raises `ConfigError` unless exactly one of the three options is given and it is valid.
    """
    given = [name for name in SUBSCRIPTION_NAMES if options.get(name) is not None]
    if not given:
        raise ConfigError(
            "nothing to read: give one of the options subscribe (topic names),"
            " subscribePattern (a regular expression) or assign (JSON of partitions)"
        )
    if len(given) > 1:
        raise ConfigError(f"options {' and '.join(given)} exclude each other: give one of them")
    return Subscription(
        topics=options.parse("subscribe", _topics, ()),
        pattern=options.parse("subscribePattern", _pattern, ""),
        partitions=options.parse("assign", _partitions, ()),
    )


def _topics(text: str) -> tuple[str, ...]:
    topics = tuple(dict.fromkeys(topic.strip() for topic in text.split(",") if topic.strip()))
    if not topics:
        raise ValueError("topic names, separated by commas")
    return topics


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"a regular expression ({error})") from None
    return text


def _partitions(text: str) -> tuple[TopicPartition, ...]:
    expected = 'JSON such as {"topic": [0, 1]}'
    try:
        # A dictionary removes duplicate partitions, and preserves the order given.
        partitions = {
            TopicPartition(topic, partition_number(partition)): None
            for topic, numbers in json.loads(text).items()
            for partition in numbers
        }
    except (ValueError, AttributeError, TypeError):
        raise ValueError(expected) from None
    if not partitions:
        raise ValueError(expected)
    return tuple(partitions)
