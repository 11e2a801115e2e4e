"""Defines a configuration key (its name, type, default, bounds and description) and parses its
value.

Invariant: a value returned by `parse` is within the key's bounds. Text is parsed as in Kafka
(Java's number syntax, booleans in any case, lists split at commas and trimmed), so that a file
means the same as in Kafka, and is rejected if Kafka rejects it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import isfinite

from barnabas.errors import ConfigError
from barnabas.named_tuple import NamedTuple

ConfigValue = bool | int | float | str | list[str] | None

_DOUBLE = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
_BITS = {"short": 16, "int": 32, "long": 64}
_KIND = {
    "boolean": "true or false",
    "short": "a whole number",
    "int": "a whole number",
    "long": "a whole number",
    "double": "a number",
}


class ConfigKey(NamedTuple):
    """Represents a row of the tables in this package.

    `default` is a typed value, except that a list is its comma-separated text; None is Kafka's
    "null". `valid` uses the notation of Kafka's documentation: `[1,...]`, `[compact, delete]`, or
    nothing.
    """

    name: str
    type: str  # boolean, short, int, long, double, string, list, password, class, unknown
    default: bool | int | float | str | None
    valid: str
    doc: str
    inert: str = ""  # why it has no effect here; empty: it has an effect
    synonyms: tuple[str, ...] = ()  # broker keys that give a topic key's default

    @property
    def is_sensitive(self) -> bool:
        """Return whether the value must never be shown."""
        # As in Kafka, an unknown setting is treated as a secret, because it may be a plug-in's
        # password.
        return self.type in ("password", "unknown")

    @property
    def default_value(self) -> ConfigValue:
        """Return the default; a list is returned as a list."""
        if self.type == "list" and isinstance(self.default, str):
            return _split(self.default)
        return self.default

    def parse(self, text: str) -> ConfigValue:
        """Return the typed value of `text`. Raises ConfigError with the key, the value and the
        rule.
        """
        text = text.strip()
        value = self._convert(text)
        if self.valid and not self._is_valid(value):
            raise ConfigError(f"{self.name}: {text!r} is not one of {self._rule()}")
        return value

    def text(self, value: ConfigValue) -> str | None:
        """Return the value in the form that Kafka prints."""
        if value is None:
            return None
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, list):
            return ",".join(value)
        return _java_double(value) if isinstance(value, float) else str(value)

    def _convert(self, text: str) -> ConfigValue:
        if self.type == "boolean":
            lowered = text.lower()
            if lowered in ("true", "false"):
                return lowered == "true"
        elif self.type in _BITS:
            digits = text[1:] if text[:1] in ("+", "-") else text
            if digits.isascii() and digits.isdigit():
                return self._within_bits(int(text))
        elif self.type == "double":
            if re.fullmatch(_DOUBLE, text, re.ASCII) and isfinite(number := float(text)):
                return number
        elif self.type == "list":
            return _split(text)
        else:
            return text
        raise ConfigError(f"{self.name}: {text!r} is not {_KIND[self.type]} ({self.type})")

    def _within_bits(self, value: int) -> int:
        limit = 1 << _BITS[self.type] - 1
        if not -limit <= value < limit:
            raise ConfigError(
                f"{self.name}: {value} is too large; the largest {self.type} is {limit - 1}"
            )
        return value

    def _is_valid(self, value: ConfigValue) -> bool:
        rule, _, exception = self.valid.partition(" or ")
        bounds = rule.strip("[]").split(",")
        if "..." not in bounds:
            names = [name.strip() for name in bounds]
            return all(item in names for item in (value if isinstance(value, list) else [value]))
        assert isinstance(value, int | float), self.name
        if exception and value == float(exception):
            return True
        low, high = bounds[0], bounds[2] if len(bounds) == 3 else "inf"
        return float(low) <= value <= float(high)

    def _rule(self) -> str:
        return self.valid if "..." in self.valid else self.valid.strip("[]")


def table(
    rows: Iterable[tuple[str, str, bool | int | float | str | None, str, str]], inert: str = ""
) -> dict[str, ConfigKey]:
    """Build keys by name, from rows of (name, type, default, valid, description)."""
    return {row[0]: ConfigKey(*row, inert) for row in rows}


def unknown_key(name: str, keys: Mapping[str, ConfigKey], kind: str) -> ConfigError:
    """Return the error for an unknown name, with the most similar known name, if any."""
    import difflib  # needed only for an error, not for the broker's start

    near = difflib.get_close_matches(name, keys, n=1, cutoff=0.75)
    hint = f"; did you mean {near[0]}?" if near else ", and no config has a similar name"
    return ConfigError(f"{name} is not a {kind} config{hint}")


def _java_double(value: float) -> str:
    """Format a number as Java does: 0.5, but 1.0E7 and 1.7976931348623157E308."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    from decimal import Decimal  # needed for rare values, not for the broker's start

    digits, _, exponent = f"{Decimal(repr(value)).normalize():E}".partition("E")
    return f"{digits if '.' in digits else digits + '.0'}E{int(exponent)}"


def _split(text: str) -> list[str]:
    return [item.strip() for item in text.split(",")] if text else []
