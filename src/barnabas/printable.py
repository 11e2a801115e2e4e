"""Text from outside, for a log line or a terminal: it stays on its line and controls nothing."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with control characters (line ends and the escape of a terminal's commands among
    them), invisible and undecodable ones as Python writes them: `\\n`, `\\x1b`, `\\u202e`."""
    if text.isprintable():
        return text  # almost every time
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
