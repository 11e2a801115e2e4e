"""What is counted, and how it is told: counters, and families of numbers in Prometheus' text.

Whoever measures owns its counters and counts on them directly; there is no registry. What can be
seen by looking is not counted but looked at when somebody asks. One event loop writes counters, so
there are no locks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""Of what `text` returns."""

_IN_HELP = str.maketrans({"\\": r"\\", "\n": r"\n"})
_IN_LABEL = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


class Counter:
    """A number that only grows."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def increment(self, amount: int = 1) -> None:
        assert amount >= 0, amount
        self.value += amount


class Sample(NamedTuple):
    """One number of a family; its labels, by name and value, tell it from the others."""

    value: float
    labels: tuple[tuple[str, str], ...] = ()


class Family(NamedTuple):
    """All numbers of one name, as they are at this moment."""

    name: str
    type: str  # gauge or counter
    help: str
    samples: Iterable[Sample]


def text(families: Iterable[Family]) -> str:
    """Prometheus' text format 0.0.4; a family without samples is there by its name alone."""
    lines = []
    for family in families:
        lines.append(f"# HELP {family.name} {family.help.translate(_IN_HELP)}\n")
        lines.append(f"# TYPE {family.name} {family.type}\n")
        lines += [f"{family.name}{_labels(one)} {float(one.value)}\n" for one in family.samples]
    return "".join(lines)


def _labels(sample: Sample) -> str:
    if not sample.labels:
        return ""
    pairs = (f'{name}="{value.translate(_IN_LABEL)}"' for name, value in sample.labels)
    return f"{{{','.join(pairs)}}}"
