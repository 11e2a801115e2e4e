"""The formatters of internal topics that print JSON, which Kafka has since 3.9. Pure.

    {"key":{"version":1,"data":{"group":"g","topic":"t","partition":0}},
     "value":{"version":3,"data":{"offset":42,"leaderEpoch":-1,"metadata":"",...}}}

To the byte as there: in one line, and no line end between two objects. A record of another kind of
the same topic is left out; of a version that 3.9 does not know the data is "unknown".
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
"""The fields whose names are not ours in camel case."""


class _Kind(NamedTuple):
    """The records of a topic that one formatter shows."""

    keys: Mapping[int, type[Message]]  # of the whole topic, by the key's version
    key: type[Message]
    value: type[Message]
    newest: int  # version of the value


_GROUPS: Final = {0: OffsetCommitKey, 1: OffsetCommitKey, 2: GroupMetadataKey}
_KINDS: Final = {
    "OffsetsMessageFormatter": _Kind(_GROUPS, OffsetCommitKey, OffsetCommitValue, 4),
    "GroupMetadataMessageFormatter": _Kind(_GROUPS, GroupMetadataKey, GroupMetadataValue, 4),
    "TransactionLogMessageFormatter": _Kind(
        {0: TransactionKey}, TransactionKey, TransactionValue, 1
    ),
}
JSON_FORMATTERS: Final = tuple(_KINDS)
"""Their names, without the package."""


class JsonFormatter:
    """The layout of one of them."""

    def __init__(self, name: str) -> None:
        self._kind = _KINDS[name]

    def __call__(self, record: ConsumerRecord) -> bytes:
        """Raises BadCommandLine for bytes that are no such record, where Kafka's throws."""
        kind = self._kind
        try:
            shown: dict[str, Any] = {"key": None, "value": None}
            if record.key is not None:
                version, body = _versioned(record.key)
                cls = kind.keys.get(version)
                if cls not in (None, kind.key):
                    return b""
                shown["key"] = _shown(cls, version, body)
            if record.value is not None:
                version, body = _versioned(record.value)
                known = kind.value if 0 <= version <= kind.newest else None
                shown["value"] = _shown(known, version, body)
        except CorruptData as cause:
            raise BadCommandLine(
                f"the record at offset {record.offset} of {record.topic}-{record.partition} cannot "
                f"be read: {cause}"
            ) from None
        text = json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
        # Java's library writes the numbers of control characters with capital letters.
        return _ESCAPE.sub(_in_capitals, text).encode()


def _in_capitals(escape: re.Match[str]) -> str:
    number = escape[1]
    return rf"\u{number[1:].upper()}" if len(number) > 1 else escape[0]


def _versioned(data: bytes) -> tuple[int, bytes]:
    try:
        (version,) = _VERSION.unpack_from(data)
    except error as cause:
        raise CorruptData(f"{len(data)} bytes have no version") from cause
    return version, data[_VERSION.size :]


def _shown(cls: type[Message] | None, version: int, body: bytes) -> dict[str, Any]:
    data = _UNKNOWN if cls is None else _json(decode(cls, body, version), version)
    return {"version": version, "data": data}


def _json(value: Any, version: int) -> Any:
    if isinstance(value, Message):
        return {
            _KAFKAS_NAMES.get(each.name) or _camel_case(each.name): _json(
                getattr(value, each.name), version
            )
            for each in value.fields
            if version in each.versions
        }
    if isinstance(value, list):
        return [_json(each, version) for each in value]
    return b64encode(value).decode() if isinstance(value, bytes | memoryview) else value


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
