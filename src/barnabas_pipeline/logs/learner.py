"""Learns the templates of one format, one masked message at a time. Pure.

As in Drain (He et al., ICWS 2017), only messages with the same number of words can share a
template. Unlike in Drain, there is no similarity threshold, because a single word often
distinguishes two events ("VM Started", "VM Paused"). Instead, each message has an outline, in which
everything that looks like a value is blank: masks, words with digits, dotted names, quoted words,
and the word after `user` and the like. Messages with the same outline share a template. If outlines
differ in only one word, and `_MANY` different words have occurred in its place, the word is also
considered a value.

All lookups use keys, so the time per message does not grow with the number of templates.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from barnabas_pipeline.logs.token_tree import WILDCARD, TokenTree

_BLANK: Final = "<>"
"""Replaces a word that looks like a value in an outline. Unlike `WILDCARD`, it does not match any
word.
"""
_MANY: Final = 6
"""A word is variable once it has had this many different values."""
_WORDS: Final = 40
"""Only the first words of a message, up to this number, can become variable."""

_VALUES: Final = re.compile(
    r"<(?:ip|num|hex|id|mac|mail|path|time)>"
    r'|"[^"\s]*"'
    r"|(?<![\w$-])[A-Za-z_][\w$-]*(?:\.[\w$-]+){2,}"  # a package, or a host with its domain
    r"|\b\w*[0-9]\w*"
    r"|\b[a-f]{8}\b"
    r"|(?<!\S)\./\S+"
    r"|(?<!\S)\(\)(?!\S)"  # nothing where other messages have a value
    r"|(?<==)(?:null|nil|none|None|true|false)\b"
    r"|(?<=(?:name|user|host|file|path)=)[^\s,;\"]+"
)
_KEY: Final = re.compile(r"[A-Za-z_.]+[=:]")
_NAMING: Final = frozenset(("user", "for", "host", "by", "from"))
"""Words that are followed by a name."""

Outline = tuple[str, ...]


def outline(words: Sequence[str]) -> Outline:
    """Return the words of a masked message, with everything that looks like a value replaced by
    `_BLANK`.
    """
    if not words:
        return ()
    found = _VALUES.sub(_BLANK, " ".join(words)).split(" ")
    before = ""
    for at, word in enumerate(found):
        if _BLANK in word:
            key = _KEY.match(word)
            found[at] = (key[0] if key else "") + _BLANK
        elif before in _NAMING and word.isalpha() and (word == before or word not in _NAMING):
            found[at] = word = _BLANK
        before = word
    return tuple(found)


class Learner:
    """Assigns messages to groups; the caller numbers the groups in order of appearance."""

    def __init__(self) -> None:
        self._tree = TokenTree()
        self._outlines: dict[int, Outline] = {}
        self._alike: dict[tuple[int, Outline], set[int]] = {}
        """The groups whose outlines differ in only one word, by the place of this word and all
        other words.
        """

    def restore(self, group: int, began: Sequence[str], text: Sequence[str]) -> None:
        """Restore a group from the words of its first message and the words of its template."""
        own = zip(outline(began), text, strict=True)
        self._add(group, tuple(_of_stored(was, now) for was, now in own))

    def learn(self, words: Sequence[str], new: int) -> int:
        """Return the known group of a message, or `new` if there is none."""
        mine = outline(words)
        found = self._tree.find(mine)
        if found is not None:
            return found
        for at in _plain_places(mine) if len(mine) > 1 else ():
            alike = self._alike.get((at, _without(mine, at)), ())
            if len(alike) >= _MANY - 1:
                # Make the oldest group general. The others keep their word, because their lines may
                # be stored.
                first = min(alike)
                self._remove(first)
                self._add(first, (*mine[:at], WILDCARD, *mine[at + 1 :]))
                return first
        self._add(new, mine)
        return new

    def _add(self, group: int, mine: Outline) -> None:
        self._outlines[group] = mine
        self._tree.add(mine, group)
        for at in _plain_places(mine):
            self._alike.setdefault((at, _without(mine, at)), set()).add(group)

    def _remove(self, group: int) -> None:
        mine = self._outlines.pop(group)
        self._tree.remove(mine, group)
        for at in _plain_places(mine):
            self._alike[at, _without(mine, at)].discard(group)


def _plain_places(words: Outline) -> list[int]:
    return [at for at, word in enumerate(words[:_WORDS]) if _is_plain(word)]


def _is_plain(word: str) -> bool:
    return _BLANK not in word and word != WILDCARD


def _without(words: Outline, at: int) -> Outline:
    return words[:at] + words[at + 1 :]


def _of_stored(began: str, now: str) -> str:
    # Words that look like values were blank from the start, whether or not they have changed.
    return WILDCARD if now == WILDCARD and _is_plain(began) else began
