r"""Defines the formats in which `consume` prints records: a template, a list of names, or JSON.
Pure.

    {key}={value}\n?    a template; names in braces are filled in, \t and \n are escapes
    key,value           only names: the fields with tabs between them
    JSON                one object per line
    offsets, groups     records of __consumer_offsets, as Kafka's tools show them
    transactions        those of __transaction_state

Keys and values are written as raw bytes; as in Kafka's tool, null is the word null.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from barnabas.cli.options import unescape
from barnabas.cli.records.internal_lines import group_line, offset_line, transaction_line
from barnabas.client.consumer.fetched import ConsumerRecord
from barnabas.errors import BarnabasError, CorruptData

Layout = Callable[[ConsumerRecord], bytes]
"""Returns the line to print for a record, including its line end."""


class BadFormat(BarnabasError):
    """Raised if a format contains a name that is not a record field."""


def _bytes_or_null(data: bytes | None) -> bytes:
    return b"null" if data is None else data


def _headers(record: ConsumerRecord) -> bytes:
    return b",".join(name.encode() + b":" + _bytes_or_null(value) for name, value in record.headers)


_FIELDS: Mapping[str, Layout] = MappingProxyType(
    {
        "topic": lambda record: record.topic.encode(),
        "partition": lambda record: b"%d" % record.partition,
        "offset": lambda record: b"%d" % record.offset,
        "timestamp": lambda record: b"%d" % record.timestamp_ms,
        "key": lambda record: _bytes_or_null(record.key),
        "value": lambda record: _bytes_or_null(record.value),
        "headers": _headers,
    }
)

_Line = Callable[[bytes | None, bytes | None], str | None]

_LINES: Mapping[str, _Line] = MappingProxyType(
    {"offsets": offset_line, "groups": group_line, "transactions": transaction_line}
)


def value_layout(record: ConsumerRecord) -> bytes:
    """Print only the value, which is the default."""
    return _bytes_or_null(record.value) + b"\n"


def template_layout(text: str) -> Layout:
    """Return the layout for a template, a list of names, or an internal topic. Raises BadFormat."""
    if text in _LINES:
        return _internal_layout(_LINES[text])
    if "{" not in text:
        names = [name.strip() for name in text.split(",")]
        return _join([piece for name in names for piece in (b"\t", _field(name))][1:])
    pieces: list[bytes | Layout] = []
    for number, piece in enumerate(re.split(r"\{([^{}]*)\}", text)):
        # With a group, re.split returns texts and names alternately.
        pieces.append(_field(piece.strip()) if number % 2 else unescape(piece))
    return _join(pieces)


def json_layout(record: ConsumerRecord) -> bytes:
    """Print a JSON object. Bytes that are not UTF-8 become `{"base64": ...}`."""
    return (
        json.dumps(
            {
                "topic": record.topic,
                "partition": record.partition,
                "offset": record.offset,
                "timestamp": record.timestamp_ms,
                "key": _json_text(record.key),
                "value": _json_text(record.value),
                "headers": [
                    {"key": name, "value": _json_text(value)} for name, value in record.headers
                ],
            },
            ensure_ascii=False,
        ).encode("utf-8", "surrogatepass")
        + b"\n"
    )


def _internal_layout(show: _Line) -> Layout:
    """Return a layout that omits other kinds of records."""

    def layout(record: ConsumerRecord) -> bytes:
        try:
            line = show(record.key, record.value)
        # A damaged record must not end the output, because later records are readable.
        except CorruptData as error:
            line = f"Error at offset {record.offset}, skipping. {error}"
        return b"" if line is None else line.encode() + b"\n"

    return layout


def _field(name: str) -> Layout:
    if name not in _FIELDS:
        raise BadFormat(f"a record has no {name!r}; it has {', '.join(_FIELDS)}")
    return _FIELDS[name]


def _join(pieces: list[bytes | Layout]) -> Layout:
    def layout(record: ConsumerRecord) -> bytes:
        shown = [piece if isinstance(piece, bytes) else piece(record) for piece in pieces]
        return b"".join(shown) + b"\n"

    return layout


def _json_text(data: bytes | None) -> Any:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode()}
