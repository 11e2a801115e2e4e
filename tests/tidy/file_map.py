"""The map of the files in docs/ARCHITECTURE.md, made from the modules' own first sentences.

python -m tests.tidy.file_map      writes the map anew
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import PurePosixPath

from tests.foreign import CHECKOUT
from tests.tidy.source import Source, sources

DOCUMENT = CHECKOUT / "docs" / "ARCHITECTURE.md"
HEADING = "## Map of the files\n"

# From the top of the layers to the bottom.
PACKAGES = (
    "cli",
    "pipeline",
    "broker",
    "client",
    "controller",
    "replication",
    "cluster",
    "storage",
    "net",
    "records",
    "protocol",
    "config",
)


def file_map() -> str:
    """Everything below the heading."""
    sections = [_section("barnabas", _files("src/barnabas"))]
    sections += [_section(f"barnabas/{name}", _files(f"src/barnabas/{name}")) for name in PACKAGES]
    sections.append(_section("pyspark_barnabas", _files("src/pyspark_barnabas")))
    return "\n" + "\n".join(sections)


def _section(title: str, files: list[Source]) -> str:
    lines = [f"- `{PurePosixPath(file.path).name}`: {_first_sentence(file)}\n" for file in files]
    return f"### `{title}/`\n\n" + "".join([*lines, *_folders_of_apis(title)])


def _files(folder: str) -> list[Source]:
    """The folder's own modules; an `__init__.py` that says nothing is left out."""
    return [
        file
        for file in sources(folder)
        if PurePosixPath(file.path).parent == PurePosixPath(folder) and _first_sentence(file)
    ]


def _folders_of_apis(title: str) -> Iterator[str]:
    """Folders with a file for each API are named as a whole."""
    name = {"barnabas/broker": "handlers", "barnabas/protocol": "messages"}.get(title)
    if name:
        files = (PurePosixPath(file.path) for file in sources(f"src/{title}/{name}"))
        stems = sorted(path.stem for path in files if path.stem != "__init__")
        yield f"- `{name}/`: one file per API: {', '.join(stems)}\n"


def _first_sentence(file: Source) -> str:
    docstring = ast.get_docstring(file.tree) or ""
    return docstring.partition("\n")[0].removesuffix(".")


if __name__ == "__main__":
    head, heading, _ = DOCUMENT.read_text(encoding="utf-8").partition(HEADING)
    DOCUMENT.write_text(head + heading + file_map(), encoding="utf-8")
