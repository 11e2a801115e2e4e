"""Generates the source code of a Python function (lines, names and constants), and compiles it.

The text is added to `linecache`, so that a traceback shows the lines of a compiled codec, and a
debugger can step through them.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Source:
    """The source code of a function that is being generated."""

    __slots__ = ("_counter", "_indent", "_lines", "constants")

    def __init__(self, constants: dict[str, Any]) -> None:
        self.constants = constants
        self._lines: list[str] = []
        self._indent = 0
        self._counter = 0

    def line(self, text: str) -> None:
        self._lines.append("    " * self._indent + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Write `head`, and indent the lines that are written inside the context."""
        self.line(head)
        self._indent += 1
        yield
        self._indent -= 1

    def name(self, prefix: str) -> str:
        """Return a name for a local variable that is not in use yet."""
        self._counter += 1
        return f"{prefix}_{self._counter}"

    def constant(self, name: str, value: Any) -> str:
        """Make `value` a global variable of the function, called `name`, and return the name.

        A name cannot have two values."""
        known = self.constants.setdefault(name, value)
        assert known is value or known == value, f"{name} is both {known!r} and {value!r}"
        return name

    def compile(self, function: str, filename: str) -> Any:
        """Register the source under `filename`, and compile the function."""
        text = "\n".join(self._lines) + "\n"
        linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
        exec(compile(text, filename, "exec"), self.constants)
        return self.constants[function]
