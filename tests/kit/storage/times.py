"""Searches of a log by time, as a broker does them, but in the test's own thread (ST-4)."""

from __future__ import annotations

from barnabas.storage.cold_lookups import Lookup, newest_lookup, timestamp_lookup
from barnabas.storage.log import Log
from barnabas.storage.search import Found


def offset_for_timestamp(log: Log, timestamp_ms: int, end_offset: int) -> Found | None:
    """The first record below `end_offset` that is not older."""
    found = _run(log, timestamp_lookup(log, timestamp_ms))
    return found if found and found.offset < end_offset else None


def max_timestamp_offset(log: Log) -> Found | None:
    """The youngest record."""
    return _run(log, newest_lookup(log))


def _run(log: Log, lookup: Lookup) -> Found | None:
    lookup.run()
    assert lookup.is_of(log)
    lookup.learn()
    return lookup.found
