"""Counts what a machine can see of the rules of language in CONTRIBUTING.md.

    python -m tests.tidy.language [FOLDER ...]      prints counts, and each place of a FOLDER

A docstring is a sentence with a verb: one that opens with a word of `OPENINGS` is a fragment, one
that opens with "As" sends the reader elsewhere, and "Whether" may open a question's docstring, but
not every one. A function whose name is one word in -ed does not say if it commands, tells, asks or
answers.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from tests.tidy.source import Source, sources

OPENINGS = {"Of", "What", "Who", "That", "Those", "With", "Where", "By"}
_PARTICIPLE = re.compile(r"[a-z]+ed")
_NO_PARTICIPLES = {"feed", "need", "seed", "speed", "succeed"}
_COMMENT = re.compile(r"\s*#(?!!| fmt| type:| noqa)")


class Finding(NamedTuple):
    """One place that counts against a rule."""

    rule: str
    where: str
    text: str


def findings(file: Source) -> Iterator[Finding]:
    for node, docstring in file.docstrings:
        yield from _opening(file.at(node), docstring)
    for node in file.nodes:
        if (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and _PARTICIPLE.fullmatch(node.name)
            and node.name not in _NO_PARTICIPLES
        ):
            yield Finding("participle", file.at(node), node.name)


def comment_lines(file: Source) -> int:
    """Lines that are comments and nothing else."""
    return sum(bool(_COMMENT.match(line)) for line in file.text.splitlines())


def _opening(where: str, docstring: str) -> Iterator[Finding]:
    first_line = docstring.partition("\n")[0]
    word = first_line.split()[0].rstrip(",:;")
    if word in OPENINGS:
        yield Finding("fragment", where, first_line)
    elif word == "As":
        yield Finding("as", where, first_line)
    elif word == "Whether":
        yield Finding("whether", where, first_line)


def main(folders: list[str]) -> None:
    files = sources(*(folders or ["src"]))
    counts: dict[str, Counter[str]] = {}
    places: list[Finding] = []
    for file in files:
        folder = "/".join(file.path.split("/")[1:4][:-1])
        count = counts.setdefault(folder, Counter())
        count["lines"] += file.line_count
        count["comments"] += comment_lines(file)
        found = list(findings(file))
        count.update(finding.rule for finding in found)
        places += found
    if folders:
        for finding in places:
            print(f"{finding.where} {finding.rule}: {finding.text}")
    for folder, count in sorted(counts.items()):
        print(folder, dict(count))
    print("all", dict(sum(counts.values(), Counter())))


if __name__ == "__main__":
    main(sys.argv[1:])
