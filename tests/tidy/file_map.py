"""The file map, a page of the site: every module with the first sentence of its docstring.

python -m tests.tidy.file_map      prints it
"""

from __future__ import annotations

import ast
from pathlib import PurePosixPath

from tests.tidy.source import Source, sources

# From the top of the layers to the bottom.
PACKAGES = (
    "src/barnabas/console",
    "src/barnabas/cli",
    "src/barnabas_pipeline",
    "src/barnabas/testing",
    "src/barnabas/broker",
    "src/barnabas/zookeeper",
    "src/barnabas_track",
    "src/barnabas_collector",
    "src/barnabas_formats",
    "src/barnabas/client",
    "src/barnabas/controller",
    "src/barnabas/coordinator",
    "src/barnabas/replication",
    "src/barnabas/cluster",
    "src/barnabas/storage",
    "src/barnabas/net",
    "src/barnabas/security",
    "src/barnabas/records",
    "src/barnabas/protocol",
    "src/barnabas/config",
    "src/barnabas/errors",
    "src/pyspark_barnabas",
    "src/pyspark_barnabas_delta",
    "simulation",
)

# Folders with a file for each API are listed by their stems.
FOLDERS_OF_APIS = ("src/barnabas/broker/handlers", "src/barnabas/protocol/messages")

INTRODUCTION = """\
# File map

Each module with the first sentence of its docstring.
[ARCHITECTURE.md](ARCHITECTURE.md) says how they work together.
"""


def file_map() -> str:
    """The whole page."""
    sections = [_section("src/barnabas")]
    for package in PACKAGES:
        folders = {PurePosixPath(file.path).parent.as_posix() for file in sources(package)}
        sections += [_section(folder) for folder in sorted(folders)]
    return "\n".join([INTRODUCTION, *filter(None, sections)])


def _section(folder: str) -> str:
    """The folder's own modules; an `__init__.py` without a docstring is left out."""
    files = [
        file
        for file in sources(folder)
        if PurePosixPath(file.path).parent == PurePosixPath(folder) and _first_sentence(file)
    ]
    if folder in FOLDERS_OF_APIS:
        stems = sorted(PurePosixPath(file.path).stem for file in files)
        lines = f"One file per API: {', '.join(stems)}\n"
    else:
        lines = "".join(
            f"- `{PurePosixPath(file.path).name}`: {_first_sentence(file)}\n" for file in files
        )
    return lines and f"## `{folder.removeprefix('src/')}/`\n\n{lines}"


def _first_sentence(file: Source) -> str:
    docstring = ast.get_docstring(file.tree) or ""
    return docstring.partition("\n")[0].removesuffix(".")


if __name__ == "__main__":
    print(file_map(), end="")
