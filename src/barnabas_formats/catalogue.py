"""Loads the built-in formats, in the order in which they are tried."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from barnabas_formats.format import Format, read_format

KINDS = ("access", "system")


@cache
def names() -> tuple[str, ...]:
    """Return the names of all formats without reading their files."""
    folders = [files("barnabas_formats") / kind for kind in KINDS]
    found = [each.name for folder in folders if folder.is_dir() for each in folder.iterdir()]
    return tuple(sorted(name.removesuffix(".toml") for name in found if name.endswith(".toml")))


@cache
def catalogue(kind: str | None = None) -> tuple[Format, ...]:
    """Return all formats, or the formats of one kind, sorted by name within each kind.

    No line matches two of them, except through patterns marked as loose.
    """
    if kind is None:
        return tuple(each for kind in KINDS for each in catalogue(kind))
    folder = files("barnabas_formats") / kind
    found = sorted(
        each.name
        for each in (folder.iterdir() if folder.is_dir() else ())
        if each.name.endswith(".toml")
    )
    return tuple(read_format(folder / name, kind) for name in found)
