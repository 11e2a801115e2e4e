"""Finds the template that a message matches, using a tree of words. Pure.

From each node, a word leads to at most two nodes: the node for the word itself and the node for a
wildcard. The time for a search therefore does not grow with the number of templates. Of several
matching templates, the one that shares the longest prefix with the message is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

WILDCARD: Final = "<*>"
_Node = dict[str | None, Any]
_END: Final = None
"""The key under which the template's number is stored in the node after the template's last word.
"""


class TokenTree:
    def __init__(self) -> None:
        self._root: _Node = {}

    def add(self, words: Sequence[str], stands_for: int) -> None:
        """Add a template. If two templates have the same words, keep the one with the smaller
        number."""
        node = self._root
        for word in words:
            node = node.setdefault(word, {})
        node[_END] = min(stands_for, node.get(_END, stands_for))

    def remove(self, words: Sequence[str], stands_for: int) -> None:
        """Remove a template. Its nodes remain, because other templates may share them."""
        node = self._root
        for word in words:
            node = node[word]
        if node.get(_END) == stands_for:
            del node[_END]

    def find(self, words: Sequence[str]) -> int | None:
        """Return the number of the template that a message with these words matches."""
        last = len(words)
        to_visit: list[tuple[_Node, int]] = [(self._root, 0)]
        while to_visit:
            node, at = to_visit.pop()
            if at == last:
                if _END in node:
                    return int(node[_END])
                continue
            # The last node added is visited first: try the word itself, and then the wildcard.
            if words[at] != WILDCARD and (wild := node.get(WILDCARD)) is not None:
                to_visit.append((wild, at + 1))
            if (own := node.get(words[at])) is not None:
                to_visit.append((own, at + 1))
        return None
