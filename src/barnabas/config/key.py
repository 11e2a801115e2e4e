"""Defines a configuration key (name, type, default, bounds and description), and parses values.

Invariant: a value returned by `parse` is within the bounds of its key. Text is parsed in the same
way as in Kafka (number syntax as in Java, booleans in upper or lower case, and lists split at
commas with blanks removed), so a file has the same meaning as in Kafka, and is rejected if Kafka
would reject it.
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

    `default` has the type of the value, except that the default of a list is comma-separated text.
    None is "null" in Kafka. `valid` is in the notation of Kafka's documentation: `[1,...]`,
    `[compact, delete]`, or empty.
    """

    name: str
    type: str  # boolean, short, int, long, double, string, list, password, class, unknown
    default: bool | int | float | str | None
    valid: str
    doc: str
    inert: str = ""  # why it has no effect here, or empty if it does
    synonyms: tuple[str, ...] = ()  # broker keys that give this topic key its default

    @property
    def is_sensitive(self) -> bool:
        """Return whether the value must never be shown."""
        # As in Kafka, an unknown setting is treated as a secret, because it may be the password of
        # a plug-in.
        return self.type in ("password", "unknown")

    @property
    def default_value(self) -> ConfigValue:
        """Return the default. If it is a list, return it as a list."""
        if self.type == "list" and isinstance(self.default, str):
            return _split(self.default)
        return self.default

    def parse(self, text: str) -> ConfigValue:
        """Parse `text` into a typed value.

        Raises ConfigError, which contains the key, the value and the rule.
        """
        text = text.strip()
        value = self._convert(text)
        if self.valid and not self._is_valid(value):
            raise ConfigError(f"{self.name}: {text!r} is not one of {self._rule()}")
        return value

    def text(self, value: ConfigValue) -> str | None:
        """Return the value as text, in the same form as Kafka prints it."""
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
    """Build the keys from rows of (name, type, default, valid, description).

    The result maps names to keys.
    """
    return {row[0]: ConfigKey(*row, inert) for row in rows}


def unknown_key(name: str, keys: Mapping[str, ConfigKey], kind: str) -> ConfigError:
    """Return the error for an unknown name. It suggests the most similar name, if there is one."""
    import difflib  # only errors need it, so do not load it at startup

    near = difflib.get_close_matches(name, keys, n=1, cutoff=0.75)
    hint = f"; did you mean {near[0]}?" if near else ", and no config has a similar name"
    return ConfigError(f"{name} is not a {kind} config{hint}")


def _java_double(value: float) -> str:
    """Format a number as Java does: 0.5, but 1.0E7 and 1.7976931348623157E308."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    from decimal import Decimal  # few values need it, so do not load it at startup

    digits, _, exponent = f"{Decimal(repr(value)).normalize():E}".partition("E")
    return f"{digits if '.' in digits else digits + '.0'}E{int(exponent)}"


def _split(text: str) -> list[str]:
    return [item.strip() for item in text.split(",")] if text else []
