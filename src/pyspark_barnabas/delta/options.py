"""Parses the options of `format("barnabas.delta")`, using Delta's names where it has them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from barnabas.errors import ConfigError
from pyspark_barnabas.given import GivenOptions, boolean, refuse_others

_STORAGE = "storage."
_NAMES = (
    "path",
    "partitionBy",
    "mergeSchema",
    "txnAppId",
    "txnVersion",
    "txnBegins",
    "txnQuery",
    "compactEvery",
    "vacuumEvery",
    "logRetentionHours",
)


class DeltaOptions(NamedTuple):
    """The location of a table, and the options for writing to it."""

    path: str
    partition_by: tuple[str, ...]
    merge_schema: bool
    app_id: str | None
    version: int | None
    query: str | None  # of the micro-batch
    begins: int | None  # a query's first version, if not 0
    compact_every: int | None  # commits
    vacuum_every: int | None  # commits
    log_retention_hours: int | None  # of a new table; None: 30 days
    storage: Mapping[str, str]  # of the object store, with `deltalake`'s names
    cuts_log: bool = True  # after a checkpoint; if False, the caller does that

    def __repr__(self) -> str:
        return f"DeltaOptions({self.path})"  # without the credentials of an object store


def delta_options(given: Mapping[str, str]) -> DeltaOptions:
    """Parse the options. Raises `ConfigError`, which names the option."""
    options = GivenOptions(given)
    refuse_others("barnabas.delta", options.names(), _NAMES, _STORAGE)
    path = options.get("path")
    if not path:
        raise ConfigError("the table's path is missing: give it to save() or start()")
    app_id = options.get("txnAppId")
    version = options.parse("txnVersion", _version, None)
    if version is not None and app_id is None:
        raise ConfigError("option txnVersion needs txnAppId, the application of that version")
    return DeltaOptions(
        # The working directory of a task may differ from the driver's.
        path if "://" in path or path.startswith("file:") else str(Path(path).absolute()),
        _columns(options.get("partitionBy")),
        options.parse("mergeSchema", boolean, False),
        app_id,
        version,
        options.get("txnQuery"),
        options.parse("txnBegins", _version, None),
        options.positive("compactEvery"),
        options.positive("vacuumEvery"),
        options.positive("logRetentionHours"),
        {
            name[len(_STORAGE) :]: value
            for name, value in given.items()
            if name.lower().startswith(_STORAGE)
        },
    )


def _columns(text: str | None) -> tuple[str, ...]:
    names = tuple(name.strip() for name in (text or "").split(",") if name.strip())
    if len({name.lower() for name in names}) < len(names):
        raise ConfigError(f"option partitionBy={text!r}: a column is named twice")
    return names


def _version(text: str) -> int | None:
    if not text.strip().isdecimal() or int(text) > 2**63 - 1:
        raise ValueError("a whole number of at least 0")
    return int(text)
