"""Defines the columns of the user behaviour tables, as stored."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import pyarrow as pa  # type: ignore[import-untyped]

from barnabas_pipeline.schemas import DEAD_LETTERS, FILES, TIME, counts

# Times have a resolution of one second, so offsets order a visitor's page views. Equal keys share a
# partition, in which offsets follow the order of the log.
_ORDER: Final = pa.struct([("time", TIME), ("partition", pa.int32()), ("offset", pa.int64())])


EVENTS: Final = pa.schema(
    [
        ("time", TIME),
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
        ("virtual_host", pa.string()),
        ("response_time_us", pa.int64()),
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
SESSIONS: Final = pa.schema(
    [
        ("client", pa.string()),
        ("agent", pa.string()),
        ("robot", pa.bool_()),
        ("start", TIME),
        ("end", TIME),
        *counts("hits", "pages", "bytes"),
        ("entry", pa.string()),
        ("exit", pa.string()),
        ("referrer", pa.string()),
        ("utc_offset_minutes", pa.int32()),
        ("entry_order", _ORDER),
        ("exit_order", _ORDER),
        ("day", pa.date32()),
        ("first_hits", pa.list_(TIME)),
    ]
)
"""`entry` and `exit` are the paths of the first and last page, and `referrer` is the host from
which the visitor came to the first page; all three are null if the session has no page. `day` (UTC)
is the day of `end`. `first_hits` lists the times of the first few hits of a person's session that
consists of page views only, and is null for all other sessions."""
TRAFFIC: Final = pa.schema(
    [
        ("minute", TIME),
        ("utc_offset_minutes", pa.int32()),
        *counts("hits", "robot_hits", "pages", "robot_pages"),
        *counts("client_errors", "server_errors", "bytes"),
        ("day", pa.date32()),
    ]
)
PAGES: Final = pa.schema(
    [
        ("path", pa.string()),
        *counts("views", "robot_views", "errors", "bytes"),
        ("day", pa.date32()),
    ]
)
"""Paths with at least one page view (`views`, including robots' views) or one 4xx or 5xx
response."""
REFERRERS: Final = pa.schema(
    [("host", pa.string()), *counts("hits", "robot_hits", "pages"), ("day", pa.date32())]
)
"""Hits by referring host. For assets, the referring host is usually the site itself."""
STATUSES: Final = pa.schema(
    [
        ("hour", TIME),
        ("status", pa.int32()),
        ("class", pa.string()),
        *counts("hits", "robot_hits"),
        ("day", pa.date32()),
    ]
)
AGENTS: Final = pa.schema(
    [
        ("agent", pa.string()),
        ("robot", pa.bool_()),
        ("name", pa.string()),
        ("system", pa.string()),
        ("device", pa.string()),
        *counts("hits", "pages", "bytes"),
        ("day", pa.date32()),
    ]
)
"""Parsed user agents: `name` is the name of the browser or robot, or null if it is unknown."""
MISSING: Final = pa.schema(
    [
        ("path", pa.string()),
        ("referrer", pa.string()),
        *counts("hits", "robot_hits"),
        ("day", pa.date32()),
    ]
)
"""404 responses by referrer. The referrer is stored without its query, and is null if it is
missing.
"""
HOSTS: Final = pa.schema(
    [
        ("virtual_host", pa.string()),
        *counts("hits", "robot_hits", "pages", "robot_pages", "errors", "bytes"),
        ("day", pa.date32()),
    ]
)
"""Hits by virtual host, for lines that include a virtual host."""
METHODS: Final = pa.schema(
    [
        ("method", pa.string()),
        ("protocol", pa.string()),
        *counts("hits", "robot_hits"),
        ("day", pa.date32()),
    ]
)
"""`method` and `protocol` are null for requests that the server could not parse. Many formats have
no protocol."""
RESPONSE_TIMES: Final = pa.schema(
    [
        ("path", pa.string()),
        ("from_us", pa.int64()),
        *counts("hits", "robot_hits"),
        ("day", pa.date32()),
    ]
)
"""Histograms of response times; `from_us` is the lower bound of a bucket, as defined in
`response_times`.
"""
FORMATS: Final = pa.schema([("format", pa.string()), *counts("lines")])
"""Valid lines by format; lines such as `#Version: 1.0`, which are not hits, have the format
`directive`."""

GROWING: Final[Mapping[str, pa.Schema]] = MappingProxyType(
    {"events": EVENTS, "dead_letters": DEAD_LETTERS}
)
"""Tables whose rows are written once."""
MERGED: Final[Mapping[str, pa.Schema]] = MappingProxyType(
    {
        "sessions": SESSIONS,
        "traffic": TRAFFIC,
        "pages": PAGES,
        "referrers": REFERRERS,
        "statuses": STATUSES,
        "agents": AGENTS,
        "missing": MISSING,
        "hosts": HOSTS,
        "methods": METHODS,
        "response_times": RESPONSE_TIMES,
        "formats": FORMATS,
        "files": FILES,
    }
)
"""Tables to which each batch adds a part; readers merge the parts into rows."""
