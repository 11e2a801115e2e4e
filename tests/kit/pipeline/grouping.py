"""How well log lines are grouped, as loghub measures it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence


def accuracy(labels: Sequence[Hashable], groups: Sequence[Hashable]) -> float:
    """Return the share of lines whose group has exactly the lines of their label."""
    by_label: dict[Hashable, set[int]] = defaultdict(set)
    by_group: dict[Hashable, set[int]] = defaultdict(set)
    for at, (label, group) in enumerate(zip(labels, groups, strict=True)):
        by_label[label].add(at)
        by_group[group].add(at)
    right = [each for each in by_group.values() if by_label[labels[min(each)]] == each]
    return sum(map(len, right)) / len(labels)
