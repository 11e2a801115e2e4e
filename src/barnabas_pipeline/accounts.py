"""Reads a pipeline's record counts and its dead letters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from barnabas_pipeline.view import View

_SAMPLES: Final = 3
_EXCERPT_LENGTH: Final = 180
_LOOKED_AT: Final = 4 * (_EXCERPT_LENGTH + 60)  # bytes, or characters


class Accounts(NamedTuple):
    """Counts the records read, by outcome."""

    read: int = 0
    valid: int = 0
    dead_letters: int = 0
    sent_twice: int = 0

    @property
    def balance(self) -> bool:
        return self.read == self.valid + self.dead_letters + self.sent_twice

    def plus(self, other: Accounts) -> Accounts:
        return Accounts(*(a + b for a, b in zip(self, other, strict=True)))

    def minus(self, other: Accounts) -> Accounts:
        return Accounts(*(a - b for a, b in zip(self, other, strict=True)))


class DeadLetters(NamedTuple):
    reason: str
    lines: int
    samples: list[tuple[str, str]]  # the place, and the start of the line


def read_accounts(view: View) -> tuple[Accounts, list[tuple[str, Accounts]]]:
    """Return the counts for all records read so far, and the counts for each file."""
    rows = view.frame("files").select("file", *Accounts._fields).to_dicts()
    by_file: dict[str, Accounts] = {}
    for row in rows:
        name = row.pop("file") or "records without a file"
        # Successive files with the same name (after a rotation, for example) share their counts.
        by_file[name] = by_file.get(name, Accounts()).plus(Accounts(**row))
    total = Accounts()
    for accounts in by_file.values():
        total = total.plus(accounts)
    return total, sorted(by_file.items())


def read_dead_letters(view: View, mask: Callable[[str], str] = str) -> list[DeadLetters]:
    """Return the dead letters by reason, the most common reason first.

    `mask`: a function that is applied to texts and file names to mask them.
    """
    letters = []
    for reason, count in view.reasons().most_common():
        columns = ["file", "line", "topic", "partition", "offset", "value"]
        some = view.some("dead_letters", _SAMPLES, columns, {"reason": reason})
        letters.append(DeadLetters(reason, count, [_sample(row, mask) for row in some]))
    return letters


def _sample(row: dict[str, Any], mask: Callable[[str], str]) -> tuple[str, str]:
    in_topic = f"{row['topic']}-{row['partition']}, offset {row['offset']}"
    value: bytes = row["value"] or b""
    text = value[:_LOOKED_AT].decode("utf-8", "backslashreplace")
    return place_in_file(row, mask) or in_topic, excerpt(text, mask)


def place_in_file(row: dict[str, Any], mask: Callable[[str], str]) -> str:
    """Return a row's `file` and `line` as text, or "" if the line did not come from a file."""
    return f"{mask(Path(row['file']).name)}, line {row['line']}" if row["file"] else ""


def excerpt(text: str, mask: Callable[[str], str]) -> str:
    """Return the beginning of a text, short enough to be displayed on a page."""
    # Mask more text than is shown, to recognise an address that the excerpt would truncate.
    text = mask(text[:_LOOKED_AT])
    shown = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text[:_EXCERPT_LENGTH])
    return shown + ("…" if len(text) > _EXCERPT_LENGTH else "")
