"""The columns of the pipeline's tables, as they are stored."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import pyarrow as pa  # type: ignore[import-untyped]

_TIME: Final = pa.timestamp("us", "UTC")
_HEADERS: Final = pa.list_(
    pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())]))
)
# Where a page view stands among a visitor's: times have seconds only, and equal keys share a
# partition, in which offsets are the order of the log.
_ORDER: Final = pa.struct([("time", _TIME), ("partition", pa.int32()), ("offset", pa.int64())])


def _counts(*names: str) -> list[tuple[str, pa.DataType]]:
    return [(name, pa.int64()) for name in names]


EVENTS: Final = pa.schema(
    [
        ("time", _TIME),
        ("utc_offset_minutes", pa.int32()),
        ("client", pa.string()),
        ("ident", pa.string()),
        ("user", pa.string()),
        ("method", pa.string()),
        ("path", pa.string()),
        ("query", pa.string()),
        ("protocol", pa.string()),
        ("status", pa.int32()),
        ("bytes", pa.int64()),
        ("referrer", pa.string()),
        ("agent", pa.string()),
        ("robot", pa.bool_()),
        ("page_view", pa.bool_()),
        ("file", pa.string()),
        ("file_id", pa.string()),
        ("position", pa.int64()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
    ]
)
DEAD_LETTERS: Final = pa.schema(
    [
        ("reason", pa.string()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", _HEADERS),
        ("file", pa.string()),
        ("line", pa.int64()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
    ]
)
FILES: Final = pa.schema(
    [
        ("file_id", pa.string()),
        ("file", pa.string()),
        ("partition", pa.int32()),
        ("position", pa.int64()),
        *_counts("read", "valid", "dead_letters", "sent_twice"),
    ]
)
SESSIONS: Final = pa.schema(
    [
        ("client", pa.string()),
        ("agent", pa.string()),
        ("robot", pa.bool_()),
        ("start", _TIME),
        ("end", _TIME),
        *_counts("hits", "pages", "bytes"),
        ("entry", pa.string()),
        ("exit", pa.string()),
        ("referrer", pa.string()),
        ("utc_offset_minutes", pa.int32()),
        ("entry_order", _ORDER),
        ("exit_order", _ORDER),
        ("day", pa.date32()),
    ]
)
"""`entry` and `exit` are the paths of the first and last page, `referrer` the host that led to the
first; all null without a page. `day` (UTC) is that of `end`."""
TRAFFIC: Final = pa.schema(
    [
        ("minute", _TIME),
        ("utc_offset_minutes", pa.int32()),
        *_counts("hits", "robot_hits", "pages", "robot_pages"),
        *_counts("client_errors", "server_errors", "bytes"),
        ("day", pa.date32()),
    ]
)
PAGES: Final = pa.schema(
    [
        ("path", pa.string()),
        *_counts("views", "robot_views", "errors", "bytes"),
        ("day", pa.date32()),
    ]
)
"""A path with at least one page view (`views`, robots' included) or one answer 4xx or 5xx."""
REFERRERS: Final = pa.schema(
    [("host", pa.string()), *_counts("hits", "robot_hits", "pages"), ("day", pa.date32())]
)
"""Hits that name a referring host; assets are mostly referred to by the site itself."""
STATUSES: Final = pa.schema(
    [
        ("hour", _TIME),
        ("status", pa.int32()),
        ("class", pa.string()),
        *_counts("hits", "robot_hits"),
        ("day", pa.date32()),
    ]
)

GROWING: Final[Mapping[str, pa.Schema]] = MappingProxyType(
    {"events": EVENTS, "dead_letters": DEAD_LETTERS}
)
"""A row is written once."""
MERGED: Final[Mapping[str, pa.Schema]] = MappingProxyType(
    {
        "sessions": SESSIONS,
        "traffic": TRAFFIC,
        "pages": PAGES,
        "referrers": REFERRERS,
        "statuses": STATUSES,
        "files": FILES,
    }
)
"""A batch adds its part, and parts become rows when they are read."""
ALL: Final[Mapping[str, pa.Schema]] = MappingProxyType({**GROWING, **MERGED})


def partition_by(name: str) -> tuple[str, ...]:
    """The columns by which a table's files are apart."""
    return ("day",) if "day" in ALL[name].names else ()
