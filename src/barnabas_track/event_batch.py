"""Validates batches of events: the envelope and the fields of each event. Pure.

    {"events": [{"id": "…", "time": 1764300000000, "name": "click", "url": "https://…", …}, …]}

Anyone can send anything to this endpoint, so each field has a type, a form and a limit. An invalid
event becomes a `Rejection`, and the other events of the batch are unaffected. A reason never quotes
the event, so there are only a few different reasons, which can be counted.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

MOST_BODY_BYTES: Final = 256 << 10
MOST_EVENTS: Final = 500
MOST_EVENT_BYTES: Final = 16 << 10
MOST_LETTER_BYTES: Final = 16 << 10
"""The maximum size of the rejected event in a dead letter. A larger event is truncated."""
OLDEST_MS: Final = 30 * 86_400_000
"""Trackers keep events while a device is offline, but events older than this are rejected."""
NEWEST_MS: Final = 10 * 60_000
"""The maximum time by which a device's clock may be ahead."""

_MOST_ADDRESS_LETTERS: Final = 2_048
_MOST_TEXT_LETTERS: Final = 1_024
_MOST_NAME_LETTERS: Final = 64
_MOST_DEPTH: Final = 4
_MOST_VALUES: Final = 200
_MOST_NUMBER: Final = 2**53  # the largest number that every JSON reader keeps exact

_ID: Final = re.compile(r"[A-Za-z0-9_-]{8,64}")
_ADDRESS: Final = re.compile(r"(?:https?|app)://[^\s]+")
_SCREEN: Final = re.compile(r"\d{1,5}x\d{1,5}")
_LANGUAGE: Final = re.compile(r"[A-Za-z0-9-]{1,35}")
# Control characters except tab and line ends, and halves of surrogate pairs, which UTF-8 lacks.
_UNFIT: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")

_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


class UnreadableBatch(ValueError):
    """Raised if the body is not a batch of events."""


class Rejection(NamedTuple):
    """An event that failed a check, and its index in the batch, starting from 0."""

    place: int
    reason: str
    text: bytes  # the event as JSON, cut if it is too long


class CheckedBatch(NamedTuple):
    """The valid events of a batch, as dictionaries without any invalid fields, and the rejected
    events.
    """

    events: list[dict[str, Any]]
    rejected: list[Rejection]


def check_batch(body: bytes, now_ms: int) -> CheckedBatch:
    """Return the checked events from the body of a request. Raises UnreadableBatch.

    `now_ms` is the wall-clock time.
    """
    found = _events_in(body)
    events: list[dict[str, Any]] = []
    rejected: list[Rejection] = []
    for index, event in enumerate(found):
        reason = why_invalid(event, now_ms)
        # Encoding an event to learn its size is expensive, and unnecessary if the whole body is
        # small.
        if reason is None and len(body) > MOST_EVENT_BYTES < len(encode(event)):
            reason = f"an event may have at most {MOST_EVENT_BYTES:,} bytes"
        if reason is None:
            events.append(event)
        else:
            rejected.append(Rejection(index, reason, _as_letter(event)))
    return CheckedBatch(events, rejected)


def encode(event: Mapping[str, Any]) -> bytes:
    """Return an event with valid fields as UTF-8 encoded JSON."""
    return _ENCODER.encode(event).encode()


def why_invalid(event: Any, now_ms: int) -> str | None:
    """Return the reason why an event must be rejected, or None if it is valid."""
    if not isinstance(event, dict):
        return "an event is not an object"
    for name in _REQUIRED:
        if name not in event:
            return f"{name}: missing"
    for name, value in event.items():
        check = _CHECKS.get(name)
        if check is None:
            return f"unknown field; an event may have {', '.join(_CHECKS)}"
        if (wrong := check(value)) is not None:
            return f"{name}: {wrong}"
    if (wrong := _wrong_time(event["time"], now_ms)) is not None:
        return f"time: {wrong}"
    return None


def _events_in(body: bytes) -> list[Any]:
    if len(body) > MOST_BODY_BYTES:
        raise UnreadableBatch(f"a batch may have at most {MOST_BODY_BYTES:,} bytes")
    try:
        batch = _DECODER.decode(body.decode("utf-8"))
    except UnicodeDecodeError:
        raise UnreadableBatch("the body is not UTF-8") from None
    except RecursionError:
        raise UnreadableBatch("the body is nested too deeply") from None
    except ValueError:  # also raised for numbers with thousands of digits
        raise UnreadableBatch("the body is not JSON") from None
    if not isinstance(batch, dict) or not isinstance(events := batch.get("events"), list):
        raise UnreadableBatch('the body is not {"events": [...]}')
    if len(events) > MOST_EVENTS:
        raise UnreadableBatch(f"a batch may have at most {MOST_EVENTS} events")
    return events


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant)


