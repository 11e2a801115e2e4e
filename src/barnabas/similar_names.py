"""Suggests names that a mistyped one may have meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return `did you mean a, or b?`; empty if no name is similar."""
    near = get_close_matches(name, list(names), n=2, cutoff=0.7)
    return f"did you mean {', or '.join(near)}?" if near else ""
