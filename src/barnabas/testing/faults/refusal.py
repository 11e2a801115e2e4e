"""Builds error responses from requests.

refusal(api, version, request, code, whole=...)   the response to the whole request
merge(answer, rejected)                           the same, merged into the response to the rest
put_errors(to, code, answer)                      the same in a response to Metadata, whose request
                                                  need not have named the topics

No API needs special code. As clients expect, the response has one row for each row of the request.
Names and ids are copied, numbers that Kafka would not know are -1, and the error is set in the
innermost message with an error field or, with `whole`, in the outermost. Only Metadata is
different: its real response is changed before it is sent.
"""

from __future__ import annotations

from typing import Any

from barnabas.protocol.api import Api
from barnabas.protocol.message import Message
from barnabas.testing.faults.rows import (
    ERROR_FIELDS,
    PARTITION_FIELDS,
    REQUESTED,
    TOPIC_FIELDS,
    row_class,
)
from barnabas.testing.faults.selection import Narrowed

_UNKNOWN = frozenset(
    (
        "base_offset",
        "high_watermark",
        "last_stable_offset",
        "committed_offset",
        "producer_id",
        "producer_epoch",
        "low_watermark",
        "end_offset",
        "offset",
        "timestamp",
        "leader_id",
        "node_id",
        "port",
        "log_start_offset",
    )
)
"""The fields for which Kafka returns -1 if there is no value."""
_KEYS = (*TOPIC_FIELDS, *PARTITION_FIELDS)
_COPIED = (
    *_KEYS,
    "topic_id",
    "group_id",
    "transactional_id",
    "resource_type",
    "resource_name",
    "key",
    "member_id",
    "group_instance_id",
)
_IDENTITIES = (*_COPIED, "producer_id")
_NO_LEADER = -1
_OF_A_MARKER = "transaction_result"  # the response repeats the producer id


def refusal(api: Api, version: int, request: Message, code: int, *, whole: bool) -> Message:
    """Build a response with this error in all of its rows or, with `whole`, in the outermost
    message.
    """
    return _Refusal(version, code, whole).message(api.response, request)


def merge(answer: Message, refused: Message) -> None:
    """Add the rows of `refused` to a response of the same class."""
    for made in answer.fields:
        rows = getattr(refused, made.name)
        if row_class(made) is None or not rows:
            continue
        own = getattr(answer, made.name) or []
        for row in rows:
            same = next((each for each in own if _identity(each) == _identity(row)), None)
            # All partitions of the topic were rejected, or the response omits the topic.
            if same is None:
                own.append(row)
            else:
                merge(same, row)
        setattr(answer, made.name, own)


def put_errors(to: Narrowed, code: int, answer: Any) -> None:
    """Set the error for each topic concerned, or for the one partition."""
    for topic in answer.topics:
        if to.topic not in (None, topic.name):
            continue
        if to.partition is None:
            topic.error_code = code
            # With a topic error, Kafka returns no partitions.
            topic.partitions = []
            continue
        for partition in topic.partitions:
            if partition.partition_index == to.partition:
                partition.error_code = code
                partition.leader_id = _NO_LEADER


def _identity(row: Message) -> list[Any]:
    return [getattr(row, name) for name in _IDENTITIES if hasattr(row, name)]


class _Refusal:
    """Builds the messages of one version, with one error."""

    def __init__(self, version: int, code: int, whole: bool) -> None:
        self._version = version
        self._code = code
        self._whole = whole

    def message(self, cls: type[Message], source: Any) -> Message:
        """Build a message of a response from the corresponding message or plain value of the
        request."""
        here = [made.name for made in self._fields(cls) if made.name in ERROR_FIELDS]
        below = [
            made.name
            for made in self._fields(cls)
            if (inner := row_class(made)) is not None and self._has_place(inner)
        ]
        # Kafka puts an error into the innermost message of each row, unless it concerns the whole
        # request.
        is_place = bool(here) and (self._whole or not below)
        values: dict[str, Any] = {}
        for made in self._fields(cls):
            if made.name in ERROR_FIELDS:
                values[made.name] = self._code if is_place else 0
            elif made.name in below:
                inner = row_class(made)
                assert inner is not None
                values[made.name] = [] if is_place else self._rows(inner, made.name, source)
            elif not _copy_identity(values, made.name, source) and made.name in _UNKNOWN:
                values[made.name] = -1
            elif made.name == "records":
                values[made.name] = b""  # librdkafka treats null as a parse error
        return cls(**values)

    def _rows(self, cls: type[Message], name: str, source: Any) -> list[Message]:
        wanted = [each for each in REQUESTED.get(name, ()) if hasattr(source, each)]
        # No list in the request corresponds to this one.
        if not wanted:
            return [self.message(cls, None)]  # the request contains no names
        sources = [row for each in wanted for row in getattr(source, each) or ()]
        return [self.message(cls, row) for row in sources]

    def _fields(self, cls: type[Message]) -> list[Any]:
        return [made for made in cls.fields if self._version in made.versions]

    def _has_place(self, cls: type[Message]) -> bool:
        """Return whether this message can contain an error in this version."""
        return any(
            made.name in ERROR_FIELDS
            or ((inner := row_class(made)) is not None and self._has_place(inner))
            for made in self._fields(cls)
        )


def _copy_identity(values: dict[str, Any], name: str, source: Any) -> bool:
    """Copy a field from the request's row if it identifies a row. Return whether it does."""
    if name not in _COPIED and not (name == "producer_id" and hasattr(source, _OF_A_MARKER)):
        return False
    if isinstance(source, str | int):
        values[name] = source
        return True
    same = next(
        (keys for keys in (TOPIC_FIELDS, PARTITION_FIELDS) if name in keys),
        (name,),
    )
    for each in same:
        if hasattr(source, each):
            values[name] = getattr(source, each)
            return True
    return False
