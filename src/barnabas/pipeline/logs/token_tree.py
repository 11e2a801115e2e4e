"""Which of many templates a message fits: a tree of their words. Pure.

Drain searches by similarity, among all templates that begin alike, and so takes the longer the more
of them there are. To see whether a message fits a template exactly, word for word, its words are
enough: each leads to the next node, and where there is a wildcard, too, to two of them. What fits
several templates has the one whose words are the message's own for longest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

WILDCARD: Final = "<*>"
_Node = dict[str | None, Any]
_END: Final = None
"""The key of what a template stands for, in the node behind its last word."""


class TokenTree:
    def __init__(self) -> None:
        self._root: _Node = {}

    def add(self, words: Sequence[str], stands_for: int) -> None:
        """A template; of two with the same words the smaller number stays."""
        node = self._root
        for word in words:
            node = node.setdefault(word, {})
        node[_END] = min(stands_for, node.get(_END, stands_for))

    def remove(self, words: Sequence[str], stands_for: int) -> None:
        """A template that was added. Its nodes stay: others may share them."""
        node = self._root
        for word in words:
            node = node[word]
        if node.get(_END) == stands_for:
            del node[_END]

    def find(self, words: Sequence[str]) -> int | None:
        """What the template stands for that a message of these words fits."""
        last = len(words)
        to_visit: list[tuple[_Node, int]] = [(self._root, 0)]
        while to_visit:
            node, at = to_visit.pop()
            if at == last:
                if _END in node:
                    return int(node[_END])
                continue
            if words[at] != WILDCARD and (wild := node.get(WILDCARD)) is not None:
                to_visit.append((wild, at + 1))
            if (own := node.get(words[at])) is not None:
                to_visit.append((own, at + 1))
        return None
