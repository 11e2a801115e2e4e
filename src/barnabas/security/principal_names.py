"""Maps a certificate's subject to a user name with `ssl.principal.mapping.rules` (KIP-371).

    CN=alice,OU=Sales,O=Acme\\, Inc.,C=DE              a subject
    RULE:^CN=(.*?),OU=Sales.*$/$1@sales/L,DEFAULT     rules

Subjects are written in the same form as by Java's X500Principal.getName() (RFC 2253), with the most
specific part first. If RFC 2253 has no name for an attribute, the attribute's number is written,
followed by its DER-encoded value in hexadecimal. Rules and ACLs that were written for Kafka
therefore match.

The first rule whose pattern matches the whole subject is applied. DEFAULT returns the subject
unchanged, and `L` or `U` converts the result to lower or upper case.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from barnabas.errors import ConfigError
from barnabas.security.der import OID, SET, elements, oid_text, subject_element

_RULE = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)"
_SPLIT = re.compile(rf"\s*(?:{_RULE})\s*(?:,\s*|$)")
_NAMED_GROUP = re.compile(r"\(\?<(?![=!])")
_IN_REPLACEMENT = re.compile(r"\\(.)|\$(\d+)|\$\{(\w+)\}", re.DOTALL)

_UNIVERSAL_STRING, _BMP_STRING = 0x1C, 0x1E
_STRINGS = (0x0C, 0x13, 0x14, 0x16, 0x1B, _UNIVERSAL_STRING, _BMP_STRING)
"""The tags of UTF8String, PrintableString, T61String, IA5String, GeneralString and the two types
above."""

_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "2.5.4.9": "STREET",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
_ESCAPED = ',=+<>#;"\\'
_BLANKS = " \r"


class NoRuleMatches(ValueError):
    """Raised if no rule matches the name in a certificate, so that the client is not a user."""


class _Rule(NamedTuple):
    pattern: re.Pattern[str] | None  # None: DEFAULT
    replacement: str
    case: str

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        # As in Java, matches() must match the whole name, and then replaceAll() replaces every
        # match.
        if self.pattern.fullmatch(name) is None:
            return None
        mapped = self.pattern.sub(self._replacement, name)
        if self.case:
            mapped = mapped.lower() if self.case == "L" else mapped.upper()
        return mapped

    def _replacement(self, match: re.Match[str]) -> str:
        return _IN_REPLACEMENT.sub(lambda part: _expand(part, match), self.replacement)


class PrincipalNames:
    """Applies a listener's mapping rules."""

    __slots__ = ("_rules",)

    def __init__(self, rules: str) -> None:
        """Parse the rules. Raises ConfigError, whose message contains the faulty rule."""
        self._rules: Sequence[_Rule] = _parse(rules)

    def name_of(self, subject: str) -> str:
        """Return the user name for a certificate's subject. Raises NoRuleMatches."""
        for rule in self._rules:
            mapped = rule.apply(subject)
            if mapped is not None:
                return mapped
        raise NoRuleMatches(f"no rule of ssl.principal.mapping.rules matches {subject!r}")


def _parse(text: str) -> list[_Rule]:
    text = text.strip()
    rules = []
    position = 0
    while position < len(text):
        found = _SPLIT.match(text, position)
        if found is None:
            raise ConfigError(
                f"ssl.principal.mapping.rules: {text[position:]!r} does not start with DEFAULT "
                "or RULE:pattern/replacement/, optionally followed by L or U, and then a comma"
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
            f"ssl.principal.mapping.rules: {pattern!r} is not a regular expression: {error}"
        ) from None
    return _Rule(compiled, replacement, case)


def _expand(part: re.Match[str], match: re.Match[str]) -> str:
    """Expand one escape or reference: `\\x` becomes x, and `$1` becomes a group. Digits are read as
    long as they refer to an existing group.
    """
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


def subject_of(certificate: bytes) -> str:
    """Return the subject of a certificate in DER. Raises ValueError for any other bytes."""
    subject = elements(subject_element(certificate).content)
    return ",".join(reversed([_relative_name(each.content) for each in subject if each.tag == SET]))


def _relative_name(content: bytes) -> str:
    """Return one component of the name, which usually consists of a single attribute."""
    return "+".join(_attribute(each.content) for each in elements(content))


def _attribute(content: bytes) -> str:
    (kind, oid, _), (tag, value, whole) = elements(content)
    if kind != OID:
        raise ValueError("an attribute of the certificate's subject has no type")
    number = oid_text(oid)
    keyword = _KEYWORDS.get(number)
    # RFC 2253, 2.4: a number sign, then the encoded value.
    if keyword is None or tag not in _STRINGS:
        return f"{keyword or number}=#{whole.hex()}"
    return f"{keyword}={_escape(value.decode('utf-8', 'replace'))}"


def _escape(text: str) -> str:
    escaped = "".join(
        f"\\{each}" if each in _ESCAPED else "\\00" if each == "\0" else each for each in text
    )
    # Blanks are escaped only at the beginning and at the end, each with a backslash.
    inner = escaped.strip(_BLANKS)
    if not inner:
        return "".join(f"\\{each}" for each in escaped)
    before, _, after = escaped.partition(inner)
    return f"{_escape_each(before)}{inner}{_escape_each(after)}"


def _escape_each(blanks: str) -> str:
    return "".join(f"\\{each}" for each in blanks)
