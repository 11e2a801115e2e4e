"""Tests look at what is public: what they reach for behind it cannot be reshaped."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.kit.foreign import CHECKOUT
from tests.tidy.source import Source, sources

EXCEPTIONS = CHECKOUT / "tests" / "tidy" / "private_access.txt"

# Public in spite of their names: the methods of named tuples, the codes of confluent-kafka's error.
NAMED_TUPLE = {"_asdict", "_fields", "_make", "_replace"}
FOREIGN_CODES = "KafkaError"


def test_no_test_reaches_into_what_is_private() -> None:
    """A constant that is patched counts as well as an attribute that is read."""
    found = sorted({f"{file.path} {name}" for file in sources("tests") for name in _reached(file)})
    lines = EXCEPTIONS.read_text(encoding="utf-8").splitlines()
    listed = [line for line in lines if line and not line.startswith("#")]
    assert found == sorted(listed), "private names (left) against private_access.txt (right)"


def _reached(file: Source) -> Iterator[str]:
    """The private names of other modules' objects that the file uses."""
    own = _defined(file)
    for node in file.nodes:
        if isinstance(node, ast.Attribute):
            name, owner = node.attr, node.value
        elif isinstance(node, ast.Call) and _is_patch(node):
            name, owner = _patched(node), node.args[0]
        else:
            continue
        is_constant = isinstance(node, ast.Call) and name.isupper()
        is_private = is_constant or (name.startswith("_") and not name.startswith("__"))
        if not is_private or name in own or name in NAMED_TUPLE:
            continue
        if ast.unparse(owner) not in ("self", "cls", FOREIGN_CODES):
            yield name


def _defined(file: Source) -> set[str]:
    """Private names of the file's own classes: those it may use among themselves."""
    functions = {name.rpartition(".")[2] for name, _ in file.functions}
    assigned = {
        node.attr
        for node in file.nodes
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    }
    return functions | assigned


def _is_patch(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Attribute) and node.func.attr in ("setattr", "delattr")


def _patched(node: ast.Call) -> str:
    name = node.args[1] if len(node.args) > 1 else None
    return str(name.value) if isinstance(name, ast.Constant) else ""
