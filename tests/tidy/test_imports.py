"""The broker's modules import each other in one direction, counting what is only for types.

import-linter's contracts, which leave types out, say which room stands above which.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import PurePosixPath

from tests.tidy.source import Source, sources

FOLDER = "src/barnabas/broker"

SIGNATURE = {"barnabas.broker.context", "barnabas.broker.outcome"}
"""In the signature of every handler, so in a third of all modules."""


def test_no_modules_of_the_broker_import_each_other() -> None:
    try:
        list(TopologicalSorter(graph()).static_order())
    except CycleError as error:
        raise AssertionError(f"these import each other in a circle: {error.args[1]}") from None


def test_no_module_of_the_broker_is_known_to_a_quarter_of_the_others() -> None:
    found = graph()
    importers = Counter(each for imported in found.values() for each in imported)
    known = {name for name, count in importers.items() if 4 * count > len(found) - 1}
    assert known <= SIGNATURE


def graph() -> Mapping[str, set[str]]:
    """By module, the other modules of the broker that it imports."""
    files = {_name(file): file for file in sources(FOLDER) if not file.path.endswith("__init__.py")}
    return {name: set(_imported(file)) & files.keys() for name, file in files.items()}


def _name(file: Source) -> str:
    return ".".join(PurePosixPath(file.path).with_suffix("").parts[1:])


def _imported(file: Source) -> Iterator[str]:
    for node in file.nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
