"""Gives the methods of a blocking client the docstrings of the async ones that they call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T", bound=type)


def documented_by(core: type) -> Callable[[T], T]:
    """Decorate a class: its methods without a docstring get those of the same name in `core`."""

    def decorate(blocking: T) -> T:
        for name, method in vars(blocking).items():
            if callable(method) and not name.startswith("_") and not method.__doc__:
                method.__doc__ = getattr(core, name).__doc__
        return blocking

    return decorate
