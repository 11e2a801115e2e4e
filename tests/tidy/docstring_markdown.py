"""A docstring as Markdown: its sections (`Args:`, `Raises:` ...) become headed lists."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator

SECTION = re.compile(r"(Args|Returns|Yields|Raises|Example|Examples)::?")
LISTED = ("Args", "Raises")
ENTRY = re.compile(r"(\*{0,2}[\w.]+(?:, \w+)*): (.*)", re.DOTALL)


def markdown(docstring: str) -> str:
    """The text; examples, which are indented, stay code."""
    text = "\n".join(_lines(inspect.cleandoc(docstring).split("\n"))).strip()
    return re.sub(r"\n{3,}", "\n\n", text)


def _lines(lines: list[str]) -> Iterator[str]:
    while lines:
        line = lines.pop(0)
        found = SECTION.fullmatch(line)
        if found is None:
            yield line
            continue
        block = []
        while lines and (not lines[0] or lines[0].startswith(" ")):
            block.append(lines.pop(0))
        yield from _section(found[1], textwrap.dedent("\n".join(block)).strip("\n"))


def _section(name: str, text: str) -> Iterator[str]:
    yield ""
    yield f"{name}:"
    yield ""
    if name in LISTED:
        for entry in re.split(r"\n(?=\S)", text):
            found = ENTRY.fullmatch(" ".join(entry.split()))
            yield f"- {entry}" if found is None else f"- `{found[1]}`: {found[2]}"
    elif name.startswith("Example"):
        yield f"```python\n{text}\n```"
    else:
        yield text
    yield ""
