"""Reports whether many records in a run were rejected, and why. Pure.

Any log contains a few odd lines. If more than a fifth of all records are rejected, their format is
probably unknown, and figures based on the rest are misleading.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.counted import counted
from barnabas_pipeline.accounts import Accounts, DeadLetters

_MANY: Final = 0.2
_REASONS: Final = 3
_EXAMPLES: Final = 3


class Rejections(NamedTuple):
    """The rejected records of a run that rejected many, and the reasons."""

    lines: int
    of: int  # records, each once
    reasons: list[tuple[str, int]]  # the most frequent reasons
    place: str  # for a sample of the most frequent reason
    sample: str


def many_rejected(accounts: Accounts, letters: Sequence[DeadLetters]) -> Rejections | None:
    """Return the rejected records, or None if at most a fifth of all records were rejected.

    `letters`: dead letters, with the most frequent reason first.
    """
    of = accounts.valid + accounts.dead_letters
    if not letters or not are_many(accounts.dead_letters, of):
        return None
    reasons = [(each.reason, each.lines) for each in letters[:_REASONS]]
    place, sample = next((each for each in letters[0].samples), ("", ""))
    return Rejections(accounts.dead_letters, of, reasons, place, sample)


def examples(letters: Sequence[DeadLetters]) -> list[tuple[str, str, str]]:
    """Return the reason, place and start of up to three rejected records.

    `letters`: dead letters, with the most frequent reason first. No reason gets a second example
    until every reason has one.
    """
    rounds = max((len(each.samples) for each in letters), default=0)
    found = [
        (each.reason, *each.samples[number])
        for number in range(rounds)
        for each in letters
        if number < len(each.samples)
    ]
    return found[:_EXAMPLES]


def are_many(lines: int, of: int) -> bool:
    """Return whether more than a fifth of all records were rejected, which calls for a warning."""
    return lines > _MANY * of


def complaint(
    accounts: Accounts, letters: Sequence[DeadLetters], what: str = "record"
) -> str | None:
    """Explain why a run without valid records failed, or return None for any other run.

    `what`: the word that users know for a record, such as "line".
    """
    found = many_rejected(accounts, letters)
    if found is None or accounts.valid:
        return None
    reasons = ", ".join(f"{lines:,} {reason}" for reason, lines in found.reasons)
    sample = f"; such as {found.place}: {found.sample}" if found.place else ""
    return f"none of {counted(found.of, what)} is valid: {reasons}{sample}"


def nothing_known(entries: int, raw: int, samples: Sequence[tuple[str, str]]) -> str | None:
    """Explain why a run without a known format failed (SP-2), or return None for any other run.

    `samples`: places and excerpts of such entries.
    """
    if not entries or raw < entries:
        return None
    shown = "".join(f"; such as {place}: {text}" for place, text in samples[:1])
    return (
        f"no known format fits any of {counted(entries, 'record')}{shown}; `barnabas formats list`"
        " names the formats, and --formats adds your own"
    )
