"""Parses the JSON form that describes an action. Pure.

An invalid field raises a `WebProblem` with status 400 that names the field.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from barnabas.console.problem import WebProblem
from barnabas.printable import printable_within

MOST_CHARACTERS: Final = 256
_MOST_ITEMS: Final = 500
_SHOWN: Final = 40


class Form:
    """Gives access to the fields of a JSON object. `end` rejects fields that were not read."""

    def __init__(self, fields: Mapping[str, Any], where: str = "") -> None:
        """`where` is the path of the field that contains the object, with a trailing dot. It is
        used in error messages.
        """
        self._fields = dict(fields)
        self._where = where

    def text(self, name: str, default: str | None = None, most: int = MOST_CHARACTERS) -> str:
        """Return a text of limited length."""
        value = self._take(name, default)
        where = self._where + name
        if not isinstance(value, str):
            raise WebProblem(400, f"{where}: give a text, not {_shown(value)}")
        return _text(value, where, most)

    def whole(self, name: str, default: int | None = None, *, least: int, most: int) -> int:
        """Return a whole number between these bounds."""
        return _whole(self._take(name, default), self._where + name, least, most)

    def optional_whole(self, name: str, *, least: int, most: int) -> int | None:
        """Return a whole number between these bounds, or None if the field is null or missing."""
        value = self._fields.pop(name, None)
        return None if value is None else _whole(value, self._where + name, least, most)

    def choice(self, name: str, values: Collection[str]) -> str:
        """Return one of these values."""
        value = self.text(name)
        if value not in values:
            raise WebProblem(
                400,
                f"{self._where}{name}: give one of {', '.join(values)}, not {_shown(value)}",
            )
        return value

    def pairs(self, name: str) -> dict[str, str]:
        """Return an object whose values are strings, or an empty one if the field is missing."""
        value = self._fields.pop(name, {})
        where = self._where + name
        if not isinstance(value, dict):
            raise WebProblem(400, f"{where}: give an object of names and texts")
        _limit(value, where)
        for key, each in value.items():
            if not key.strip() or not isinstance(each, str):
                raise WebProblem(
                    400, f"{where}: {_shown(key)} needs a name and a text as its value"
                )
            _text(key, where, MOST_CHARACTERS)
            _text(each, f"{where}.{printable_within(key, _SHOWN)}", 100 * MOST_CHARACTERS)
        return dict(value)

    def texts(self, name: str) -> list[str]:
        """Return a list of distinct strings, or an empty list if the field is missing."""
        where = self._where + name
        found = []
        for each in self._items(name):
            if not isinstance(each, str) or not each.strip():
                raise WebProblem(400, f"{where}: give a list of texts, without {_shown(each)}")
            found.append(_text(each, where, 4 * MOST_CHARACTERS))
        return list(dict.fromkeys(found))

    def wholes(self, name: str, *, least: int, most: int) -> list[int]:
        """Return a list of whole numbers, or an empty list if the field is missing."""
        return [_whole(each, self._where + name, least, most) for each in self._items(name)]

    def form(self, name: str) -> Form:
        """Return a nested object as a separate form."""
        value = self._take(name, None)
        if not isinstance(value, dict):
            raise WebProblem(400, f"{self._where}{name}: give an object, not {_shown(value)}")
        return Form(value, f"{self._where}{name}.")

    def forms(self, name: str) -> Iterator[Form]:
        """Yield each object in a list. If the field is missing, yield nothing."""
        for number, each in enumerate(self._items(name)):
            where = f"{self._where}{name}[{number}]"
            if not isinstance(each, dict):
                raise WebProblem(400, f"{where}: give an object, not {_shown(each)}")
            yield Form(each, f"{where}.")

    def end(self) -> None:
        """Reject the form if it has fields that were not read."""
        if self._fields:
            name = printable_within(self._where + next(iter(self._fields)), _SHOWN)
            raise WebProblem(400, f"{name}: there is no such field here")

    def _take(self, name: str, default: Any) -> Any:
        value = self._fields.pop(name, default)
        if value is None:
            raise WebProblem(400, f"{self._where}{name}: it is missing")
        return value

    def _items(self, name: str) -> list[Any]:
        value = self._fields.pop(name, [])
        if not isinstance(value, list):
            raise WebProblem(400, f"{self._where}{name}: give a list, not {_shown(value)}")
        _limit(value, self._where + name)
        return value


def parse_form(body: bytes) -> Form:
    """Parse the form in the body of a request. Raises a `WebProblem`."""
    try:
        fields = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise WebProblem(400, f"the body is not JSON in UTF-8: {str(error)[:100]}") from None
    if not isinstance(fields, dict):
        raise WebProblem(400, f"the body is not an object of JSON, but {_shown(fields)}")
    return Form(fields)


def _text(value: str, where: str, most: int) -> str:
    if len(value) > most:
        raise WebProblem(400, f"{where}: at most {most} characters, not {len(value)}")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise WebProblem(400, f"{where}: half a character cannot be sent to a broker") from None
    return value


def _whole(value: Any, where: str, least: int, most: int) -> int:
    # JSON's true is also an int in Python.
    if type(value) is not int or not least <= value <= most:
        raise WebProblem(
            400, f"{where}: give a whole number from {least} to {most}, not {_shown(value)}"
        )
    return value


def _limit(items: Collection[Any], where: str) -> None:
    if len(items) > _MOST_ITEMS:
        raise WebProblem(400, f"{where}: at most {_MOST_ITEMS} items, not {len(items)}")


def _shown(value: Any) -> str:
    return printable_within(json.dumps(value, ensure_ascii=False), _SHOWN)
