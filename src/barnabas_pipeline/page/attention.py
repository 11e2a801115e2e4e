"""Describes matters that need attention; each page lists them before its figures. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

MOST: Final = 3
"""The maximum number of concerns of one kind, and of examples of a concern."""


class Concern(NamedTuple):
    """A matter that needs human attention.

    `card`: the title of the card with the details. `reasons`: messages with their counts.
    `examples`: pairs of a place and an excerpt from the log. `span`: when it happened, if this is
    known, in the log's local time.
    """

    title: str
    about: str
    card: str
    is_urgent: bool = False
    reasons: Sequence[tuple[str, int]] = ()
    examples: Sequence[tuple[str, str]] = ()
    span: tuple[datetime, datetime] | None = None


def usual(number: float) -> str:
    """Return a text about the usual number."""
    return "usually none" if number < 0.5 else f"usually {number:,.0f}"


def anchor(card: str) -> str:
    """Return the id of the card with this title."""
    return card.lower().replace(" ", "-")
