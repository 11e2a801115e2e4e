"""Defines the columns of the tables common to all pipelines."""

from __future__ import annotations

from typing import Final

import pyarrow as pa  # type: ignore[import-untyped]

TIME: Final = pa.timestamp("us", "UTC")
HEADERS: Final = pa.list_(
    pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())]))
)


def counts(*names: str) -> list[tuple[str, pa.DataType]]:
    return [(name, pa.int64()) for name in names]


DEAD_LETTERS: Final = pa.schema(
    [
        ("reason", pa.string()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", HEADERS),
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
        *counts("read", "valid", "dead_letters", "sent_twice"),
    ]
)
