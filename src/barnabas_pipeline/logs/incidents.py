"""Combines overlapping bursts in the same format into one incident with several templates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from barnabas_pipeline.logs.bursts import Burst


class Incident(NamedTuple):
    format: str
    bursts: tuple[Burst, ...]  # the greatest excess first

    @property
    def begin(self) -> datetime:
        return min(each.begin for each in self.bursts)

    @property
    def end(self) -> datetime:
        return max(each.end for each in self.bursts)

    @property
    def excess(self) -> float:
        return sum(each.excess for each in self.bursts)

    @property
    def lines(self) -> int:
        return sum(each.lines for each in self.bursts)


def incidents(bursts: Iterable[Burst], formats: Mapping[str, str]) -> list[Incident]:
    """Return the incidents, the greatest excess first. `formats`: the format of each template."""
    found: list[list[Burst]] = []
    by_format: dict[str, list[Burst]] = {}
    for each in sorted(bursts, key=lambda burst: burst.begin):
        of_format = formats[each.template]
        current = by_format.get(of_format)
        if current is None or each.begin > max(burst.end for burst in current):
            current = by_format[of_format] = []
            found.append(current)
        current.append(each)
    grouped = [
        Incident(formats[some[0].template], tuple(sorted(some, key=lambda burst: -burst.excess)))
        for some in found
    ]
    return sorted(grouped, key=lambda each: (-each.excess, each.begin))
