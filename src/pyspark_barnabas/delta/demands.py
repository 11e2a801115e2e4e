"""Checks whether this sink meets the demands that a table makes on its writers, before any row is
written.

Demands are features of the table's protocol (Delta's protocol, "Table Features"), properties of the
table, and metadata of columns.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, Final

from barnabas.errors import ConfigError

if TYPE_CHECKING:
    from deltalake import DeltaTable

# Features with which `deltalake` 1.6.6 was found to write correctly, and whose demands on this sink
# are all checked below. Deletion vectors are omitted, because the vacuum and the overwrites of
# `deltalake` ignore the vectors' files.
_SUPPORTED: Final = frozenset(
    (
        "appendOnly",
        "invariants",
        "checkConstraints",
        "changeDataFeed",
        "generatedColumns",
        "columnMapping",
        "timestampNtz",
        "v2Checkpoint",
        "variantType",
        "variantType-preview",
    )
)
_NEWEST: Final = 7  # the writer version from which a table lists its features
_IDENTITY: Final = 6  # the writer version that includes identity columns
# In a column's metadata:
_OF_COLUMNS: Final = ("delta.invariants", "delta.generationExpression", "delta.identity.start")


def refuse_demands(table: DeltaTable, *, overwrite: bool = False) -> None:
    """Raise `ConfigError` if this writer does not meet all of the table's demands."""
    refuse_features(table)
    settings = table.metadata().configuration
    constraints = sorted(name for name in settings if name.startswith("delta.constraints."))
    if constraints:
        raise ConfigError(
            f"the table has {', '.join(constraints)}, and this sink does not check constraints"
        )
    if settings.get("delta.columnMapping.mode", "none") != "none":
        raise ConfigError(
            "the table has delta.columnMapping.mode, which this sink does not support"
        )
    if overwrite and str(settings.get("delta.appendOnly")).lower() == "true":
        raise ConfigError(
            "the table is append-only (delta.appendOnly): mode overwrite and output mode complete "
            "would remove rows"
        )
    for name, demand in _demands("", json.loads(table.schema().to_json())):
        raise ConfigError(
            f"column {name} of the table has {demand}, which this sink does not support"
        )


def refuse_features(table: DeltaTable) -> None:
    """Raise `ConfigError` if the table's protocol alone makes demands that this writer does not
    meet.
    """
    protocol = table.protocol()
    features = {*(protocol.writer_features or ()), *(protocol.reader_features or ())}
    missing = missing_features(protocol.min_writer_version, features)
    if missing:
        raise ConfigError(
            f"the table needs writers that support {', '.join(missing)}, and this one does not: "
            "drop the feature from the table (ALTER TABLE ... DROP FEATURE), or use another one"
        )


def missing_features(writer_version: int, features: Collection[str]) -> list[str]:
    """Return the features that a table with this protocol requires but this sink does
    not support.
    """
    if writer_version > _NEWEST:
        return [f"writer version {writer_version}"]
    if writer_version == _IDENTITY:
        return ["identityColumns"]
    return sorted(set(features) - _SUPPORTED)


def _demands(path: str, node: Any) -> Iterator[tuple[str, str]]:
    """Yield each demand in the schema's JSON, at any depth, with its column or field."""
    if isinstance(node, list):
        for each in node:
            yield from _demands(path, each)
    elif isinstance(node, dict):
        if "name" in node:
            path = f"{path}.{node['name']}" if path else str(node["name"])
            yield from ((path, each) for each in _OF_COLUMNS if each in node.get("metadata", {}))
        for name, each in node.items():
            if name != "metadata":
                yield from _demands(path, each)
