"""The page that newcomers read first names what is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.kit.foreign import CHECKOUT
from tests.tidy import file_map
from tests.tidy.source import sources

# A module of ours in a page: from the package, or from the top of the checkout.
MODULE = re.compile(r"`((?:\w+/)+\w+\.py)`")
ROOTS = (CHECKOUT, CHECKOUT / "src", CHECKOUT / "src" / "barnabas")

LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)(?:#[^)]*)?\)")


def test_every_module_says_what_it_is() -> None:
    silent = [
        file.path
        for file in sources("src", "simulation")
        if file.text.strip() and not file.text.lstrip().startswith(('"""', 'r"""'))
    ]
    assert silent == []


def test_the_file_map_has_every_module() -> None:
    """Each in a line of its own, with its sentence, or among the stems of a folder of APIs."""
    page = file_map.file_map()
    missing = [
        file.path
        for file in sources("src", "simulation")
        if ast.get_docstring(file.tree)
        and f"- `{Path(file.path).name}`: " not in page
        and f" {Path(file.path).stem}" not in page
    ]
    assert missing == []


@pytest.mark.parametrize(
    "page",
    [*sorted(CHECKOUT.glob("docs/**/*.md")), *sorted(CHECKOUT.glob("*.md"))],
    ids=lambda page: page.name,
)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [link for link in LINK.findall(text) if not (page.parent / link).exists()] == []


def test_modules_that_pages_name_are_there() -> None:
    """Decisions describe their own time."""
    found = [
        f"{page.name}: {module}"
        for page in sorted(CHECKOUT.glob("docs/*.md"))
        for module in MODULE.findall(page.read_text(encoding="utf-8"))
        if not any((root / module).is_file() for root in ROOTS)
    ]
    assert found == []
