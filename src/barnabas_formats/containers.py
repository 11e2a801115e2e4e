"""Unwraps lines written by container runtimes, in the formats json-file (Docker) and CRI
(Kubernetes).

A runtime splits a long line of a program into several lines, and marks all of them except the last
as partial. Pure.
"""

from __future__ import annotations

import json
import re
from typing import Final, NamedTuple

from barnabas_formats.objects import json_object

_CRI: Final = re.compile(
    r"(?P<front>[0-9]{4}-[0-9]{2}-[0-9]{2}T\S+ (?:stdout|stderr) )(?P<tag>[FP])(?::\S+)?"
    r"(?: (?P<content>.*))?",
    re.DOTALL,
)
_DOCKER: Final = '{"log":"'


class Wrapped(NamedTuple):
    """Holds the content of a line in a runtime's file, and whether this content ends the program's
    line."""

    content: str
    is_whole: bool
    front: str = ""


def unwrap(line: str) -> Wrapped | None:
    """Return the content of a line, or None if it is not wrapped."""
    if line.startswith(_DOCKER):
        found = json_object(line)
        text = None if found is None else found.get("log")
        if isinstance(text, str):
            return Wrapped(text.rstrip("\r\n"), text.endswith("\n"))
        return None
    match = _CRI.fullmatch(line)
    if match is None:
        return None
    # CRI-O writes additional tags after a colon.
    return Wrapped(match["content"] or "", match["tag"] == "F", match["front"])


def join(head: str, more: str) -> tuple[str, str]:
    """Join a record of several wrapped lines. The first line is kept as it is, followed by the
    contents of the others.
    """
    first = unwrap(head)
    if first is None:
        return head, more
    contents, is_whole = [first.content], first.is_whole
    for line in more.split("\n"):
        found = unwrap(line.rstrip("\r")) or Wrapped(line, True)
        if is_whole:
            contents.append(found.content)
        else:
            contents[-1] += found.content
        is_whole = found.is_whole
    if first.front:
        joined = f"{first.front}F {contents[0]}"
    else:
        joined = json.dumps({**(json_object(head) or {}), "log": f"{contents[0]}\n"})
    # JSON can escape half a surrogate pair.
    return joined, "\n".join(contents[1:]).encode("utf-8", "replace").decode()
