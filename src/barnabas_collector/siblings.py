"""Recognises and sorts the names of a log's rotated files. Pure.

    access.log.1  access.log.2.gz  access.log.0  access.log.old      numbered: 1 is the newest
    access.log-20261123  access.log.2026-11-23.gz  access.log-20261123-1795392000      dated
    access-20261123.log  access-20261123.log.gz                      dated before the extension
    access-11-23-2026-1.log.gz  access__2026-11-23_00-00-00.log      log4j2's, pm2's
    access.log-1795392000  access.log-261123  access.log-2026-W48    logrotate's %s, %y%m%d, weeks

The files may be compressed by gzip, bzip2, xz or zstd. Other names are ignored, because an editor's
backup or a tool's offset file is not a log.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

_NUMBER = re.compile(r"[._-](\d{1,5})")
_OLD = re.compile(r"[._-]old")
_TIME = r"(?:[._T-]?\d[\d._:T-]*)?"  # a time or a number
_DATE = re.compile(
    r"[._-]{1,2}20\d\d([._-]?)(?:0[1-9]|1[0-2])"  # followed by the day
    rf"(?:\1(?:0[1-9]|[12]\d|3[01]){_TIME})?"
)
_WEEK = re.compile(r"[._-]20\d\d-?W\d\d" + _TIME)
_DATE_BACKWARDS = re.compile(  # log4j2's MM-dd-yyyy, and dd-MM-yyyy
    rf"[._-]{{1,2}}([0-3]\d)([._-]?)([0-3]\d)\2(20\d\d){_TIME}"
)
_SHORT_DATE = re.compile(r"[._-](\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]))")  # %y%m%d
_SECONDS = re.compile(r"[._-](1\d{9})")  # logrotate's %s
_DIGITS = re.compile(r"\d+")
COMPRESSED = (".gz", ".bz2", ".xz", ".zst")

Order = tuple[int, ...]


def siblings(log: str, names: Iterable[str]) -> list[str]:
    """Return the rotated files of a log among `names`, oldest first.

    If a file also exists in compressed form, only the file is returned, because the compressed one
    is still being written.
    """
    aged = {name: order for name in names if (order := _order(log, name)) is not None}
    whole = [name for name in aged if (plain := plain_name(name)) == name or plain not in aged]
    return sorted(whole, key=lambda name: (aged[name], name))


def plain_name(name: str) -> str:
    """Return the name that a compressed file had before it was compressed."""
    for suffix in COMPRESSED:
        if name.endswith(suffix):
            return name.removesuffix(suffix)
    return name


@lru_cache(16_384)
def log_names(name: str) -> frozenset[str]:
    """Return the names of the logs to which a rotated file with this name may belong."""
    plain = plain_name(name)
    marks = [at for at, character in enumerate(plain) if at and character in "._-"]
    found = {plain} if plain != name else set()
    # A mark is either at the end of the name or before an extension.
    for at in marks:
        found.add(plain[:at])
        found.update(plain[:at] + plain[end:] for end in marks if end > at and plain[end] == ".")
    return frozenset(log for log in found if siblings(log, [name]))


def _order(log: str, name: str) -> Order | None:
    """Return the file's sort key, which is larger for newer files, or None if the file is not a
    rotated file of this log."""
    plain = plain_name(name)
    # If the log itself was compressed in place, it is the newest. Of the others, the newest is
    # `.old`, followed by numbered files in ascending order, and finally by dated files.
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
    return _order_of_date(mark)


def _order_of_date(mark: str) -> Order | None:
    if _DATE.fullmatch(mark) or _WEEK.fullmatch(mark):
        return (0, *map(int, _DIGITS.findall(mark)))
    if date := _DATE_BACKWARDS.fullmatch(mark):
        rest = _DIGITS.findall(mark[date.end(4) :])
        return (0, int(date[4]), int(date[1]), int(date[3]), *map(int, rest))
    if date := _SHORT_DATE.fullmatch(mark) or _SECONDS.fullmatch(mark):
        return (0, int(date[1]))
    return None
