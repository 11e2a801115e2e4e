"""Defines the columns of the system log tables, as stored."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import pyarrow as pa  # type: ignore[import-untyped]

from barnabas_pipeline.schemas import DEAD_LETTERS, FILES, TIME, counts

ENTRIES: Final = pa.schema(
    [
        ("time", TIME),
        ("received", TIME),
        ("format", pa.string()),
        ("host", pa.string()),
        ("component", pa.string()),
        ("level", pa.string()),
        ("pid", pa.string()),
        ("thread", pa.string()),
        ("message", pa.string()),
        ("more", pa.string()),
        ("template", pa.string()),
        ("service", pa.string()),
        ("trace_id", pa.string()),
        ("span_id", pa.string()),
        ("attributes", pa.string()),
        ("resource", pa.string()),
        ("file", pa.string()),
        ("file_id", pa.string()),
        ("position", pa.int64()),
        ("line", pa.int64()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("item", pa.int64()),
    ]
)
"""`more`: all lines of a record after the first, such as a stack trace.

`item`: the number of an OpenTelemetry log record within its record, starting at 0. It is null for a
line, and so are the columns from `service` to `resource`.

`time` is the line's own time, or `received` if the line has none.
"""
MINUTES: Final = pa.schema(
    [
        ("minute", TIME),
        ("format", pa.string()),
        ("level", pa.string()),
        *counts("lines"),
        ("day", pa.date32()),
    ]
)
COMPONENTS: Final = pa.schema(
    [
        ("hour", TIME),
        ("format", pa.string()),
        ("host", pa.string()),
        ("component", pa.string()),
        ("level", pa.string()),
        *counts("lines"),
        ("first", TIME),
        ("last", TIME),
        ("day", pa.date32()),
    ]
)
TEMPLATES: Final = pa.schema(
    [
        ("template", pa.string()),
        ("number", pa.int64()),
        ("format", pa.string()),
        ("began", pa.string()),
        ("text", pa.string()),
        *counts("wildcards", "lines"),
        ("first", TIME),
        ("last", TIME),
    ]
)
"""`number`: the order in which the templates of all formats were learnt.

`began`: the template's first masked message. In a part that only counts the template, both `number`
and `began` are null.
"""
TEMPLATE_MINUTES: Final = pa.schema(
    [("minute", TIME), ("template", pa.string()), *counts("lines"), ("day", pa.date32())]
)
LOGINS: Final = pa.schema(
    [
        ("hour", TIME),
        ("host", pa.string()),
        ("address", pa.string()),
        ("user", pa.string()),
        ("outcome", pa.string()),
        *counts("attempts"),
        ("first", TIME),
        ("last", TIME),
        ("day", pa.date32()),
    ]
)
"""SSH login attempts. `outcome`: see `logins.py`."""

GROWING: Final[Mapping[str, pa.Schema]] = MappingProxyType(
    {"entries": ENTRIES, "dead_letters": DEAD_LETTERS}
)
MERGED: Final[Mapping[str, pa.Schema]] = MappingProxyType(
    {
        "minutes": MINUTES,
        "components": COMPONENTS,
        "templates": TEMPLATES,
        "template_minutes": TEMPLATE_MINUTES,
        "logins": LOGINS,
        "files": FILES,
    }
)
