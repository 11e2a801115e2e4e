"""Parses credentials in Java's JAAS format, which Kafka uses in its properties.

    org.apache.kafka.common.security.plain.PlainLoginModule required
        username="broker" password="b-secret"
        user_alice="a-secret";

A setting contains exactly one module. Errors name the setting and describe the fault, but never
contain a value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from barnabas.counted import counted
from barnabas.errors import ConfigError

_PACKAGE: Final = "org.apache.kafka.common.security"
_MODULES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        f"{_PACKAGE}.plain.PlainLoginModule": ("PLAIN",),
        f"{_PACKAGE}.scram.ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
        f"{_PACKAGE}.oauthbearer.OAuthBearerLoginModule": ("OAUTHBEARER",),
    }
)
_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_MOST_CHARACTERS: Final = 1024 * 1024
_TOKEN: Final = re.compile(
    r"""\s+ | //[^\n]* | \#[^\n]* | /\*.*?\*/        # ignored
      | (?P<quoted> "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' )
      | (?P<word> [\w.$-]+ )
      | (?P<sign> [=;{}] )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPES: Final = MappingProxyType({"n": "\n", "t": "\t", "r": "\r", "f": "\f", "b": "\b"})


class LoginModule(NamedTuple):
    """The name and the options of a module. The options may contain secrets."""

    name: str
    options: Mapping[str, str]

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The SASL mechanisms for which the module can be used."""
        return _MODULES[self.name]

    @property
    def users(self) -> dict[str, str]:
        """Return the passwords in the `user_<name>` options, by user name."""
        prefix = "user_"
        return {
            name.removeprefix(prefix): value
            for name, value in self.options.items()
            if name.startswith(prefix)
        }

    @property
    def extensions(self) -> dict[str, str]:
        """Return the SASL extensions from the `extension_<name>` options."""
        prefix = "extension_"
        return {
            name.removeprefix(prefix): value
            for name, value in self.options.items()
            if name.startswith(prefix)
        }

    def __repr__(self) -> str:
        return f"LoginModule({self.name}, {counted(len(self.options), 'option')}, hidden)"


def parse_jaas(setting: str, text: str) -> LoginModule:
    """Parse the module in a `sasl.jaas.config`.

    `setting` is the full name of the setting, for errors.

    Raises ConfigError if the syntax is invalid, the module is unknown, or there are several
    modules.
    """
    if len(text) > _MOST_CHARACTERS:
        raise ConfigError(f"{setting}: longer than {_MOST_CHARACTERS} characters")
    tokens = _tokens(setting, text)
    if len(tokens) < 2:
        raise _malformed(setting, "it has no login module")
    name, flag = tokens[0][1], tokens[1][1]
    # Java would load any class that has this name. Barnabas does not load any classes.
    if name not in _MODULES:
        raise ConfigError(
            f"{setting}: login module {_named(name)} is not supported; use one of "
            f"{', '.join(_MODULES)}"
        )
    if flag.lower() not in _FLAGS:
        raise _malformed(setting, f"the word after {name} must be one of {', '.join(_FLAGS)}")
    options, at = _options(setting, tokens, 2)
    # As in Kafka, only one module is allowed. If there were several, a rule for choosing one would
    # be needed.
    if at != len(tokens):
        raise _malformed(
            setting, "there is text after the first semicolon; only one module is allowed"
        )
    return LoginModule(name, MappingProxyType(options))


def parse_section(setting: str, text: str, section: str) -> list[LoginModule]:
    """Parse a file of Java's format, and return the modules in the named section.

    Their names are not checked. Raises ConfigError if the syntax is invalid, or if the section is
    missing.
    """
    if len(text) > _MOST_CHARACTERS:
        raise ConfigError(f"{setting}: longer than {_MOST_CHARACTERS} characters")
    tokens = _tokens(setting, text)
    found: dict[str, list[LoginModule]] = {}
    at = 0
    while at < len(tokens):
        name = tokens[at][1]
        if tokens[at][0] == "sign" or tokens[at + 1 : at + 2] != [("sign", "{")]:
            raise _malformed_file(setting)
        at += 2
        modules = found.setdefault(name, [])
        while at < len(tokens) and tokens[at] != ("sign", "}"):
            if len(tokens) < at + 2 or "sign" in (tokens[at][0], tokens[at + 1][0]):
                raise _malformed_file(setting)
            options, end = _options(setting, tokens, at + 2)
            modules.append(LoginModule(tokens[at][1], MappingProxyType(options)))
            at = end
        if tokens[at : at + 2] != [("sign", "}"), ("sign", ";")]:
            raise _malformed_file(setting)
        at += 2
    if section not in found:
        raise ConfigError(f"{setting}: the file has no section {section}")
    return found[section]


def check_mechanism(setting: str, module: LoginModule, mechanism: str) -> None:
    """Raise ConfigError if the module is meant for another mechanism."""
    if mechanism not in module.mechanisms:
        raise ConfigError(
            f"{setting}: {module.name} is for {' and '.join(module.mechanisms)}, but the "
            f"mechanism is {mechanism}"
        )


def _options(setting: str, tokens: list[tuple[str, str]], at: int) -> tuple[dict[str, str], int]:
    """Return the options from this token to the semicolon, and the position after the semicolon."""
    options: dict[str, str] = {}
    while at < len(tokens):
        kind, name = tokens[at]
        if (kind, name) == ("sign", ";"):
            return options, at + 1
        if kind == "sign":
            raise _malformed(setting, "an option has no name")
        rest = tokens[at + 1 : at + 3]
        if len(rest) < 2 or rest[0] != ("sign", "=") or rest[1][0] == "sign":
            raise _malformed(setting, f"option {len(options) + 1} has no value")
        if name in options:
            raise _malformed(setting, f"option {len(options) + 1} repeats a name")
        options[name] = rest[1][1]
        at += 3
    raise _malformed(setting, "the semicolon at its end is missing")


def _tokens(setting: str, text: str) -> list[tuple[str, str]]:
    tokens, at = [], 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise _malformed(setting, f"unexpected character at position {at + 1}; quote values")
        at = found.end()
        kind = found.lastgroup
        if kind is not None:
            word = found.group()
            tokens.append((kind, _unquote(word[1:-1]) if kind == "quoted" else word))
    return tokens


def _unquote(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), text, flags=re.DOTALL)


def _named(name: str) -> str:
    """Return the name of a module for an error message. Text that is not a module name is not
    returned, because it may be a secret.
    """
    return name if re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", name) else "of that name"


def _malformed_file(setting: str) -> ConfigError:
    return ConfigError(
        f"{setting}: the file is malformed; the format of a section is "
        'NAME { MODULE required name="value" ... ; }; (including both semicolons)'
    )


def _malformed(setting: str, reason: str) -> ConfigError:
    return ConfigError(
        f'{setting}: {reason}; the format is MODULE required name="value" ... ; '
        "(including the semicolon)"
    )
