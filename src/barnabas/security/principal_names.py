"""`ssl.principal.mapping.rules`: from a certificate's name to a user's (KIP-371).

    RULE:^CN=(.*?),OU=Sales.*$/$1@sales/L,DEFAULT

The first rule whose pattern matches the whole name decides; DEFAULT takes the name as it is. `L`
and `U` change the result to lower or upper case.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from barnabas.errors import ConfigError

_RULE = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)"
_SPLIT = re.compile(rf"\s*(?:{_RULE})\s*(?:,\s*|$)")
_NAMED_GROUP = re.compile(r"\(\?<(?![=!])")
_IN_REPLACEMENT = re.compile(r"\\(.)|\$(\d+)|\$\{(\w+)\}", re.DOTALL)


class NoRuleMatches(ValueError):
    """A certificate whose name no rule maps: its owner is not a user here."""


class _Rule(NamedTuple):
    pattern: re.Pattern[str] | None  # None: DEFAULT
    replacement: str
    case: str

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        mapped = self.pattern.sub(self._replacement, name)
        if self.case:
            mapped = mapped.lower() if self.case == "L" else mapped.upper()
        return mapped

    def _replacement(self, match: re.Match[str]) -> str:
        return _IN_REPLACEMENT.sub(lambda part: _expanded(part, match), self.replacement)


class PrincipalNames:
    """The rules of one listener."""

    __slots__ = ("_rules",)

    def __init__(self, rules: str) -> None:
        """Raises ConfigError with the rule that is wrong."""
        self._rules: Sequence[_Rule] = _parsed(rules)

    def name_of(self, subject: str) -> str:
        """The user's name for a certificate's subject. Raises NoRuleMatches."""
        for rule in self._rules:
            mapped = rule.apply(subject)
            if mapped is not None:
                return mapped
        raise NoRuleMatches(f"no rule of ssl.principal.mapping.rules matches {subject!r}")


def _parsed(text: str) -> list[_Rule]:
    text = text.strip()
    rules = []
    position = 0
    while position < len(text):
        found = _SPLIT.match(text, position)
        if found is None:
            raise ConfigError(
                f"ssl.principal.mapping.rules: {text[position:]!r} does not begin with DEFAULT or "
                "RULE:pattern/replacement/, with L or U or nothing behind it, and then a comma"
            )
        position = found.end()
        default, pattern, replacement, case = found.groups()
        rules.append(_Rule(None, "", "") if default else _rule(pattern, replacement, case))
    return rules or [_Rule(None, "", "")]


def _rule(pattern: str, replacement: str, case: str) -> _Rule:
    try:
        compiled = re.compile(_NAMED_GROUP.sub("(?P<", pattern))
    except re.error as error:
        raise ConfigError(
            f"ssl.principal.mapping.rules: {pattern!r} is no regular expression: {error}"
        ) from None
    return _Rule(compiled, replacement, case)


def _expanded(part: re.Match[str], match: re.Match[str]) -> str:
    """`\\x` is x, `$1` a group; a number without a group stays as it is, but for digits behind it
    that make one."""
    literal, number, name = part.groups()
    if literal is not None:
        return literal
    if name is not None:
        return (match.group(name) or "") if name in match.re.groupindex else part.group()
    count = match.re.groups
    for length in range(len(number), 0, -1):
        if int(number[:length]) <= count:
            return (match.group(int(number[:length])) or "") + number[length:]
    return part.group()
