"""Compares the configs of topics, and the records of partitions, with those of their copies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

from barnabas.cli.copy.clusters import Side, Sides
from barnabas.cli.copy.fetches import Fetches
from barnabas.cli.copy.offset_map import OffsetMap
from barnabas.cli.copy.plan import TopicPlan
from barnabas.client.admin.admin import TOPIC, ConfigResource
from barnabas.types import TopicPartition

_SHOWN = 60

Row = tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]
"""Holds what a copy keeps of a record: time, key, value, headers."""

Rows = list[tuple[int, Row]]
"""Records by their offsets."""

_PARTS = ("time", "key", "value", "headers")


class Verdict(NamedTuple):
    """The result for a partition. `difference` is empty if the records are equal."""

    name: TopicPartition
    records: int
    checksum: str
    difference: str


async def compacted_topics(side: Side, topics: Sequence[str]) -> set[str]:
    """Return the topics whose cleanup.policy includes compact."""
    resources = [ConfigResource(TOPIC, name) for name in topics]
    described = await side.admin.describe_configs(resources, ["cleanup.policy"])
    return {
        resource.name
        for resource, entries in described.items()
        if any("compact" in (each.value or "") for each in entries)
    }


def config_differences(plan: TopicPlan, own: Mapping[str, str]) -> list[str]:
    """Return what differs between the configs that a copy should have and its own."""
    return [
        f"differs: config {name} is {own.get(name)}, not {value}"
        for name, value in sorted(plan.configs.items())
        if own.get(name) != value
    ]


async def compare(
    sides: Sides, name: TopicPartition, copied: OffsetMap, *, is_compacted: bool
) -> Verdict:
    """Compare all records that both sides still have.

    Of a compacted topic, only the last record of each key is compared, because either side may have
    removed others.
    """
    source, target = sides.source.fetches, sides.target.fetches
    ends, own = (await source.ends([name]))[name], (await target.ends([name]))[name]
    start = max(ends.start, copied.to_source(own.start))
    ours = _Side(target, name, copied.to_target(start), own.end)
    theirs = _Side(source, name, start, ends.end)
    if is_compacted:
        verdict = await _compare_last(theirs, ours)
    else:
        verdict = await _compare_all(theirs, ours)
    if not verdict.difference and copied.position < ends.end:
        missing = f"it is copied up to {copied.position} of {ends.end}; run it again"
        verdict = verdict._replace(difference=missing)
    return verdict


class _Side(NamedTuple):
    fetches: Fetches
    name: TopicPartition
    start: int
    end: int

    async def rows(self) -> AsyncIterator[Rows]:
        async for chunk in self.fetches.records(self.name, self.start, self.end):
            for found in chunk.lists(check_crcs=True):
                rows = [(each[2], (each[3], *each[5:])) for each in found if each[2] < self.end]
                if rows:
                    yield rows


async def _compare_all(theirs: _Side, ours: _Side) -> Verdict:
    left, right = theirs.rows(), ours.rows()
    checksum, count = blake2b(digest_size=8), 0
    wanted: Rows = []
    present: Rows = []
    while True:
        wanted, present = await asyncio.gather(_more(left, wanted), _more(right, present))
        size = min(len(wanted), len(present))
        for (their_offset, row), (our_offset, own) in zip(wanted, present, strict=False):
            if row != own:
                where = f"offset {their_offset}, {our_offset} in the copy: {_difference(row, own)}"
                return Verdict(theirs.name, count, "", where)
            checksum.update(repr(row).encode())
            count += 1
        if not size:
            break
        wanted, present = wanted[size:], present[size:]
    difference = ""
    if wanted:
        difference = f"offset {wanted[0][0]} is missing in the copy, which ends after {count:,}"
    elif present:
        difference = f"the copy has more records, from its offset {present[0][0]} on"
    return Verdict(theirs.name, count, checksum.hexdigest(), difference)


async def _more(rows: AsyncIterator[Rows], left: Rows) -> Rows:
    return left or await anext(rows, [])


async def _compare_last(theirs: _Side, ours: _Side) -> Verdict:
    wanted, present = await asyncio.gather(_last_rows(theirs), _last_rows(ours))
    checksum, difference = blake2b(digest_size=8), ""
    for key in sorted(wanted.keys() | present.keys()):
        row, own = wanted.get(key), present.get(key)
        if row != own:
            text = repr(key)[:_SHOWN]
            if row is None or own is None:
                difference = f"key {text} is only in the {'copy' if row is None else 'source'}"
            else:
                difference = f"key {text}: {_difference(row, own)}"
            break
        checksum.update(repr(row).encode())
    return Verdict(theirs.name, len(wanted), checksum.hexdigest(), difference)


async def _last_rows(side: _Side) -> dict[bytes, Row]:
    last: dict[bytes, Row] = {}
    async for rows in side.rows():
        for _, row in rows:
            _, key, value, _ = row
            if value is None:
                last.pop(key or b"", None)  # a tombstone, which may be gone on one side
            else:
                last[key or b""] = row
    return last


def _difference(row: Row, own: Row) -> str:
    """Name the first part in which two records differ."""
    for part, theirs, ours in zip(_PARTS, row, own, strict=True):
        if theirs != ours:
            return f"the {part} is {repr(ours)[:_SHOWN]}, not {repr(theirs)[:_SHOWN]}"
    return "they are equal"
