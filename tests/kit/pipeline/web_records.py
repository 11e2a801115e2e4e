"""Records as the collector's topic has them, for tests that need no broker."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa  # type: ignore[import-untyped]

from barnabas_collector.headers import CUT, FILE, FILE_ID, LINE, POSITION
from pyspark_barnabas.schema import arrow_schema

SCHEMA = arrow_schema(include_headers=True)

Row = tuple[object, ...]


def record(
    value: bytes | None,
    offset: int,
    *,
    position: int | None = None,
    file: str = "access.log",
    partition: int = 0,
    cut: bool = False,
) -> Row:
    """One record; without the collector's headers if it has no `position`."""
    headers = None
    if position is not None:
        headers = [
            (FILE, f"/logs/{file}".encode()),
            (FILE_ID, file.encode()),
            (POSITION, b"%d" % position),
            (LINE, b"%d" % (position // 100 + 1)),
        ]
        if cut:
            headers.append((CUT, b"999999"))
    return (b"key", value, "web-access", partition, offset, None, 0, headers)


def table(rows: Iterable[Row]) -> pa.Table:
    """As a task has them."""
    named = [dict(zip(SCHEMA.names, row, strict=True)) for row in rows]
    for row in named:
        headers = row["headers"]
        if isinstance(headers, list):
            row["headers"] = [{"key": key, "value": value} for key, value in headers]
    return pa.Table.from_pylist(named, schema=SCHEMA)


def line(
    client: str = "198.18.0.1",
    clock: str = "10:00:00",
    path: str = "/",
    *,
    day: str = "17/May/2015",
    status: int = 200,
    agent: str = "Browser",
    referrer: str = "-",
) -> bytes:
    """A line of the Combined Log Format."""
    return (
        f'{client} - - [{day}:{clock} +0000] "GET {path} HTTP/1.1" {status} 100'
        f' "{referrer}" "{agent}"'
    ).encode()


def mixed(batch: int, partitions: int = 2) -> pa.Table:
    """Of each partition: hits of three visitors, a line that was sent before, and a bad one."""
    rows: list[Row] = []
    for partition in range(partitions):
        for i in range(6):
            place = 600 * batch + 100 * i
            clock = f"{10 + batch % 10}:{i}0:00"
            text = line(f"198.18.{partition}.{i % 3}", clock, f"/{i}?q={batch}")
            rows.append(record(text, place, position=place, partition=partition))
        rows.append(record(text, place + 1, position=place, partition=partition))
        bad = b"bad %d in %d" % (batch, partition)
        rows.append(record(bad, place + 2, position=place + 50, partition=partition))
        if batch:  # the collector began again with the line before
            rows.append(record(line(), place + 3, position=600 * batch - 100, partition=partition))
    return table(rows)
