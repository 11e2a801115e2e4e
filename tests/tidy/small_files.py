"""Lists small files with a single reader, which often belong into that reader.

    python -m tests.tidy.small_files      prints each with its lines and the file that imports it

Files of one API, one command or one script of Kafka stand alone by their rule, whatever their size.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from typing import NamedTuple

from tests.tidy.source import Source, sources

LINES = 80
_ALONE_BY_RULE = (
    "src/barnabas/broker/handlers/",
    "src/barnabas/protocol/messages/",
    "src/barnabas/cli/kafka/",
)


class SmallFile(NamedTuple):
    """A file below `LINES` lines and the only file that imports it."""

    path: str
    lines: int
    reader: str

    def __str__(self) -> str:
        return f"{self.path} {self.lines}, read by {self.reader}"


def small_files() -> list[SmallFile]:
    files = {_module(file): file for file in sources("src")}
    readers: dict[str, set[str]] = defaultdict(set)
    for name, file in files.items():
        for imported in _imports(file):
            if imported in files and imported != name:
                readers[imported].add(file.path)
    return [
        SmallFile(file.path, file.line_count, next(iter(readers[name])))
        for name, file in files.items()
        if file.line_count < LINES
        and len(readers[name]) == 1
        and not file.path.endswith(("__init__.py", "_command.py", "/command.py"))
        and not file.path.startswith(_ALONE_BY_RULE)
    ]


def _module(file: Source) -> str:
    name = file.path.removeprefix("src/").removesuffix(".py").replace("/", ".")
    return name.removesuffix(".__init__")


def _imports(file: Source) -> set[str]:
    """Modules that the file imports, for types alone too, and names that may be modules."""
    found: set[str] = set()
    for node in file.nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return found


if __name__ == "__main__":
    listed = small_files()
    for small in sorted(listed):
        print(small)
    print(len(listed))
