"""Compares JSON with the types that are declared for it: every field, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict


def misfits(value: Any, wanted: Any, where: str = "$") -> Iterator[str]:
    """Yield each place where the value is not what its type promises."""
    origin = get_origin(wanted)
    if is_typeddict(wanted):
        yield from _misfits_of_fields(value, wanted, where)
    elif origin in (Union, UnionType):
        found = [list(misfits(value, each, where)) for each in get_args(wanted)]
        if all(found):
            yield from min(found, key=len)
    elif origin is Literal:
        if value not in get_args(wanted):
            yield f"{where}: {value!r} is none of {get_args(wanted)}"
    elif origin is list:
        if not isinstance(value, list):
            yield f"{where}: {value!r} is not a list"
            return
        for number, each in enumerate(value):
            yield from misfits(each, get_args(wanted)[0], f"{where}[{number}]")
    elif origin is dict:
        if not isinstance(value, dict):
            yield f"{where}: {value!r} is not an object"
            return
        for name, each in value.items():
            yield from misfits(each, get_args(wanted)[1], f"{where}.{name}")
    elif not _is_plain(value, wanted):
        yield f"{where}: {value!r} is not {wanted}"


def _misfits_of_fields(value: Any, wanted: Any, where: str) -> Iterator[str]:
    hints = get_type_hints(wanted)
    if not isinstance(value, dict):
        yield f"{where}: {value!r} is not an object"
        return
    if value.keys() != hints.keys():
        yield f"{where}: fields {sorted(value.keys() ^ hints.keys())} are missing or unknown"
    for name in value.keys() & hints.keys():
        yield from misfits(value[name], hints[name], f"{where}.{name}")


def _is_plain(value: Any, wanted: Any) -> bool:
    if wanted is NoneType:
        return value is None
    if wanted is float:  # JSON writes 1.0 as 1 in some languages
        return isinstance(value, int | float) and not isinstance(value, bool)
    if wanted is int:
        return isinstance(value, int) and not isinstance(value, bool)
    assert wanted in (str, bool), f"no rule for {wanted}"
    return isinstance(value, wanted)
