"""Builds the command line that installs the packages of an extra. All messages use this line.

The line lists the packages themselves and never `barnabas[...]`, because on another index this name
may belong to somebody else's package.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final

_DISTRIBUTION: Final = "barnabas"
_END_OF_NAME: Final = re.compile(r"[^\w.-]")
_NESTED: Final = re.compile(rf"{_DISTRIBUTION}\[(.+)\]")


def install_line(extra: str, only: Collection[str] = ()) -> str:
    """Return a `pip install` command with the packages of an extra and their version bounds, or
    with only the packages in `only`.
    """
    import shlex
    from importlib.metadata import PackageNotFoundError, requires  # slow, and rarely needed

    try:
        lines = requires(_DISTRIBUTION) or []
    except PackageNotFoundError:  # only the sources are on the path
        return shlex.join(["pip", "install", *(only or [f".[{extra}]"])])
    wanted = [
        line for line in _packages(extra, lines) if not only or _END_OF_NAME.split(line)[0] in only
    ]
    return shlex.join(["pip", "install", *wanted])


def _packages(extra: str, lines: Collection[str]) -> Iterator[str]:
    """Yield the requirements of an extra, including those of any extras that it refers to."""
    for line in lines:
        requirement, _, marker = map(str.strip, line.partition(";"))
        if f'extra == "{extra}"' not in marker.replace("'", '"'):
            continue
        if nested := _NESTED.fullmatch(requirement):
            yield from _packages(nested[1], lines)
        else:
            yield requirement
