"""The project's own Python files, read and parsed once for all tidy tests."""

from __future__ import annotations

import ast
import functools
import gc
from collections.abc import Iterator
from pathlib import Path

from tests.kit.foreign import CHECKOUT

Function = ast.FunctionDef | ast.AsyncFunctionDef
_WITH_DOCSTRINGS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)


class Source:
    """One file: its path from the checkout's top (with slashes), its text, its syntax tree."""

    def __init__(self, path: Path) -> None:
        self.path = path.relative_to(CHECKOUT).as_posix()
        self.text = path.read_text(encoding="utf-8")

    @functools.cached_property
    def tree(self) -> ast.Module:
        """Parsed when the first test asks for it.

        Trees have no cycles and stay until the end, so Python need not look for garbage in them:
        that took longer than all else that is done with them.
        """
        gc.disable()
        try:
            return ast.parse(self.text, self.path)
        finally:
            gc.freeze()
            gc.enable()

    @functools.cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Everything in the tree."""
        return tuple(ast.walk(self.tree))

    @property
    def docstrings(self) -> Iterator[tuple[ast.AST, str]]:
        """Yield each node that has a docstring, with the docstring."""
        for node in self.nodes:
            if isinstance(node, _WITH_DOCSTRINGS) and (docstring := ast.get_docstring(node)):
                yield node, docstring

    @property
    def line_count(self) -> int:
        return self.text.count("\n")

    def at(self, node: ast.AST) -> str:
        """Where a node stands, as editors understand it."""
        return f"{self.path}:{getattr(node, 'lineno', 1)}"

    @functools.cached_property
    def functions(self) -> tuple[tuple[str, Function], ...]:
        """Every function with its dotted name inside the file, methods and inner ones too."""
        return tuple(_functions(self.tree, ""))


def _functions(parent: ast.AST, prefix: str) -> Iterator[tuple[str, Function]]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, Function):
            yield f"{prefix}{node.name}", node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _functions(node, f"{prefix}{node.name}.")
        elif not isinstance(node, ast.expr):
            yield from _functions(node, prefix)


@functools.cache
def sources(*folders: str) -> tuple[Source, ...]:
    """Every Python file below these folders of the checkout, in the order of their paths."""
    return tuple(_read(path) for folder in folders for path in sorted(_files(folder)))


_read = functools.cache(Source)


def _files(folder: str) -> Iterator[Path]:
    return (CHECKOUT / folder).rglob("*.py")


def everything() -> tuple[Source, ...]:
    return sources("src", "simulation", "tests", "benchmarks", "examples")
