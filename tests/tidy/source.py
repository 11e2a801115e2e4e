"""The project's own Python files, read and parsed once for all tidy tests."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.foreign import CHECKOUT

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Source(NamedTuple):
    """One file: its path from the checkout's top (with slashes), its text, its syntax tree."""

    path: str
    text: str
    tree: ast.Module

    @property
    def line_count(self) -> int:
        return self.text.count("\n")

    def at(self, node: ast.AST) -> str:
        """Where a node stands, as editors understand it."""
        return f"{self.path}:{getattr(node, 'lineno', 1)}"

    def functions(self) -> Iterator[tuple[str, Function]]:
        """Every function with its dotted name inside the file, methods and inner ones too."""
        yield from _functions(self.tree, "")


def _functions(parent: ast.AST, prefix: str) -> Iterator[tuple[str, Function]]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, Function):
            yield f"{prefix}{node.name}", node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _functions(node, f"{prefix}{node.name}.")
        else:
            yield from _functions(node, prefix)


@functools.cache
def sources(*folders: str) -> tuple[Source, ...]:
    """Every Python file below these folders of the checkout, in the order of their paths."""
    return tuple(_read(path) for folder in folders for path in sorted(_files(folder)))


@functools.cache
def _read(path: Path) -> Source:
    text = path.read_text(encoding="utf-8")
    return Source(path.relative_to(CHECKOUT).as_posix(), text, ast.parse(text, str(path)))


def _files(folder: str) -> Iterator[Path]:
    return (CHECKOUT / folder).rglob("*.py")


def everything() -> tuple[Source, ...]:
    return sources("src", "tests", "benchmarks", "examples")
