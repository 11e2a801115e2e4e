"""Converts records to truncated text, JSON or hex that a page can safely show. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final, Literal, NoReturn

from barnabas.client.consumer.fetched import ConsumerRecord
from barnabas.console.shapes import Content, Header, Message

CUT_BYTES: Final = 4_096
"""The maximum number of bytes shown of a key, a value or a header in a list."""
WHOLE_BYTES: Final = 1_048_576
"""The maximum number of bytes shown on the page of a single record."""
_MOST_HEADERS: Final = 50
_MOST_JSON_BYTES: Final = 65_536
_UNPRINTABLE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]")
_APPEND_TIME: Final = 1
_LONGEST_CHARACTER: Final = 4


def content(value: bytes | None, most: int = CUT_BYTES) -> Content:
    """Return a key or value, truncated to a maximum number of bytes."""
    if value is None:
        return Content(text=None, form="null", size=0, is_cut=False)
    is_cut = len(value) > most
    text = _text(value[:most], is_cut=is_cut)
    form: Literal["json", "text", "hex"] = "text"
    if text is None:
        is_cut = len(value) > most // 2  # each byte takes two digits
        text, form = value[: most // 2].hex(), "hex"
    elif _is_json(value):
        form = "json"
    return Content(text=text, form=form, size=len(value), is_cut=is_cut)


def _text(value: bytes, *, is_cut: bool) -> str | None:
    """Return the decoded text, or None if the bytes are not UTF-8. The last character may be
    incomplete.
    """
    try:
        text = value.decode()
    except UnicodeDecodeError as error:
        if not is_cut or error.end != len(value) or error.start <= len(value) - _LONGEST_CHARACTER:
            return None
        text = value[: error.start].decode()
    return None if _UNPRINTABLE.search(text) else text


def _is_json(value: bytes) -> bool:
    """Return whether the text is a JSON object or list that a browser can parse."""
    if len(value) > _MOST_JSON_BYTES or value.lstrip()[:1] not in (b"{", b"["):
        return False
    try:
        json.loads(value, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def message(record: ConsumerRecord, most: int = CUT_BYTES) -> Message:
    """Return a record. If `most` exceeds the limit for lists, all headers of the record are
    included.
    """
    headers = record.headers if most > CUT_BYTES else record.headers[:_MOST_HEADERS]
    return Message(
        partition=record.partition,
        offset=record.offset,
        time=None if record.timestamp_ms < 0 else record.timestamp_ms,
        time_type="append" if record.timestamp_type == _APPEND_TIME else "create",
        key=content(record.key, most),
        value=content(record.value, most),
        headers=[Header(name=name, value=content(value, most)) for name, value in headers],
        headers_left_out=len(record.headers) - len(headers),
    )


def has_text(record: ConsumerRecord, wanted: bytes) -> bool:
    """Return whether a key, a value or a header contains these bytes. Every record contains b""."""
    if not wanted:
        return True
    return any(wanted in part for part in _parts(record) if part is not None)


def _parts(record: ConsumerRecord) -> Iterable[bytes | None]:
    yield record.key
    yield record.value
    for name, value in record.headers:
        yield name.encode("utf-8", "surrogatepass")
        yield value
