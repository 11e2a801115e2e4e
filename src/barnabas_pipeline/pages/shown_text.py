"""Prepares texts from logs for pages, where they must not disturb anything around them. Pure."""

from __future__ import annotations

from typing import Final

LABEL_LENGTH: Final = 500
"""The most characters of a label. The rest is cut off and replaced with an ellipsis."""


def shown(text: str, most: int | None = LABEL_LENGTH) -> str:
    """Return a text, cut to so many characters, in which unprintable characters are visible.

    Line breaks and tabs stay. Others, such as a bell or a mark that reverses the direction of
    writing, become an escape such as `\\x07` or `\\u202e`.
    """
    cut = text if most is None or len(text) <= most else text[:most] + "…"
    if cut.isprintable():
        return cut
    return "".join(each if each.isprintable() or each in "\n\t" else _escape(each) for each in cut)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
