"""Parses command lines by the rules of joptsimple, the option parser of Kafka's tools. Pure.

`--flag value` and `--flag=value` are equivalent, one dash works as well as two, and a value may
look like an option. Names cannot be abbreviated, except in the few tools built on argparse4j.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from types import MappingProxyType
from typing import Final, NamedTuple

from barnabas.errors import BarnabasError


class BadCommandLine(BarnabasError):
    """Raised if Kafka's tool would reject the command line; the message says what to change."""


class Option(NamedTuple):
    """Describes an option of a tool. Its name has no dashes."""

    name: str
    value: str = ""  # the placeholder for its value; empty for a flag
    is_value_optional: bool = False
    takes_several: bool = False  # --flag a b c


def flags(names: str) -> tuple[Option, ...]:
    """Return options that take no value. Blanks separate the names."""
    return tuple(Option(name) for name in names.split())


def values(pairs: str) -> tuple[Option, ...]:
    """Return options that take a value, given in the form `topic=TOPIC partitions=N`."""
    return tuple(Option(name, value) for name, _, value in map(_parts, pairs.split()))


def _parts(pair: str) -> tuple[str, str, str]:
    return pair.partition("=")


class Given:
    """Holds the options on a command line."""

    def __init__(self, found: Sequence[tuple[str, str | None]], others: Sequence[str]) -> None:
        self._found = tuple(found)
        self.others = tuple(others)
        """The words that do not belong to an option."""

    def __contains__(self, name: str) -> bool:
        return any(name == each for each, _ in self._found)

    def __iter__(self) -> Iterator[str]:
        """Yield the given options, without duplicates."""
        return iter(dict.fromkeys(name for name, _ in self._found))

    def with_value(self, name: str, value: str) -> Given:
        """Return a copy with one more option."""
        return Given([*self._found, (name, value)], self.others)

    def texts(self, name: str) -> list[str]:
        """Return all values of a repeatable option."""
        return [value for each, value in self._found if each == name and value is not None]

    def in_order(self, *names: str) -> list[str | None]:
        """Return the values of these options in command-line order. None stands for a flag."""
        return [value for each, value in self._found if each in names]

    def text(self, name: str) -> str | None:
        """Return an option's value, or None if it is missing or has no value. Raises BadCommandLine
        if it is repeated.
        """
        # joptsimple rejects a second value with MultipleArgumentsForOptionException.
        found = self.texts(name)
        if len(found) > 1:
            raise BadCommandLine(f"--{name} is given {len(found)} times: give it only once")
        return found[0] if found else None

    def number(self, name: str, least: int = -(2**31), most: int = 2**31 - 1) -> int | None:
        """Return an option's value as an integer. Raises BadCommandLine."""
        text = self.text(name)
        if text is None:
            return None
        try:
            number = int(text)
        except ValueError:
            raise BadCommandLine(f"--{name} {text}: not a whole number") from None
        if not least <= number <= most:
            raise BadCommandLine(f"--{name} {text}: not from {least} to {most}")
        return number

    def need(self, *names: str) -> None:
        """Raise BadCommandLine if any of these options is missing."""
        for name in names:
            if name not in self:
                raise BadCommandLine(f'Missing required argument "[{name}]": add --{name}')

    def required_text(self, name: str) -> str:
        """Return the value of a required option. Raises BadCommandLine."""
        self.need(name)
        return self.text(name) or ""

    def one_of(self, *names: str, complaint: str = "") -> str:
        """Return the only one of these options that is given. Raises BadCommandLine, with Kafka's
        message, if none or several are given.
        """
        found = [name for name in names if name in self]
        if len(found) != 1:
            raise BadCommandLine(complaint or f"give exactly one of {_alternatives(names)}")
        return found[0]

    def only_with(self, name: str, *others: str) -> None:
        """Raise BadCommandLine if `name` is given without any of the others."""
        if name in self and not any(other in self for other in others):
            raise BadCommandLine(
                f"--{name} can be used only with {_alternatives(others)}: leave it out"
            )

    def not_with(self, name: str, *others: str) -> None:
        """Raise BadCommandLine if `name` is given together with one of the others."""
        for other in others:
            if name in self and other in self:
                raise BadCommandLine(
                    f'Option "[{name}]" can\'t be used with option "[{other}]": leave out one'
                )


