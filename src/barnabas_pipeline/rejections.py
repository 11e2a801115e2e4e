"""Says that many records of a run were rejected, and why. Pure.

A few odd lines are in every log. If more than a fifth of all are rejected, they are rather of a
format that is not known, and the figures of the others mislead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.counted import counted
from barnabas_pipeline.accounts import Accounts, DeadLetters

_MANY: Final = 0.2
_REASONS: Final = 3


class Rejections(NamedTuple):
    """Many rejected records."""

    lines: int
    of: int  # records, each once
    reasons: list[tuple[str, int]]  # the most frequent ones
    place: str  # of a sample of the most frequent one
    sample: str


def many_rejected(accounts: Accounts, letters: Sequence[DeadLetters]) -> Rejections | None:
    """The rejected records, `letters` being the most frequent reason first; None if they are not
    more than a fifth."""
    of = accounts.valid + accounts.dead_letters
    if not letters or not are_many(accounts.dead_letters, of):
        return None
    reasons = [(each.reason, each.lines) for each in letters[:_REASONS]]
    place, sample = next((each for each in letters[0].samples), ("", ""))
    return Rejections(accounts.dead_letters, of, reasons, place, sample)


def are_many(lines: int, of: int) -> bool:
    """More than a fifth of all records is worth a warning."""
    return lines > _MANY * of


def complaint(accounts: Accounts, letters: Sequence[DeadLetters]) -> str | None:
    """Why a run has failed of which nothing is valid; None for another one."""
    found = many_rejected(accounts, letters)
    if found is None or accounts.valid:
        return None
    reasons = ", ".join(f"{lines:,} {reason}" for reason, lines in found.reasons)
    sample = f"; such as {found.place}: {found.sample}" if found.place else ""
    return f"none of {counted(found.of, 'record')} is valid: {reasons}{sample}"
