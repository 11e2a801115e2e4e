r"""Reads Java properties files in the same way as `java.util.Properties`:

    # comment          ! comment
    key=value          key:value          key value
    long = first \
           second      a line that ends in an odd number of backslashes continues
    path=C\:\\data     \t \n \r \f \uXXXX; a backslash before any other character is dropped

If a key is set several times, the last value is used. Java reads properties files as Latin-1.
Barnabas reads a file as UTF-8 if its content is valid UTF-8, because that is what editors write
today.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from barnabas.errors import ConfigError

# Both patterns are compiled when they are first needed, because a broker may be started without a
# file.
_ESCAPE = r"(?s)\\(u[0-9a-fA-F]{4}|.)"
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
# A key ends at the first `=`, `:` or blank that is not escaped. Blanks around the separator are
# ignored.
_KEY = r"(?s)((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*"


def load_properties(path: str | Path) -> dict[str, str]:
    """Return the settings in a properties file. Raises ConfigError if it cannot be read."""
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}; give the path of a file") from error
    if b"\0" in raw:
        raise ConfigError(f"{path}: this is not a text file of settings, but a binary file")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    return parse_properties(text)


def parse_properties(text: str) -> dict[str, str]:
    """Return the settings in the text of a properties file."""
    settings = {}
    for line in _logical_lines(text):
        match = re.match(_KEY, line)
        assert match is not None  # every part of the pattern can be empty
        settings[_unescape(match[1])] = _unescape(line[match.end() :])
    return settings


def _logical_lines(text: str) -> Iterator[str]:
    pending = ""
    for natural in re.split(r"\r\n|\r|\n", text):
        line = natural.lstrip(" \t\f")
        # As in Java, these characters do not start a comment within a continued line.
        if not pending and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            pending += line[:-1]
            continue
        yield pending + line
        pending = ""
    if pending:
        yield pending


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    return re.sub(_ESCAPE, _character, text)


def _character(match: re.Match[str]) -> str:
    body = match[1]
    return chr(int(body[1:], 16)) if len(body) == 5 else _CONTROL.get(body, body)
