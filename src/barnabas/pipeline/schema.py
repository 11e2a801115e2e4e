"""Schemas, written in Spark's own notation (`name type, ...`) beside the function that fills them.

They are parsed when asked for: that needs a running session, and modules load without one.
"""

from __future__ import annotations

from pyspark.sql.types import StructType


def struct(schema: str) -> StructType:
    """The schema as Spark's type."""
    parsed = StructType.fromDDL(schema)
    assert isinstance(parsed, StructType)
    return parsed


def names(schema: str) -> list[str]:
    """The names of its columns."""
    return struct(schema).names
