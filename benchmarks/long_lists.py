"""Requests with as many entries as are accepted, made from the messages' own fields: for each list
in a request one that makes this list long, and has one entry in each of the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from barnabas.protocol.api import APIS, Api
from barnabas.protocol.message import Field, Message
from barnabas.protocol.wire import RECORDS, STRING, UUID, Array, Primitive
from benchmarks.light_client import frame_of

_CLOSES = ("SaslHandshake", "SaslAuthenticate")  # a connection without SASL
_MOST_BYTES = 4 * 1024 * 1024

Path = tuple[str, ...]


def long_requests(entries: int, only: str = "") -> Iterator[tuple[str, bytes]]:
    """Each list of each API: what it is, and the frame of a request with that many entries in it,
    or as many as fit. `only`: how the APIs' names begin."""
    for api in APIS.values():
        if api.name not in _CLOSES and api.name.startswith(only):
            for path in _lists(api.request, api.max_version):
                what = f"{api.name} {'.'.join(path)}"
                yield what, _frame(api, path, entries, 1)
                if _entries_in_one(api, path) > 1:
                    yield f"{what}, each empty", _frame(api, path, entries, 0)


def _lists(cls: type[Message], version: int, above: Path = ()) -> Iterator[Path]:
    for made in _fields(cls, version):
        if isinstance(made.type, Array):
            path = (*above, made.name)
            yield path
            element = made.type.element
            if not isinstance(element, Primitive):
                yield from _lists(element, version, path)


def _fields(cls: type[Message], version: int) -> list[Field]:
    return [made for made in cls.fields if version in made.versions and made.tag is None]


def _frame(api: Api, path: Path, entries: int, others: int) -> bytes:
    """`others`: the entries in each other list."""
    entries = min(entries, api.max_entries) - 3 * others  # those above the long list count as well
    entries //= _entries_in_one(api, path) if others else 1
    frame = _encoded(api, path, max(1, entries), others)
    if len(frame) > _MOST_BYTES:
        frame = _encoded(api, path, entries * _MOST_BYTES // len(frame) // 2, others)
    return frame


def _entries_in_one(api: Api, path: Path) -> int:
    cls: Any = api.request
    for name in path:
        cls = next(made for made in cls.fields if made.name == name).type.element
    if isinstance(cls, Primitive):
        return 1
    return 1 + sum(1 for _ in _lists(cls, api.max_version))


def _encoded(api: Api, path: Path, entries: int, others: int) -> bytes:
    lengths = {path[:depth]: 1 for depth in range(1, len(path))} | {path: entries}
    request = _Maker(api.max_version, lengths, others).message(api.request, (), 0)
    return frame_of(api, api.max_version, request)


class _Maker:
    """Makes messages of one version with lists of these lengths, by path, or else `others`."""

    def __init__(self, version: int, lengths: Mapping[Path, int], others: int) -> None:
        self._version = version
        self._lengths = lengths
        self._others = others

    def message(self, cls: type[Message], above: Path, number: int) -> Message:
        message: Any = cls()
        fields = _fields(cls, self._version)
        has_name = any(made.type is STRING for made in fields)
        for made in fields:
            here = (*above, made.name)
            if isinstance(made.type, Array):
                setattr(message, made.name, self._entries(made.type.element, here))
            elif made.name == "acks":
                message.acks = -1  # else there is no answer
            elif made.type is STRING or (made.type is UUID and not has_name):
                setattr(message, made.name, _value(made.type, number))
        return message

    def _entries(self, element: Primitive | type[Message], here: Path) -> list[Any]:
        count = self._lengths.get(here, self._others)
        if isinstance(element, Primitive):
            return [_value(element, number) for number in range(count)]
        return [self.message(element, here, number) for number in range(count)]


def _value(wire_type: Primitive, number: int) -> Any:
    if wire_type is STRING:
        return f"n{number}"
    if wire_type is UUID:
        return number.to_bytes(16, "big")
    if wire_type is RECORDS:
        return None
    return number % 128 if wire_type.size == 1 else number if wire_type.size > 2 else number % 9
