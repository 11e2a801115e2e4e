"""Checks the arguments of a client method before the call has any effect. Pure.

Each error names the argument. A value of the wrong type raises TypeError. A value that is out of
range or malformed raises ValueError; for a topic name, this is InvalidTopicName, which is a
ValueError. Every accepted value can be encoded, so the background tasks of a client never encounter
a value that they cannot send.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from operator import index
from typing import Final, NamedTuple, TypeVar

from barnabas.client.errors import InvalidTopicName
from barnabas.client.producer.batch import CheckedRecord, ProducerRecord
from barnabas.records.record import record_size_bound
from barnabas.types import TopicPartition

INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
MAX_TEXT_BYTES: Final = 2**15 - 1
"""The maximum length of text on the wire, except in records: lengths are signed 16-bit numbers."""

_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_NO_NAMES: Final = (".", "..")

V = TypeVar("V")

_new_tuple = tuple.__new__


class Offset(NamedTuple):
    """An offset to commit, with optional metadata and leader epoch."""

    offset: int
    metadata: str
    leader_epoch: int


def topic_name(topic: object, argument: str = "topic") -> str:
    """Return the topic name if it is valid under Kafka's rules."""
    if not isinstance(topic, str):
        raise TypeError(f"{argument}: a topic's name must be text, not {_kind(topic)}")
    if _TOPIC_NAME.fullmatch(topic) is None or topic in _NO_NAMES:
        shown = topic if len(topic) <= 60 else f"{topic[:60]}..."
        raise InvalidTopicName(
            f"{argument}: {shown!r} is not a valid topic: a name has 1 to 249 of the characters "
            "a-z, A-Z, 0-9, '.', '_' and '-', and is neither '.' nor '..'"
        )
    return topic


def topic_names(topics: object, argument: str = "topics") -> list[str]:
    """Return the topic names if all are valid."""
    return [topic_name(topic, argument) for topic in several(topics, argument)]


def checked_record(record: object, known_topics: Collection[str]) -> CheckedRecord:
    """Check a record (PR-1), copy its bytes if necessary, and return it with its size.

    `known_topics` contains the topics whose names have already been checked.
    """
    if not isinstance(record, ProducerRecord):
        raise TypeError(f"record: must be a ProducerRecord, not {_kind(record)}")
    topic, value, key, partition, timestamp_ms, given = record
    # The exact types of most records come first; a subclass or a bytearray takes the slower path.
    if type(topic) is not str or topic not in known_topics:
        topic_name(topic)
    if type(value) is not bytes:
        value = data(value, "value")
    if key is not None and type(key) is not bytes:
        key = data(key, "key")
    if partition is not None:
        partition = whole_number(partition, "partition", most=INT32_MAX)
    if timestamp_ms is not None:
        timestamp_ms = whole_number(timestamp_ms, "timestamp_ms")
    # This default costs nothing, because an empty tuple is a constant.
    pairs = () if type(given) is tuple and not given else headers(given)
    size_bytes = record_size_bound(key, value, pairs)
    checked: CheckedRecord = _new_tuple(
        CheckedRecord, (topic, value, key, partition, timestamp_ms, pairs, size_bytes)
    )
    return checked


def whole_number(value: object, argument: str, least: int = 0, most: int = INT64_MAX) -> int:
    """Return an integer (of Python or numpy) as an int if it is within the bounds."""
    number = value if type(value) is int else _index(value, argument)
    if not least <= number <= most:
        raise ValueError(f"{argument}: {_shown(number)} is not between {least} and {most}")
    return number


def duration(value: object, argument: str) -> float:
    """Return the timeout if it is a number and not negative."""
    # In Python, True equals 1, but no user means it as a timeout.
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{argument}: must be a number, not {_kind(value)}")
    if math.isnan(value) or not 0 <= value <= INT64_MAX:
        raise ValueError(f"{argument}: {_shown(value)} is not a timeout, which must be 0 or more")
    return value


