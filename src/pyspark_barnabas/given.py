"""Parses options, and reports errors in the user's own spelling.

Option names are case-insensitive and values are text; error messages show both as the user wrote
them.

A parser is a function that takes the text of a value. For an invalid value, it raises `ValueError`
with a description of the valid form; the error message shows this description after "expected".
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from barnabas.errors import ConfigError

Value = TypeVar("Value")

# Options that Spark adds to the user's.
_OF_SPARK = frozenset(("checkpointlocation", "queryname"))


class GivenOptions:
    """The options of a single read or write."""

    def __init__(self, given: Mapping[str, str]) -> None:
        # Always convert the names to lower case, because Spark's own mapping is case-insensitive,
        # but a copy of it is not.
        self._given = {name.lower(): value for name, value in given.items()}

    def names(self) -> list[str]:
        return list(self._given)

    def get(self, name: str) -> str | None:
        return self._given.get(name.lower())

    def parse(self, name: str, parse: Callable[[str], Value], default: Value) -> Value:
        text = self.get(name)
        return default if text is None else parse_option(name, text, parse)

    def positive(self, name: str) -> int | None:
        return self.parse(name, positive, None)


def refuse_others(source: str, given: Iterable[str], known: Iterable[str], prefix: str) -> None:
    """Reject options (in lower case) that neither start with `prefix` nor are known to `source`.

    Raises `ConfigError`, which suggests the most similar known name.
    """
    exist = {name.lower(): name for name in known}
    for name in given:
        if name in exist or name.startswith(prefix) or name in _OF_SPARK:
            continue
        near = difflib.get_close_matches(name, exist, n=1)
        hint = f"; did you mean {exist[near[0]]}?" if near else ""
        raise ConfigError(f"format {source} has no option {name!r}{hint}")


def parse_option(name: str, text: str, parse: Callable[[str], Value]) -> Value:
    """Parse the text of an option. Raises `ConfigError`, which names the option."""
    try:
        return parse(text)
    except ValueError as error:
        raise ConfigError(f"option {name}={text!r}: expected {error}") from None


def positive(text: str) -> int | None:
    number = int(text) if re.fullmatch(r"\s*\d+\s*", text) else 0
    if number < 1:
        raise ValueError("a positive whole number")
    return number


def boolean(text: str) -> bool:
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise ValueError("true or false")
    return word == "true"


def instant_ms(text: str) -> int:
    if not re.fullmatch(r"\s*\d+\s*", text):
        raise ValueError("milliseconds since the epoch")
    return int(text)


def duration_ms(text: str) -> int:
    """Convert a Spark time string (`500ms`, `30s`, `15m`, `2h`, `1d`) to milliseconds; a bare
    number is in milliseconds."""
    match = re.fullmatch(r"\s*(\d+)\s*(us|ms|s|m|min|h|d)?\s*", text.lower())
    if not match:
        raise ValueError("a time such as 500ms, 30s, 15m or 2h")
    per_unit = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
    count, unit = int(match[1]), match[2] or "ms"
    return count // 1000 if unit == "us" else count * per_unit[unit]
