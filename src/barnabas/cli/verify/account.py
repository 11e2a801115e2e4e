"""Counts, for `verify`, the output rows for each offset of a source. Pure.

Counts take one byte per offset, and are stored in chunks. If all bytes of a chunk are equal, it is
stored as a single number. This happens early if a topic was copied in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

CHUNK: Final = 65_536  # offsets

_EXISTS, _SEEN, _AGAIN = 1, 2, 4

Offsets = npt.NDArray[np.int64]
Chunk = npt.NDArray[np.uint8]


class Findings(NamedTuple):
    """Holds the findings for one partition. The examples are the lowest offsets."""

    records: int = 0
    """records of the source."""
    rows: int = 0
    """rows that name an offset within the bounds."""
    lost: int = 0
    """records without a row."""
    doubled: int = 0
    """records with more than one row."""
    extra_rows: int = 0
    """rows in addition to the first one for their record."""
    unfounded: int = 0
    """The number of offsets with rows but without a record: aborted, compacted, or nonexistent."""
    earlier: int = 0
    """rows for records before the source's first record."""
    later: int = 0
    """rows for records after the end of what was read."""
    examples: dict[str, list[int]] = {}


class Ledger:
    """Counts rows for one partition of the source, between two offsets."""

    def __init__(self, bounds: range, chunk: int = CHUNK) -> None:
        self._bounds = bounds
        self._chunk = chunk
        self._chunks: dict[int, Chunk | int] = {}
        self._rows = self._earlier = self._later = 0

    def records(self, offsets: Offsets) -> None:
        """Count source records at these offsets, which must not contain duplicates."""
        for number, within in self._by_chunk(offsets):
            bits = self._open(number)
            bits[within] |= _EXISTS
            self._keep(number, bits)

    def rows(self, offsets: Offsets) -> None:
        """Count an output row for each of these offsets."""
        earlier = int((offsets < self._bounds.start).sum())
        later = int((offsets >= self._bounds.stop).sum())
        self._earlier += earlier
        self._later += later
        # Count rows outside the bounds, but keep them out of the chunks.
        if earlier or later:
            inside = (offsets >= self._bounds.start) & (offsets < self._bounds.stop)
            offsets = offsets[inside]
        self._rows += len(offsets)
        for number, within in self._by_chunk(offsets):
            bits = self._open(number)
            # An offset may occur twice in one block, and again in another block.
            distinct, counts = np.unique(within, return_counts=True)
            again = (counts > 1) | ((bits[distinct] & _SEEN) != 0)
            bits[distinct[again]] |= _AGAIN
            bits[distinct] |= _SEEN
            self._keep(number, bits)

    def findings(self, most_examples: int) -> Findings:
        """Return the findings, with examples of `lost`, `doubled` and `unfounded`."""
        records = seen = lost = doubled = unfounded = 0
        examples: dict[str, list[int]] = {"lost": [], "doubled": [], "unfounded": []}
        for number in sorted(self._chunks):
            bits = self._open(number)
            exists, has_row = (bits & _EXISTS) != 0, (bits & _SEEN) != 0
            again = (bits & _AGAIN) != 0
            masks = {
                "lost": exists & ~has_row,
                "doubled": exists & again,
                "unfounded": has_row & ~exists,
            }
            records += int(exists.sum())
            seen += int(has_row.sum())
            lost += int(masks["lost"].sum())
            doubled += int(masks["doubled"].sum())
            unfounded += int(masks["unfounded"].sum())
            for name, mask in masks.items():
                room = most_examples - len(examples[name])
                if room > 0:
                    found = np.flatnonzero(mask)[:room] + number * self._chunk
                    examples[name] += [int(offset) for offset in found]
        return Findings(
            records,
            self._rows,
            lost,
            doubled,
            self._rows - seen,
            unfounded,
            self._earlier,
            self._later,
            examples,
        )

    def kept_bytes(self) -> int:
        """Return the memory used by chunks whose bytes differ."""
        return sum(0 if isinstance(each, int) else each.nbytes for each in self._chunks.values())

    def _by_chunk(self, offsets: Offsets) -> Iterator[tuple[int, Offsets]]:
        if not len(offsets):
            return
        numbers, within = np.divmod(offsets, self._chunk)
        # In the usual case, a block consists of adjacent offsets and needs no sorting.
        if numbers[0] == numbers[-1] and (numbers == numbers[0]).all():
            yield int(numbers[0]), within
            return
        order = np.argsort(numbers, kind="stable")
        numbers, within = numbers[order], within[order]
        borders = np.flatnonzero(np.diff(numbers)) + 1
        firsts = np.concatenate(([0], borders))
        for first, own in zip(firsts, np.split(within, borders), strict=True):
            yield int(numbers[first]), own

    def _open(self, number: int) -> Chunk:
        found = self._chunks.get(number, 0)
        return np.full(self._chunk, found, np.uint8) if isinstance(found, int) else found

    def _keep(self, number: int, bits: Chunk) -> None:
        # Store a chunk as one number if its bytes are all equal.
        self._chunks[number] = int(bits[0]) if (bits == bits[0]).all() else bits


def total(findings: Iterable[Findings]) -> Findings:
    """Return the sums over several partitions, without examples."""
    every = list(findings)
    numbers = [name for name in Findings._fields if name != "examples"]
    return Findings(**{name: sum(getattr(each, name) for each in every) for name in numbers})


class Multisets:
    """Compares how often each value occurs in the source and in the outputs.

    Only an eight-byte hash of each value is stored. Among ten million values, the probability of a
    collision is 1 in 300,000.
    """

    def __init__(self) -> None:
        self._sides: tuple[list[npt.NDArray[np.int64]], ...] = ([], [])

    def records(self, values: Iterable[bytes | None]) -> None:
        self._sides[0].append(hashes(values))

    def rows(self, values: Iterable[bytes | None]) -> None:
        self._sides[1].append(hashes(values))

    def findings(self) -> tuple[Findings, Suspects]:
        """Return the findings, in which `lost` and `extra_rows` count missing and surplus
        values.
        """
        given, had = (
            np.unique(np.concatenate(side), return_counts=True)
            if side
            else (np.zeros(0, np.int64), np.zeros(0, np.int64))
            for side in self._sides
        )
        wanted = counts_of(had, given[0])
        excess = wanted - given[1]
        founded = np.isin(had[0], given[0])
        found = Findings(
            records=int(given[1].sum()),
            rows=int(had[1].sum()),
            lost=int(-excess[excess < 0].sum()),
            doubled=int((excess > 0).sum()),
            extra_rows=int(excess[excess > 0].sum()),
            unfounded=int(had[1][~founded].sum()),
        )
        return found, Suspects(given[0][excess < 0], given[0][excess > 0], had[0][~founded])


class Suspects(NamedTuple):
    """Holds the hashes of suspicious values, by finding."""

    lost: npt.NDArray[np.int64]
    doubled: npt.NDArray[np.int64]
    unfounded: npt.NDArray[np.int64]


def counts_of(
    counted: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]], names: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the count for each of `names`; 0 if it is missing."""
    values, counts = counted
    if not len(values):
        return np.zeros(len(names), np.int64)
    places = np.minimum(np.searchsorted(values, names), len(values) - 1)
    return np.where(values[places] == names, counts[places], 0)


def hashes(values: Iterable[bytes | None]) -> npt.NDArray[np.int64]:
    """Return Python's hashes, which differ between processes."""
    return np.fromiter(map(hash, values), np.int64)