_NO_NAMES: Final[Mapping[str, str]] = MappingProxyType({})


def parse(
    words: Sequence[str],
    options: Iterable[Option],
    abbreviates: bool = False,
    older: Mapping[str, str] = _NO_NAMES,
) -> Given:
    """Return the options in these words. Raises BadCommandLine, which suggests the nearest name.
    `older` maps deprecated names to current ones, which take precedence if both are given.
    """
    known = {option.name: option for option in options}
    # A deprecated name accepts the same values as the new one, which replaces it after parsing.
    known |= {old: known[new]._replace(name=old) for old, new in older.items()}
    found: list[tuple[str, str | None]] = []
    others: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        # Everything after a bare -- is an operand, as in POSIX.
        if word == "--":
            others += left
            break
        # As in joptsimple, operands may appear between options.
        if not _looks_like_an_option(word):
            others.append(word)
            continue
        option, value = _option(word, known, abbreviates)
        # With nargs="+" (for example, --producer-props), argparse4j consumes all words up to the
        # next option.
        if option.takes_several:
            found += [(option.name, text) for text in _several(option, value, left)]
        elif option.value:
            found.append((option.name, _value(option, value, left)))
        elif value is not None:
            raise BadCommandLine(f"{word}: --{option.name} takes no value")
        else:
            found.append((option.name, None))
    return Given(_rename(found, older), others)


def _rename(
    found: Sequence[tuple[str, str | None]], older: Mapping[str, str]
) -> list[tuple[str, str | None]]:
    """Replace deprecated names. Kafka ignores a deprecated name if its replacement is also
    given.
    """
    names = {name for name, _ in found}
    return [(older.get(name, name), value) for name, value in found if older.get(name) not in names]


def _looks_like_an_option(word: str) -> bool:
    return word.startswith("-") and word not in ("-", "--")


def _option(word: str, known: dict[str, Option], abbreviates: bool) -> tuple[Option, str | None]:
    """Return the option that a word names, and any value after its `=`."""
    # One dash works as well as two, because joptsimple accepts `-topic` as the long option.
    given, equals, value = word.lstrip("-").partition("=")
    name = given
    # Kafka disables abbreviations in joptsimple (`OptionParser(false)`), but argparse4j allows
    # them.
    if abbreviates and given not in known:
        longer = [each for each in known if each.startswith(given)]
        name = longer[0] if len(longer) == 1 else given
    if name not in known:
        raise BadCommandLine(f"{given} is not a recognized option{_nearest(given, known)}")
    return known[name], value if equals else None


def _nearest(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, list(known), 1, 0.5)
    return f"; did you mean --{near[0]}?" if near else "; --help lists the options"


def _value(option: Option, value: str | None, left: list[str]) -> str | None:
    if value is not None:
        return value
    if option.is_value_optional:
        # An optional value must not look like an option.
        return left.pop(0) if left and not _looks_like_an_option(left[0]) else None
    if not left:
        raise BadCommandLine(f"Option {option.name} requires an argument: --{option.name} VALUE")
    # A required value is always the next word: `--by-duration -PT1H`, `--time -1`.
    return left.pop(0)


def _several(option: Option, value: str | None, left: list[str]) -> list[str]:
    if value is not None:
        return [value]
    found = []
    while left and not _looks_like_an_option(left[0]):
        found.append(left.pop(0))
    if not found:
        raise BadCommandLine(f"Option {option.name} requires an argument: --{option.name} VALUE")
    return found


def _alternatives(names: Sequence[str]) -> str:
    dashed = [f"--{name}" for name in names]
    return dashed[0] if len(dashed) == 1 else f"{', '.join(dashed[:-1])} or {dashed[-1]}"
