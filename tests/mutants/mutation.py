"""What a mutation is."""

from __future__ import annotations

from typing import NamedTuple


class Mutation(NamedTuple):
    """One mistake: a fragment of a source file that stands there once, and what takes its place."""

    file: str  # from src on
    fragment: str
    replacement: str
    tests: tuple[str, ...]  # below tests, the nearest ones
    why_it_survives: str = ""
    """Of one that is known to, since it changes nothing that anybody could notice."""

    @property
    def name(self) -> str:
        line = self.fragment.strip().splitlines()[0]
        return f"{self.file}: {line}"