def _as_letter(event: object) -> bytes:
    try:
        # Use only ASCII, because UTF-8 cannot encode half a surrogate pair.
        text = json.dumps(event, separators=(",", ":"))
    except RecursionError:
        return b""
    return text.encode()[:MOST_LETTER_BYTES]


def _wrong_time(time_ms: int, now_ms: int) -> str | None:
    if time_ms < now_ms - OLDEST_MS:
        return f"more than {OLDEST_MS // 86_400_000} days ago"
    if time_ms > now_ms + NEWEST_MS:
        return f"more than {NEWEST_MS // 60_000} minutes ahead"
    return None


# ---- fields ----


def _wrong_id(value: object) -> str | None:
    if isinstance(value, str) and _ID.fullmatch(value):
        return None
    return "not 8 to 64 of A-Z, a-z, 0-9, - and _"


def _wrong_integer(value: object) -> str | None:
    # In Python, booleans are integers.
    if type(value) is int:
        return None
    return "not a whole number of milliseconds since 1970"


def _wrong_name(value: object) -> str | None:
    if isinstance(value, str) and 0 < len(value) <= _MOST_NAME_LETTERS and value.isprintable():
        return None
    return f"not a printable text of 1 to {_MOST_NAME_LETTERS} characters"


def _wrong_address(value: object) -> str | None:
    if not isinstance(value, str) or len(value) > _MOST_ADDRESS_LETTERS:
        return f"not a text of at most {_MOST_ADDRESS_LETTERS:,} characters"
    # This also excludes javascript: and data:, which a page must never offer as a link.
    if not _ADDRESS.fullmatch(value) or _UNFIT.search(value):
        return "not an address that begins with http://, https:// or app://"
    return None


def _wrong_referrer(value: object) -> str | None:
    return None if value == "" else _wrong_address(value)


def _wrong_text(value: object) -> str | None:
    if not isinstance(value, str) or len(value) > _MOST_TEXT_LETTERS:
        return f"not a text of at most {_MOST_TEXT_LETTERS:,} characters"
    if _UNFIT.search(value):
        return "text with control characters or half a surrogate pair"
    return None


def _wrong_screen(value: object) -> str | None:
    if isinstance(value, str) and _SCREEN.fullmatch(value):
        return None
    return "not WIDTHxHEIGHT"


def _wrong_language(value: object) -> str | None:
    if isinstance(value, str) and _LANGUAGE.fullmatch(value):
        return None
    return "not a language such as en or pt-BR"


def _wrong_properties(value: object) -> str | None:
    if not isinstance(value, dict):
        return "not an object"
    return _wrong_level([value])


def _wrong_level(level: list[Any]) -> str | None:
    """Check values level by level, so that deep nesting cannot exhaust the stack."""
    seen = 0
    for _ in range(_MOST_DEPTH):
        below: list[Any] = []
        for container in level:
            seen += len(container)
            if seen > _MOST_VALUES:
                return f"more than {_MOST_VALUES} values"
            if isinstance(container, dict):
                for name in container:
                    if (wrong := _wrong_name(name)) is not None:
                        return f"a key is {wrong}"
                container = container.values()
            for each in container:
                if isinstance(each, dict | list):
                    below.append(each)
                elif (wrong := _wrong_scalar(each)) is not None:
                    return wrong
        if not below:
            return None
        level = below
    return f"nested more than {_MOST_DEPTH} deep"


def _wrong_scalar(value: object) -> str | None:
    if isinstance(value, str):
        wrong = _wrong_text(value)
        return None if wrong is None else f"a value is {wrong}"
    if isinstance(value, float) and not math.isfinite(value):
        return "a number is too large"
    if isinstance(value, int) and abs(value) > _MOST_NUMBER:
        return "a number is too large"
    return None  # a number, true, false or null


_CHECKS: Final[Mapping[str, Callable[[object], str | None]]] = {
    "id": _wrong_id,
    "time": _wrong_integer,
    "name": _wrong_name,
    "url": _wrong_address,
    "visitor": _wrong_id,
    "session": _wrong_id,
    "referrer": _wrong_referrer,
    "campaign": _wrong_text,
    "screen": _wrong_screen,
    "language": _wrong_language,
    "properties": _wrong_properties,
}
_REQUIRED: Final = ("id", "time", "name")
