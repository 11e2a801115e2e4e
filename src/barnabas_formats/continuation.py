"""Decides which lines of a log begin a record, using the formats in the catalogue. Pure.

A line that begins like a known format (usually with a time) begins a record, and so does a line
that announces a crash, such as Go's `panic:`. The lines that follow belong to this record, indented
or not: a stack trace of Java, Python, Go, Node or .NET with all its causes, or the rest of a
message. In a log whose format is unknown, each line is a record, except lines that can only belong
to a stack trace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from barnabas_formats import java_logging
from barnabas_formats.catalogue import catalogue
from barnabas_formats.format import Format

_Pattern = re.Pattern[bytes]

# An object that is a record contains a time or a level. An object within a message may contain
# neither.
_OF_RECORDS: Final = re.compile(
    rb'"(?:@?time(?:stamp)?|ts|@?t|date|asctime|(?:log\.)?level|levelname|severity'
    rb'|__REALTIME_TIMESTAMP|resourceLogs)"\s*:'
)
_PAIRS: Final = re.compile(rb"[A-Za-z_@][\w.@/-]*=")
_OF_PAIRS: Final = re.compile(rb"(?:^| )(?:time|ts|t|timestamp|level|lvl|msg)=")
_PAIRS_LOOKED_AT: Final = 1_000  # bytes of a line
_OTHERS: Final = (
    rb"__CURSOR=|Start-Date: [0-9]",
    rb"\S+ \S+ \S+ \[[0-9]{2}/[A-Za-z]{3}/[0-9]{4}:",  # web servers
    rb"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.,]{8,}\S* (?:stdout|stderr) [FP]",
)
_FIRST: Final = re.compile(java_logging.FIRST.encode())
_SECOND: Final = re.compile(java_logging.SECOND.encode())
_CRASH: Final = re.compile(
    rb"panic: |fatal error: |SIG[A-Z]+: |Exception in thread |Unhandled exception"
    rb"|Uncaught (?:exception|\S*Error)|FATAL ERROR: "
)
_TRACEBACK: Final = b"Traceback (most recent call last):"
_CONTINUES: Final = re.compile(
    rb"$|at |Caused by:|Suppressed:|\.\.\. |[})\]]"
    rb"|(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Exception|Error|Throwable|Warning|Interrupt|Exit|Group)(?:$|:|\s)"
    rb"|During handling of the above exception|The above exception was the direct cause"
    rb"|goroutine \d+ \[|created by |\[signal |exit status \d|rax +0x"
    rb"|Node\.js v|---> |--- End of "
)
_NAME_OF_EXCEPTION: Final = re.compile(rb"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:: |$)")
# A head that may begin with any word would match too many lines.
_ANY_WORD: Final = ("^(?:\\S+", "^(?:[^")


class RecordStart:
    """Applies the rule to lines. Several files may share an instance, because its only state is a
    cache.
    """

    def __init__(self, formats: Sequence[Format] = ()) -> None:
        """`formats` are a user's own formats, in addition to the catalogue."""
        own = tuple(_heads(formats))
        self._heads = {} if own else _catalogue_heads()
        if own:
            self._heads = _by_first_byte((*own, *_heads(catalogue("system"))))
        self._first = b""
        self._has_head = False

    def __call__(self, line: bytes, first: bytes) -> bool:
        """Return whether a line begins a record. `first` is the first line of the previous
        record.
        """
        if line[:1] in (b"", b" ", b"\t", b"\r"):
            return False
        if _SECOND.match(line) and _FIRST.match(first):
            return False
        has_head = self._begins(line) or _CRASH.match(line) is not None
        if not has_head and not self._is_start(line, first):
            return False
        # The next call passes this line as `first`.
        self._first, self._has_head = line, has_head
        return True

    def _is_start(self, line: bytes, first: bytes) -> bool:
        if line.startswith(_TRACEBACK):
            # After a line in no known format, this line is a separate record.
            return not (self._belongs_to(first) or first.startswith(_TRACEBACK))
        if _CONTINUES.match(line):
            return False
        if first.startswith(_TRACEBACK) and _NAME_OF_EXCEPTION.match(line):
            return False
        return not self._belongs_to(first)

    def _begins(self, line: bytes) -> bool:
        if line.startswith(b'{"'):
            return line.rstrip().endswith(b"}") and _OF_RECORDS.search(line) is not None
        heads = self._heads.get(line[0]) if line else None
        if heads is not None and heads.match(line):
            return True
        if not _PAIRS.match(line):
            return False
        start = line[:_PAIRS_LOOKED_AT]
        return sum(1 for _ in _OF_PAIRS.finditer(start)) > 1

    def _belongs_to(self, first: bytes) -> bool:
        """Return whether a record with this first line includes all following lines that begin no
        record."""
        # An object is a whole record, whatever follows it.
        if first.startswith(b'{"'):
            return False
        if first != self._first:
            self._first = first
            self._has_head = self._begins(first) or _CRASH.match(first) is not None
        return self._has_head


@cache
def _catalogue_heads() -> dict[int, _Pattern]:
    return _by_first_byte(tuple(_heads(catalogue("system"))))


def _heads(formats: Sequence[Format]) -> Iterator[str]:
    for of in formats:
        for each in of.patterns:
            is_weak = not each.head or each.head.startswith(_ANY_WORD)
            yield each.regex if is_weak else each.head


def _by_first_byte(heads: Sequence[str]) -> dict[int, _Pattern]:
    """Return an expression for each possible first byte of a line, because few heads begin with the
    same byte."""
    texts = [re.sub(r"\(\?P<[a-z]+>", "(?:", head) for head in dict.fromkeys(heads)]
    found: dict[int, _Pattern] = {}
    for byte in range(256):
        some = [each.encode() for each in texts if byte in _first_bytes(each)]
        found[byte] = re.compile(b"|".join((*some, *_OTHERS)))  # `re` caches equal patterns
    return found


def _first_bytes(head: str) -> bytes:
    """Return the possible first bytes of a line with this head."""
    start = re.sub(r"^\^(?:\(\?:)*", "", head)
    if start.startswith(("[0-9]", "[ 0-9]")):
        return b"0123456789"
    if start.startswith("\\") and not start[1].isalnum():
        return start[1].encode()
    return start[0].encode() if start[0] in "<0123456789" else bytes(range(256))
