"""Parses records from lines of JSON, as printed by `consume --json`, for `produce --format json`.
Pure.

    {"key": "k", "value": "v", "headers": {"h": "1"}, "partition": 0, "timestamp": 1767225600000}

All fields are optional. Text is sent as UTF-8, null as null, `{"base64": "..."}` as bytes, and any
other value as JSON. Headers are an object, or a list of `{"key": ..., "value": ...}` if names
repeat. Timestamps are in milliseconds or ISO 8601. `topic` and `offset`, which describe the old
record, are ignored.
"""

from __future__ import annotations

import json
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterator
from typing import Any, NamedTuple

from barnabas.cli.groups.instants import BadInstant, instant_ms
from barnabas.cli.records.lines import BadLine, Header
from barnabas.client.arguments import INT32_MAX, INT64_MAX
from barnabas.client.producer.batch import ProducerRecord

_FIELDS = frozenset({"key", "value", "headers", "partition", "timestamp"})
_IGNORED = frozenset({"topic", "offset"})


class JsonFormat(NamedTuple):
    topic: str
    partition: int | None = None  # for records without a topic
    headers: tuple[Header, ...] = ()  # for every record, before its own headers

    def record(self, line: bytes, number: int) -> ProducerRecord:
        """Build the record for a line. `number` is the line's number, starting at 1. Raises
        BadLine.
        """
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise BadLine(f"line {number} is not JSON: {error}") from error
        if not isinstance(fields, dict):
            raise BadLine(f'line {number} is not a JSON object, such as {{"value": "v"}}')
        unknown = fields.keys() - _FIELDS - _IGNORED
        # If unknown fields were ignored, a misspelt "vlaue" would silently send null.
        if unknown:
            raise BadLine(
                f"line {number} has the unknown field {min(unknown)!r}; a record has "
                f"{', '.join(sorted(_FIELDS))}"
            )
        return ProducerRecord(
            self.topic,
            _data(fields.get("value"), "value", number),
            _data(fields.get("key"), "key", number),
            self._partition(fields.get("partition"), number),
            _timestamp_ms(fields.get("timestamp"), number),
            (*self.headers, *_headers(fields.get("headers"), number)),
        )

    def _partition(self, value: Any, number: int) -> int | None:
        if value is None or self.partition is not None:
            return self.partition
        if type(value) is int and 0 <= value <= INT32_MAX:
            return value
        raise _refusal("partition", value, number, "a number from 0 on")


def _data(value: Any, field: str, number: int) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    # `consume --json` prints bytes that are not UTF-8 in this form, so that a copy is exact.
    if isinstance(value, dict) and value.keys() == {"base64"}:
        try:
            return b64decode(value["base64"], validate=True)
        except (NotBase64, ValueError, TypeError):
            raise _refusal(field, value, number, "bytes in base64") from None
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )


def _timestamp_ms(value: Any, number: int) -> int | None:
    if value is None:
        return None
    # Use `type`, not isinstance, because true and false are also ints in Python.
    if type(value) is int and 0 <= value <= INT64_MAX:
        return value
    if isinstance(value, str):
        try:
            return instant_ms(value)
        except BadInstant:
            pass
    raise _refusal("timestamp", value, number, "milliseconds since 1970, or 2026-11-21T17:30:00Z")


def _headers(value: Any, number: int) -> Iterator[Header]:
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, list) and all(
        isinstance(each, dict) and each.keys() == {"key", "value"} for each in value
    ):
        pairs = [(each["key"], each["value"]) for each in value]
    elif value is None:
        return
    else:
        raise _refusal(
            "headers", value, number, 'an object, or a list of {"key": ..., "value": ...}'
        )
    for name, content in pairs:
        if not isinstance(name, str):
            raise _refusal("headers", name, number, "named by texts")
        yield name, _data(content, f"header {name}", number)


def _refusal(field: str, value: Any, number: int, wanted: str) -> BadLine:
    shown = json.dumps(value)
    shown = shown if len(shown) <= 60 else f"{shown[:60]}..."
    return BadLine(f"line {number}: {field} {shown} is not {wanted}")
