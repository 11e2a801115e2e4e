r"""Replaces secrets in lines before they are sent, by rules that are regular expressions.

    password\=\S+=password=***      the same as an argument: the first `=` that has no backslash
                                    before it separates the pattern from the replacement

    [[redact]]                      in a file of rules (TOML)
    pattern = 'password=\S+'
    replacement = 'password=***'

The expressions are those of RE2, whose time for a line depends only on the line's length, whatever
the pattern. Python's own expressions may take years for a line of thirty bytes.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

from barnabas.errors import ConfigError
from barnabas.extras import install_line

Redact = Callable[[bytes], bytes]

MOST_MATCHES: Final = 10_000
"""If a rule has more matches than this in a line, the whole line is replaced, because each match
takes microseconds."""
TOO_MANY: Final = b"[redacted: too many matches]"
_MOST_REPLACEMENT_BYTES: Final = 1_024
_MOST_RULES: Final = 1_000
_SEPARATOR: Final = re.compile(r"((?:[^\\=]|\\.)*)=(.*)", re.DOTALL)
_TABLE: Final = "redact"
_KEYS: Final = {"pattern", "replacement"}


class Rule(NamedTuple):
    """Holds a pattern and its replacement, in which `\\1` is the first group."""

    pattern: str
    replacement: str

    @classmethod
    def parse(cls, text: str) -> Rule:
        """Parse `REGEX=REPLACEMENT`. Raises `ConfigError`."""
        found = _SEPARATOR.fullmatch(text)
        if found is None or not found[1]:
            raise ConfigError(f"{text!r} is not REGEX=REPLACEMENT")
        return cls(found[1], found[2])


def read_rules(path: Path) -> list[Rule]:
    """Read a file of rules. Raises `ConfigError`."""
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:  # invalid TOML or UTF-8
        raise ConfigError(f"{path} is not a TOML file: {error}") from None
    tables = content.pop(_TABLE, None)
    if content or not isinstance(tables, list) or not all(map(_is_rule, tables)):
        raise ConfigError(
            f"{path} is not a file of redaction rules: it must consist of [[{_TABLE}]] tables, "
            "each with the strings pattern and replacement"
        )
    return [Rule(**table) for table in tables]


def _is_rule(table: Any) -> bool:
    return (
        isinstance(table, dict)
        and table.keys() == _KEYS
        and all(isinstance(value, str) for value in table.values())
    )


class Redaction:
    """Applies rules in order. An instance is called with a line."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        """Raises `ConfigError` if a rule is invalid or RE2 is not installed."""
        rules = list(rules)
        if len(rules) > _MOST_RULES:
            raise ConfigError(f"{len(rules):,} rules are more than {_MOST_RULES:,}")
        engine = _engine()
        self._rules = [(_compiled(engine, rule), rule.replacement.encode()) for rule in rules]
        # Most lines match no rule, which a single search can show.
        any_of = "|".join(f"(?:{rule.pattern})" for rule in rules)
        self._is_worth_a_try = _compiled(engine, Rule(any_of, "")).search

    def __call__(self, text: bytes) -> bytes:
        if self._is_worth_a_try(text) is None:
            return text
        for pattern, replacement in self._rules:
            text, count = pattern.subn(replacement, text, MOST_MATCHES + 1)
            if count > MOST_MATCHES:
                return TOO_MANY
        return text


def _engine() -> Any:
    try:
        engine = import_module("re2")
    except ImportError:
        engine = None
    # pyre2 shares the name, but has a different interface.
    if engine is None or not hasattr(engine, "Options"):
        raise ConfigError(
            "redaction needs RE2, which is not installed: " + install_line("collector")
        )
    return engine


def _compiled(engine: Any, rule: Rule) -> Any:
    options = engine.Options()
    options.log_errors = False
    try:
        compiled = engine.compile(rule.pattern.encode(), options)
        # Group references are checked only if a text matches, so add an empty alternative.
        engine.compile(b"|" + rule.pattern.encode(), options).sub(rule.replacement.encode(), b"")
    except (engine.error, re.error, IndexError) as error:
        why = error.args[0] if error.args else error
        shown = why.decode("utf-8", "replace") if isinstance(why, bytes) else str(why)
        raise ConfigError(f"cannot redact by {rule.pattern!r}: {shown}") from None
    if compiled.search(b"") is not None:
        raise ConfigError(f"cannot redact by {rule.pattern!r}: it matches the empty string")
    if len(rule.replacement.encode()) > _MOST_REPLACEMENT_BYTES:
        raise ConfigError(
            f"cannot redact by {rule.pattern!r}: the replacement has more than"
            f" {_MOST_REPLACEMENT_BYTES:,} bytes"
        )
    return compiled
