"""Runs `verify`: reads the source and then the outputs, and compares them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]  # ships neither stubs nor py.typed

from barnabas.cli.connection import client_options
from barnabas.cli.progress import Progress
from barnabas.cli.verify.account import Findings, Ledger, Multisets, hashes, total
from barnabas.cli.verify.read import (
    Names,
    Origins,
    bounds_of,
    origins_by_columns,
    origins_by_headers,
    records_of,
    table_rows,
    values_of_rows,
)
from barnabas.client.consumer.consumer import Consumer
from barnabas.records.columns import Columns
from barnabas.types import TopicPartition


class Wanted(NamedTuple):
    """Specifies the sources and outputs to compare, and how to compare them."""

    servers: str
    sources: tuple[str, ...]
    sinks: tuple[str, ...]
    by: str
    headers: Names
    columns: Names
    value_column: str
    until_ms: int | None
    isolation_level: str
    storage: Mapping[str, str]
    most_examples: int
    is_compacted: bool


class Verdict(NamedTuple):
    """Holds the combined findings for all partitions."""

    findings: Findings
    unmarked: int
    """rows that do not name their record"""
    of_others: int
    """rows of other topics"""
    examples: Mapping[str, list[str]]
    """where to find some of the `lost`, `doubled`, `unfounded` and `unmarked`"""
    is_exact: bool


async def compare(wanted: Wanted, progress: Progress) -> Verdict:
    """Compare sources and outputs. Raises any error from reading a topic or a table."""
    if wanted.by == "offset":
        return await _Offsets(wanted, progress).verdict()
    return await _Values(wanted, progress).verdict()


def is_table(sink: str) -> bool:
    return "/" in sink  # a topic name never contains a slash


class _Comparison:
    def __init__(self, wanted: Wanted, progress: Progress) -> None:
        self._wanted = wanted
        self._progress = progress
        self._read = 0

    def _consumer(self) -> Consumer:
        return Consumer(
            self._wanted.servers,
            **client_options(),
            isolation_level=self._wanted.isolation_level,
            # Do not silently skip a gap, nor create a topic for a mistyped name.
            auto_offset_reset="none",
            allow_auto_create_topics=False,
        )

    async def _records(
        self, bounds: Mapping[TopicPartition, range], *, with_headers: bool = False
    ) -> AsyncIterator[tuple[TopicPartition, Columns]]:
        async with self._consumer() as consumer:
            async for place, columns in records_of(consumer, bounds, with_headers=with_headers):
                self._count(columns.values.nbytes, len(columns.offsets))
                yield place, columns

    async def _bounds(self, topic: str, until_ms: int | None = None) -> dict[TopicPartition, range]:
        async with self._consumer() as consumer:
            return await bounds_of(consumer, topic, until_ms)

    async def _source_bounds(self) -> dict[TopicPartition, range]:
        found: dict[TopicPartition, range] = {}
        for source in self._wanted.sources:
            found |= await self._bounds(source, self._wanted.until_ms)
        return found

    def _count(self, size_bytes: int, rows: int) -> None:
        self._read += rows
        self._progress.advance(size_bytes, self._read)


class _Offsets(_Comparison):
    """Compares rows by the offset that each row names."""

    async def verdict(self) -> Verdict:
        wanted = self._wanted
        # Determine the bounds before reading anything. Rows for later records are counted
        # separately.
        bounds = await self._source_bounds()
        self._ledgers = {place: Ledger(within) for place, within in bounds.items()}
        self._of_others = 0
        self._unmarked = 0
        self._unmarked_in: list[str] = []
        async for place, columns in self._records(bounds):
            self._ledgers[place].records(columns.offsets.to_numpy(zero_copy_only=False))
        only = wanted.sources[0] if len(wanted.sources) == 1 else None
        for sink in wanted.sinks:
            if is_table(sink):
                names = [name for name in wanted.columns if name is not None]
                for rows in table_rows(sink, wanted.storage, names):
                    self._count(rows.nbytes, len(rows))
                    self._account(sink, origins_by_columns(rows, wanted.columns, only))
            else:
                reading = self._records(await self._bounds(sink), with_headers=True)
                async for place, columns in reading:
                    origins = origins_by_headers(columns, wanted.headers, only)
                    first = f"{place.topic}-{place.partition} from {columns.offsets[0].as_py()}"
                    self._account(first, origins)
        by_place = {
            place: ledger.findings(wanted.most_examples) for place, ledger in self._ledgers.items()
        }
        return self._judge(by_place)

    def _account(self, where: str, origins: Origins) -> None:
        if origins.unmarked:
            self._unmarked += origins.unmarked
            if len(self._unmarked_in) < self._wanted.most_examples:
                self._unmarked_in.append(where)
        for place, offsets in origins.places.items():
            ledger = self._ledgers.get(place)
            if ledger is not None:
                ledger.rows(offsets)
            # This row names one of the sources, so it does not belong to another pipeline.
            elif place.topic in self._wanted.sources:
                self._unmarked += len(offsets)  # a partition that does not exist in the source
                self._unmarked_in.append(f"{where} ({place.topic}-{place.partition})")
            else:
                self._of_others += len(offsets)

    def _judge(self, by_place: Mapping[TopicPartition, Findings]) -> Verdict:
        examples = {
            kind: [
                f"{place.topic}-{place.partition}@{offset}"
                for place, found in by_place.items()
                for offset in found.examples[kind]
            ][: self._wanted.most_examples]
            for kind in ("lost", "doubled", "unfounded")
        }
        examples["unmarked"] = list(dict.fromkeys(self._unmarked_in))[: self._wanted.most_examples]
        found = total(by_place.values())
        # After compaction, a row may remain when its record is gone. This is not an error.
        strays = 0 if self._wanted.is_compacted else found.unfounded
        is_exact = not (found.lost or found.doubled or strays or self._unmarked)
        return Verdict(found, self._unmarked, self._of_others, examples, is_exact)


class _Values(_Comparison):
    """Compares rows by how often each key, or each value, occurs."""

    async def verdict(self) -> Verdict:
        sides = Multisets()
        await self._read_source(lambda _, values: sides.records(values))
        await self._read_sinks(lambda _, values: sides.rows(values))
        found, suspects = sides.findings()
        strays = 0 if self._wanted.is_compacted else found.unfounded
        is_exact = not (found.lost or found.doubled or strays)
        examples: dict[str, list[str]] = {"lost": [], "doubled": [], "unfounded": []}
        if not is_exact and self._wanted.most_examples:
            # A second pass looks up the values themselves.
            lost, doubled, unfounded = (set(each.tolist()) for each in suspects)

            def pick(wanted: dict[str, set[int]]) -> Callable[[str, list[bytes | None]], None]:
                def look(where: str, values: list[bytes | None]) -> None:
                    for at, name in enumerate(hashes(values).tolist()):
                        for kind, names in wanted.items():
                            if name in names and len(examples[kind]) < self._wanted.most_examples:
                                names.discard(name)
                                examples[kind].append(f"{_shown(values[at])} in {where}")

                return look

            await self._read_source(pick({"lost": lost, "doubled": doubled}))
            await self._read_sinks(pick({"unfounded": unfounded}))
        return Verdict(found, 0, 0, examples, is_exact)

    async def _read_source(self, take: Callable[[str, list[bytes | None]], None]) -> None:
        async for place, columns in self._records(await self._source_bounds()):
            take(f"{place.topic}-{place.partition}", self._column(columns).to_pylist())

    async def _read_sinks(self, take: Callable[[str, list[bytes | None]], None]) -> None:
        wanted = self._wanted
        for sink in wanted.sinks:
            if is_table(sink):
                for rows in table_rows(sink, wanted.storage, [wanted.value_column]):
                    self._count(rows.nbytes, len(rows))
                    take(sink, values_of_rows(rows, wanted.value_column))
            else:
                async for place, columns in self._records(await self._bounds(sink)):
                    take(f"{place.topic}-{place.partition}", self._column(columns).to_pylist())

    def _column(self, columns: Columns) -> Any:
        column: pa.Array = columns.keys if self._wanted.by == "key" else columns.values
        return column


def _shown(value: bytes | None) -> str:
    if value is None:
        return "null"
    text = value.decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
