"""Implements Kafka 3.9's new JSON formatters for internal topics. Pure.

    {"key":{"version":1,"data":{"group":"g","topic":"t","partition":0}},
     "value":{"version":3,"data":{"offset":42,"leaderEpoch":-1,"metadata":"",...}}}

They replace the line formatters (`[g,t,0]::OffsetAndMetadata(...)`), which 3.9 deprecates. The
output is identical to Kafka's: it is a single line, with no line end between objects. Other kinds
of records in the same topic are omitted. If 3.9 does not support a version, the data is "unknown".
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping
from struct import Struct, error
from typing import Any, Final, NamedTuple

from barnabas.cli.kafka.options import BadCommandLine
from barnabas.client.consumer.fetched import ConsumerRecord
from barnabas.coordinator.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    TransactionKey,
    TransactionValue,
)
from barnabas.errors import CorruptData
from barnabas.protocol.codec import decode
from barnabas.protocol.message import Message

_VERSION: Final = Struct(">h")
_UNKNOWN: Final = "unknown"
_ESCAPE: Final = re.compile(r"\\(u00[0-9a-f]{2}|.)")

_KAFKAS_NAMES: Final = {
    "last_update_timestamp_ms": "transactionLastUpdateTimestampMs",
    "start_timestamp_ms": "transactionStartTimestampMs",
}
"""Maps fields to Kafka's names if these are not just our names in camel case."""


class _Kind(NamedTuple):
    """Describes the kind of record that a formatter shows."""

    keys: Mapping[int, type[Message]]  # the key's classes for the whole topic, by version
    key: type[Message]
    value: type[Message]
    newest: int  # the value's class by version


# __consumer_offsets contains two kinds of records, distinguished by the key's version. Versions 0
# and 1 of an offset key have the same fields.
_GROUPS: Final = {0: OffsetCommitKey, 1: OffsetCommitKey, 2: GroupMetadataKey}
_KINDS: Final = {
    "OffsetsMessageFormatter": _Kind(_GROUPS, OffsetCommitKey, OffsetCommitValue, 4),
    "GroupMetadataMessageFormatter": _Kind(_GROUPS, GroupMetadataKey, GroupMetadataValue, 4),
    "TransactionLogMessageFormatter": _Kind(
        {0: TransactionKey}, TransactionKey, TransactionValue, 1
    ),
}
JSON_FORMATTERS: Final = tuple(_KINDS)
"""The names of the formatters, without their Java package."""


class JsonFormatter:
    """Formats records as one of these formatters does."""

    def __init__(self, name: str) -> None:
        self._kind = _KINDS[name]

    def __call__(self, record: ConsumerRecord) -> bytes:
        """Return the JSON for a record, or nothing for other kinds of records. Raises
        BadCommandLine if the bytes are malformed, because Kafka's formatter also fails on them.
        """
        kind = self._kind
        try:
            shown: dict[str, Any] = {"key": None, "value": None}
            if record.key is not None:
                version, body = _split_version(record.key)
                cls = kind.keys.get(version)
                # An unknown version may be of either kind, so both formatters show it.
                if cls not in (None, kind.key):
                    return b""
                shown["key"] = _versioned_object(cls, version, body)
            if record.value is not None:  # a tombstone has only a key
                version, body = _split_version(record.value)
                known = kind.value if 0 <= version <= kind.newest else None
                shown["value"] = _versioned_object(known, version, body)
        except CorruptData as cause:
            raise BadCommandLine(
                f"the record at offset {record.offset} of {record.topic}-{record.partition} cannot "
                f"be read: {cause}"
            ) from None
        text = json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
        # Jackson writes the hexadecimal escapes of control characters in upper case.
        return _ESCAPE.sub(_in_capitals, text).encode()


def _in_capitals(escape: re.Match[str]) -> str:
    number = escape[1]
    return rf"\u{number[1:].upper()}" if len(number) > 1 else escape[0]


def _split_version(data: bytes) -> tuple[int, bytes]:
    try:
        (version,) = _VERSION.unpack_from(data)
    except error as cause:
        raise CorruptData("its key or value is too short for a version") from cause
    return version, data[_VERSION.size :]


def _versioned_object(cls: type[Message] | None, version: int, body: bytes) -> dict[str, Any]:
    data = _UNKNOWN if cls is None else _json_value(decode(cls, body, version), version)
    return {"version": version, "data": data}


def _json_value(value: Any, version: int) -> Any:
    if isinstance(value, Message):
        return {
            _KAFKAS_NAMES.get(each.name) or _camel_case(each.name): _json_value(
                getattr(value, each.name), version
            )
            for each in value.fields
            if version in each.versions
        }
    if isinstance(value, list):
        return [_json_value(each, version) for each in value]
    # Jackson writes bytes, such as a member's assignment, in Base64.
    return b64encode(value).decode() if isinstance(value, bytes | memoryview) else value


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
