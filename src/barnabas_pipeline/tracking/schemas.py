"""Defines the columns of the tracking tables, as stored.

`sessions` and `traffic` have the columns of the tables of access logs, so that the same functions
read both (BT-3). The column `client` contains the visitor, and `agent` is null.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import pyarrow as pa  # type: ignore[import-untyped]

from barnabas_pipeline.behaviour.schemas import SESSIONS, TRAFFIC
from barnabas_pipeline.schemas import DEAD_LETTERS, FILES, TIME, counts

PAGE_VIEW: Final = "pageview"
"""The name of the event that a page sends when it is shown."""

EVENTS: Final = pa.schema(
    [
        ("time", TIME),
        ("received", TIME),
        ("id", pa.string()),
        ("name", pa.string()),
        ("visitor", pa.string()),
        ("session", pa.string()),
        ("host", pa.string()),
        ("path", pa.string()),
        ("query", pa.string()),
        ("referrer", pa.string()),
        ("source", pa.string()),
        ("medium", pa.string()),
        ("campaign", pa.string()),
        ("screen", pa.string()),
        ("language", pa.string()),
        ("country", pa.string()),
        ("value", pa.float64()),
        ("properties", pa.string()),
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
"""Contains each event id once. `visitor` is null if the visitor asked not to be tracked. `referrer`
is a host, or null if the page was reached from a page on the same host. `country` is null unless
`barnabas track serve` has a database of countries. `source`, `medium` and
`campaign` come from the address (`utm_*`), or from the event's own field `campaign`. `value` is the
number in the property `value`; `properties` is a JSON object."""
PAGES: Final = pa.schema(
    [
        ("host", pa.string()),
        ("path", pa.string()),
        *counts("views", "robot_views"),
        ("day", pa.date32()),
    ]
)
NAMES: Final = pa.schema(
    [
        ("name", pa.string()),
        *counts("events", "robot_events"),
        ("value", pa.float64()),
        ("day", pa.date32()),
    ]
)
"""Events by name, with the sum of `value` over people's events."""
CAMPAIGNS: Final = pa.schema(
    [
        ("source", pa.string()),
        ("medium", pa.string()),
        ("campaign", pa.string()),
        *counts("views"),
        ("day", pa.date32()),
    ]
)
"""People's page views for which a source, a medium or a campaign is known."""
DEVICES: Final = pa.schema(
    [
        ("device", pa.string()),
        ("language", pa.string()),
        *counts("views"),
        ("day", pa.date32()),
    ]
)
"""People's page views. `device` is derived from the width of the screen."""
VISITOR_WEEKS: Final = pa.schema(
    [("visitor", pa.string()), ("week", pa.date32()), *counts("events")]
)
"""The weeks (by their Monday, UTC) in which each person was active."""
ARRIVALS: Final = pa.schema([("day", pa.date32()), *counts("events", "late", "repeated")])
"""Counts by day: all events, the late ones among them, which arrived more than ten minutes after
they happened, and repeated events, which no other table contains."""

GROWING: Final[Mapping[str, pa.Schema]] = MappingProxyType(
    {"events": EVENTS, "dead_letters": DEAD_LETTERS}
)
"""Tables whose rows are written once."""
MERGED: Final[Mapping[str, pa.Schema]] = MappingProxyType(
    {
        "sessions": SESSIONS,
        "traffic": TRAFFIC,
        "pages": PAGES,
        "names": NAMES,
        "campaigns": CAMPAIGNS,
        "devices": DEVICES,
        "visitor_weeks": VISITOR_WEEKS,
        "arrivals": ARRIVALS,
        "files": FILES,
    }
)
"""Tables to which each batch adds a part; readers merge the parts into rows."""
