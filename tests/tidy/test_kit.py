"""Tests share through `tests/kit`, and nothing else imports a test."""

from __future__ import annotations

import ast

from tests.tidy.source import everything, sources


def test_no_module_imports_a_test_module() -> None:
    """A builder that lives in a test makes readers look for it among tests."""
    found = [
        f"{file.at(node)} imports {module}"
        for file in everything()
        for node in file.nodes
        for module in _imported_from_tests(node)
        if any(part.startswith("test_") for part in module.split("."))
    ]
    assert found == [], "what tests share lives in tests/kit"


def test_the_kit_stands_on_nothing_beside_it() -> None:
    found = [
        f"{file.at(node)} imports {module}"
        for file in sources("tests/kit")
        for node in file.nodes
        for module in _imported_from_tests(node)
        if not module.startswith("tests.kit")
    ]
    assert found == []


def _imported_from_tests(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "tests":
        return [f"{node.module}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Import):
        return [each.name for each in node.names if each.name.partition(".")[0] == "tests"]
    return []
