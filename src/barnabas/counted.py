"""Numbers with their nouns: `1 record`, `2 records`. Pure."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return the count and its noun, in the plural unless it is 1: `1 member`, `2,000 members`."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