def data(value: object, argument: str) -> bytes | None:
    """Return bytes. A bytearray or memoryview is copied, because it may be changed later."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    raise TypeError(f"{argument}: must be bytes or None, not {_kind(value)}")


def text(value: object, argument: str, most_bytes: int = MAX_TEXT_BYTES) -> str:
    """Return the text if its UTF-8 encoding has at most `most_bytes` bytes."""
    if not isinstance(value, str):
        raise TypeError(f"{argument}: must be text, not {_kind(value)}")
    size_bytes = len(_utf8(value, argument))
    if size_bytes > most_bytes:
        raise ValueError(f"{argument}: {size_bytes} bytes of text exceed {most_bytes}")
    return value


def headers(value: object) -> tuple[tuple[str, bytes | None], ...]:
    """Return a record's headers, given as a mapping or as pairs. A value is bytes, text or None."""
    if value is None:
        return ()
    if isinstance(value, Mapping):
        value = list(value.items())
    checked = []
    for pair in several(value, "headers"):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise TypeError(
                f"headers: each must be a pair of a name and a value, not {_kind(pair)}"
            )
        name, content = pair
        if not isinstance(name, str):
            raise TypeError(f"headers: a header's name must be text, not {_kind(name)}")
        _utf8(name, "headers")
        if isinstance(content, str):
            content = _utf8(content, "headers")
        checked.append((name, data(content, "headers")))
    return tuple(checked)


def topic_partition(value: object, argument: str = "topic_partition") -> TopicPartition:
    """Return the partition, given as a TopicPartition or as a plain pair of topic and number."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise TypeError(f"{argument}: must be a TopicPartition, not {_kind(value)}")
    topic, partition = value
    return TopicPartition(
        topic_name(topic, argument), whole_number(partition, argument, most=INT32_MAX)
    )


def topic_partitions(value: object, argument: str = "topic_partitions") -> list[TopicPartition]:
    """Return the partitions, given as an iterable of TopicPartitions or plain pairs."""
    return [topic_partition(each, argument) for each in several(value, argument)]


Partitions = tuple[str, int] | Iterable[tuple[str, int]]
"""One or more partitions, each a TopicPartition or a plain pair."""


def partitions(given: Iterable[object], argument: str = "topic_partitions") -> list[TopicPartition]:
    """Return the partitions passed to a method as one argument, as several, or as a list."""
    names: dict[TopicPartition, None] = {}
    for value in given:
        # A pair of a name and a number is one partition, not a list of two.
        is_one = isinstance(value, tuple | list) and len(value) == 2 and isinstance(value[0], str)
        if is_one or not isinstance(value, Iterable) or isinstance(value, str | bytes):
            names[topic_partition(value, argument)] = None
        else:
            names.update(dict.fromkeys(topic_partitions(value, argument)))
    return list(names)


def by_partition(value: object, argument: str) -> dict[TopicPartition, object]:
    """Return the mapping after checking its keys. The values are not checked."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{argument}: must be a mapping of TopicPartition, not {_kind(value)}")
    return {topic_partition(name, argument): each for name, each in value.items()}


def offset(value: object, argument: str) -> Offset:
    """Return the offset to commit, given as a plain number or with metadata and a leader epoch."""
    if not isinstance(value, tuple):
        return Offset(whole_number(value, argument), "", -1)
    if len(value) != 3:
        raise TypeError(f"{argument}: an offset is an int or an OffsetAndMetadata")
    given, note, leader_epoch = value
    return Offset(
        whole_number(given, argument),
        text(note, argument),
        whole_number(leader_epoch, argument, least=-1, most=INT32_MAX),
    )


def several(value: object, argument: str) -> list[object]:
    """Return the items of an iterable, which must not be text. A mapping yields its keys."""
    given: Iterable[object] = value  # type: ignore[assignment]
    return list(iterator(given, argument))


def iterator(value: Iterable[V], argument: str) -> Iterator[V]:
    """Return an iterator over an iterable, which must not be text. The items are not copied."""
    # Text is an iterable of characters, but no caller means that.
    if isinstance(value, str | bytes | bytearray | memoryview) or not isinstance(value, Iterable):
        raise TypeError(f"{argument}: must be a sequence, not {_kind(value)}")
    return iter(value)


def flag(value: object, argument: str) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{argument}: must be True or False, not {_kind(value)}")
    return value


def callback(value: V, argument: str) -> V:
    """Return the value after checking that it is callable."""
    if not callable(value):
        raise TypeError(f"{argument}: must be callable, not {_kind(value)}")
    return value


def _index(value: object, argument: str) -> int:
    if not isinstance(value, bool):
        with suppress(TypeError):
            return index(value)  # type: ignore[arg-type]
    raise TypeError(f"{argument}: must be an int, not {_kind(value)}")


def _utf8(value: str, argument: str) -> bytes:
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{argument}: {value[error.start]!r} at index {error.start} cannot be encoded in UTF-8 "
            "(a lone surrogate)"
        ) from None


def _shown(value: object) -> str:
    """Return the value as text. This also works for numbers with more digits than Python prints."""
    if isinstance(value, int) and abs(value) > 2**64:
        return "a number beyond 64 bits"
    return str(value)


def _kind(value: object) -> str:
    return type(value).__name__
