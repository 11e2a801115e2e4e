"""Names in backticks in docstrings exist, and each package stands on the page of the layers.

A rename leaves such a name behind, which then leads a reader to nothing.
"""

from __future__ import annotations

import ast
import functools
import keyword
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from tests.kit.foreign import CHECKOUT
from tests.tidy.source import Source, sources

# A name of Python's, lower case, perhaps dotted, perhaps called. Others are Kafka's, or values.
_NAME = re.compile(r"`([a-z_][a-z0-9_]*(?:\.[a-z_][a-z0-9_]*)*)(?:\(\))?`")
_WORDS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# Names of others: a format of Apache's, a package, fields of examples, a setting of librdkafka.
FOREIGN = {
    "asyncio.shield",
    "items.element.price",
    "optimize",
    "prices.value.currency",
    "queued.max.messages.kbytes",
    "vhost_combined",
}


def test_names_in_docstrings_exist() -> None:
    known = _known_names()
    found = [
        f"{file.at(node)} `{name}`"
        for file in sources("src")
        for node, docstring in file.docstrings
        for name in _NAME.findall(docstring)
        if name not in FOREIGN
        and not keyword.iskeyword(name)
        and not all(part in known for part in name.split("."))
    ]
    assert found == [], "renamed, or a name of others: see FOREIGN"


def test_every_package_stands_on_the_page_of_the_layers() -> None:
    page = (CHECKOUT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    words = set(_WORDS.findall(page.partition("## The path of a record")[0]))
    packages = {
        PurePosixPath(file.path).parent.name
        for file in sources("src")
        if file.path.endswith("/__init__.py") and file.path.count("/") <= 3
    }
    assert packages - words == set()


@functools.cache
def _known_names() -> frozenset[str]:
    known = {"py"}  # of `fields.py`, whose stem must exist
    for file in sources("src", "simulation"):
        known.update(PurePosixPath(file.path).with_suffix("").parts)
        docstrings = {id(each) for each in _docstring_nodes(file)}
        for node in file.nodes:
            known.update(_names_of(node, docstrings))
    return frozenset(known)


def _names_of(node: ast.AST, docstrings: set[int]) -> Iterator[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield node.name
    elif isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.arg) or (isinstance(node, ast.keyword) and node.arg):
        yield node.arg
    elif isinstance(node, ast.alias):
        yield from node.name.split(".")
    # Settings, columns, slots and fields of JSON are names too; the docstrings are not proof.
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from () if id(node) in docstrings else _WORDS.findall(node.value)


def _docstring_nodes(file: Source) -> Iterator[ast.Constant]:
    """Each text that stands as a statement: docstrings, and those below attributes."""
    for node in file.nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value
