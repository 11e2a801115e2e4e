"""Parses the events that `barnabas track` has stored into columns. Pure.

The server has checked each event, but other programs may also write to its topic. Each event is
therefore checked again with the server's own rules, relative to the time at which it was received.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final, cast
from urllib.parse import parse_qs, urlsplit

import polars as pl

from barnabas_pipeline.behaviour.referrers import host_of
from barnabas_pipeline.tracking.schemas import PAGE_VIEW
from barnabas_track.event_batch import why_invalid

FIELDS: Final[Mapping[str, Any]] = {
    "id": pl.String,
    "time_us": pl.Int64,
    "received_us": pl.Int64,
    "name": pl.String,
    "visitor": pl.String,
    "session": pl.String,
    "host": pl.String,
    "path": pl.String,
    "query": pl.String,
    "referrer": pl.String,
    "source": pl.String,
    "medium": pl.String,
    "campaign": pl.String,
    "screen": pl.String,
    "language": pl.String,
    "country": pl.String,
    "value": pl.Float64,
    "properties": pl.String,
    "robot": pl.Boolean,
    "page_view": pl.Boolean,
    "reason": pl.String,
}
"""The columns of `parse_events`. All but `reason` are null for an event with a reason."""

_ADDED: Final = ("received", "bot", "private", "network", "country")
"""The fields that the server adds to an event."""

_MOST_BYTES: Final = 64 << 10
_MOST_MS: Final = 253_402_300_799_000  # the end of the year 9999
_MOST_FIELDS: Final = 100  # of a query
_COUNTRY: Final = re.compile("[A-Z]{2}")
_WEB: Final = ("http", "https")
_SLASHES: Final = re.compile("/{2,}")


def parse_events(values: pl.Series, stored_ms: pl.Series) -> pl.DataFrame:
    """Return a row of `FIELDS` for each record.

    `values`: the records' values. `stored_ms`: the records' timestamps, which replace a missing
    `received`.
    """
    rows = [
        _fields(value, at_ms)
        for value, at_ms in zip(values.to_list(), stored_ms.to_list(), strict=True)
    ]
    columns = {name: [row.get(name) for row in rows] for name in FIELDS}
    return pl.DataFrame(columns, schema=dict(FIELDS))


def _fields(value: bytes | None, stored_ms: int) -> dict[str, Any]:
    if value is None:
        return {"reason": "a record without a value"}
    if len(value) > _MOST_BYTES:
        return {"reason": f"an event may have at most {_MOST_BYTES:,} bytes"}
    try:
        event = json.loads(value)
    except (ValueError, RecursionError):  # also raised for text that is not UTF-8
        return {"reason": "not JSON"}
    if not isinstance(event, dict):
        return {"reason": "an event is not an object"}
    added = {name: event.pop(name) for name in _ADDED if name in event}
    received_ms = added.get("received", stored_ms)
    if type(received_ms) is not int or not 0 <= received_ms <= _MOST_MS:
        return {"reason": "received: not a whole number of milliseconds since 1970"}
    if (reason := why_invalid(event, received_ms)) is not None:
        return {"reason": reason}
    address = _address(event.get("url"))
    return {
        "id": event["id"],
        "time_us": event["time"] * 1_000,
        "received_us": received_ms * 1_000,
        "name": event["name"],
        "visitor": event.get("visitor"),
        "session": event.get("session"),
        **address,
        "campaign": address.get("campaign") or event.get("campaign") or None,
        "referrer": referring_host(event.get("referrer"), address.get("host")),
        "screen": event.get("screen"),
        "language": event.get("language"),
        "country": _country(added.get("country")),
        **_properties(event.get("properties")),
        "robot": added.get("bot") is True,
        "page_view": event["name"] == PAGE_VIEW,
    }


def _country(found: object) -> str | None:
    return found if isinstance(found, str) and _COUNTRY.fullmatch(found) else None


def _address(url: str | None) -> dict[str, Any]:
    """Return the parts of a page's address, without the fragment."""
    if url is None:
        return {}
    try:
        parts = urlsplit(url)
    except ValueError:  # such as an unfinished IPv6 address
        return {}
    # In app://shop/basket, "shop" names the app.
    host = host_of(url) if parts.scheme in _WEB else parts.netloc
    return {
        "host": host or None,
        "path": tidy_path(parts.path),
        "query": parts.query or None,
        **parts_of_query(parts.query),
    }


def tidy_path(path: str | None) -> str:
    """Return a path without repeated slashes: servers usually treat /basket// like /basket/."""
    return _SLASHES.sub("/", path or "") or "/"


def parts_of_query(query: str) -> dict[str, str | None]:
    """Return the source, the medium and the campaign in the query of an address."""
    marks: Mapping[str, list[str]] = {}
    if "utm_" in query:
        with contextlib.suppress(ValueError):  # it has too many fields
            marks = parse_qs(query, max_num_fields=_MOST_FIELDS)
    names = ("source", "medium", "campaign")
    return {name: marks[key][0] if (key := f"utm_{name}") in marks else None for name in names}


def referring_host(url: str | None, host: str | None) -> str | None:
    """Return the host of a referrer, or None if it is the page's own host."""
    found = host_of(url)
    return None if found == host else found


def _properties(found: dict[str, Any] | None) -> dict[str, Any]:
    if not found:
        return {}
    value = found.get("value")
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return {
        "properties": json.dumps(found, ensure_ascii=False, separators=(",", ":")),
        "value": float(cast(float, value)) if is_number else None,
    }
