"""Makes untrusted text safe for a log line or a terminal: the text stays on one line and cannot
control the terminal.
"""

from __future__ import annotations

_CONTROL = ("Cc", "Zl", "Zp", "Cs")  # controls, line ends, undecodable characters
_TURNING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def printable(text: str) -> str:
    """Return the text with control characters (such as line ends and terminal escapes) and
    invisible or undecodable characters written as in Python: `\\n`, `\\x1b`, `\\u202e`.
    """
    if text.isprintable():
        return text  # almost every time
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def printable_within(text: str, most: int) -> str:
    """Return the beginning of the text, made printable and limited to this many characters."""
    return printable(text[:most])[:most]


def has_control_characters(text: str) -> bool:
    """Return whether a name contains characters that could end its line, change the text direction
    or control a terminal. Merely unusual characters, such as a non-breaking space, do not count.
    """
    if text.isprintable():
        return False
    import unicodedata  # almost never

    return any(unicodedata.category(one) in _CONTROL or one in _TURNING for one in text)
