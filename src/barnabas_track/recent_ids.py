"""Remembers the latest ids, and what is known of each. Pure."""

from __future__ import annotations

from itertools import islice
from typing import Final, TypeVar

_T = TypeVar("_T")
# The share of the ids that are forgotten at once.
_SHARE: Final = 64


class RecentIds(dict[str, _T]):
    """A dictionary that remembers at least the latest `most` ids, and few more.

    The first key of a dictionary is found by a search that passes the places of all keys deleted
    before it. Forgetting one id for each new one would therefore take longer than anything else, so
    many ids are forgotten at once.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._at_once = max(1, most // _SHARE)
        self._most = most + self._at_once - 1

    def remember(self, id_: str, value: _T) -> None:
        """Add an id that is not remembered yet."""
        if len(self) >= self._most:
            for oldest in list(islice(self, self._at_once)):
                del self[oldest]
        self[id_] = value
