"""Chooses which groups to poll next, so that each group gets its turn. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import Final

MOST_AT_ONCE: Final = 100
MOST_KEPT: Final = 2_000
"""The maximum number of groups whose lag is kept. The oldest figures are dropped."""
_MOST_OPEN: Final = 20
_MOST_LISTED: Final = 30


def next_turn(
    groups: Collection[str],
    looked_at: Mapping[str, int],
    opened: Iterable[str] = (),
    listed: Iterable[str] = (),
) -> list[str]:
    """Return the groups to poll now. If there are only a few groups, all of them are polled.

    If there are many groups, those whose page is open come first, followed by some of the groups in
    lists on view. The other groups share at least half of the places, starting with those whose
    figures are the oldest.
    """
    if len(groups) <= MOST_AT_ONCE:
        return list(groups)

    def oldest_first(names: Iterable[str]) -> list[str]:
        return sorted(names, key=lambda name: (looked_at.get(name, 0), name))

    chosen = dict.fromkeys(islice((name for name in opened if name in groups), _MOST_OPEN))
    on_list = [name for name in listed if name in groups and name not in chosen]
    chosen |= dict.fromkeys(oldest_first(on_list)[:_MOST_LISTED])
    others = [name for name in groups if name not in chosen]
    return [*chosen, *oldest_first(others)[: MOST_AT_ONCE - len(chosen)]]


def latest(looked_at: Mapping[str, int], groups: Collection[str]) -> dict[str, int]:
    """Return the time when each group was polled, leaving out deleted groups and the oldest
    entries.
    """
    left = {name: at for name, at in looked_at.items() if name in groups}
    if len(left) <= MOST_KEPT:
        return left
    return dict(sorted(left.items(), key=lambda one: one[1], reverse=True)[:MOST_KEPT])
