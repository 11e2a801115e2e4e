"""Recognises the names of a log's rotated files, and their order. Pure.

    access.log.1  access.log.2.gz  access.log.0  access.log.old      numbered: 1 is the newest
    access.log-20261123  access.log.2026-11-23.gz  access.log-20261123-1795392000      dated
    access-20261123.log  access-20261123.log.gz                      dated before the extension

Other names are ignored: an editor's backup or a tool's offset file is not a log.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

_NUMBER = re.compile(r"[._-](\d{1,5})")
_OLD = re.compile(r"[._-]old")
_DATE = re.compile(
    r"[._-]20\d\d([._-]?)(?:0[1-9]|1[0-2])"  # and the day, and a time or a number
    r"(?:\1(?:0[1-9]|[12]\d|3[01])(?:[._T-]?\d[\d._:T-]*)?)?"
)
_DIGITS = re.compile(r"\d+")

Order = tuple[int, ...]


def siblings(log: str, names: Iterable[str]) -> list[str]:
    """The rotated files of a log among `names`, the oldest first.

    A file beside its own compressed form stands for both: that one is still being written.
    """
    aged = {name: order for name in names if (order := _order(log, name)) is not None}
    whole = [name for name in aged if name.removesuffix(".gz") not in aged or name[-3:] != ".gz"]
    return sorted(whole, key=lambda name: (aged[name], name))


@lru_cache(16_384)
def log_names(name: str) -> frozenset[str]:
    """The logs of which a file of this name may be a rotated one."""
    plain = name.removesuffix(".gz")
    marks = [at for at, character in enumerate(plain) if at and character in "._-"]
    found = {plain} if plain != name else set()
    for at in marks:
        found.add(plain[:at])
        found.update(plain[:at] + plain[end:] for end in marks if end > at and plain[end] == ".")
    return frozenset(log for log in found if siblings(log, [name]))


def _order(log: str, name: str) -> Order | None:
    """The file's order, larger for younger ones; None if it is not a rotated file of this log."""
    plain = name.removesuffix(".gz")
    if name != plain and plain == log:
        return (3,)
    stem, dot, extension = log.rpartition(".")
    if plain.startswith(log):
        mark = plain[len(log) :]
        if number := _NUMBER.fullmatch(mark):
            return (1, -int(number[1]))
        if _OLD.fullmatch(mark):
            return (2,)
    elif dot and plain.startswith(stem) and plain.endswith(dot + extension):
        mark = plain[len(stem) : -len(dot + extension)]
    else:
        return None
    return (0, *map(int, _DIGITS.findall(mark))) if _DATE.fullmatch(mark) else None
