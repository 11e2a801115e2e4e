"""Counters, and families of numbers in Prometheus' text format.

A component owns its counters and increments them directly; there is no registry. Numbers that can
be read from state are not counted but read on request. One event loop writes counters, so there are
no locks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""The content type of `text`."""

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
    """One number of a family, identified by its labels."""

    value: float
    labels: tuple[tuple[str, str], ...] = ()


class Family(NamedTuple):
    """All numbers of one name, as they are at this moment."""

    name: str
    type: str  # gauge or counter
    help: str
    samples: Iterable[Sample]


def text(families: Iterable[Family]) -> str:
    """Prometheus' text format 0.0.4; a family without samples has only its head lines."""
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
