"""UX-9: the site has few pages to choose from, and each page hangs below one of them."""

from __future__ import annotations

import posixpath
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.tidy.site import CONFIG, GATHERED, gather

MOST_PAGES = 25
PARTS = ["Barnabas", "Tutorials", "How-to", "Reference", "Explanation"]
LINK = re.compile(r"\]\(([^)#:]+\.md)(?:#[^)]*)?\)")


def project() -> dict[str, Any]:
    config: dict[str, Any] = tomllib.loads(CONFIG.read_text(encoding="utf-8"))["project"]
    return config


def listed(entries: list[dict[str, Any]]) -> list[str]:
    """The pages of the navigation, in their order."""
    found = []
    for entry in entries:
        for value in entry.values():
            found += listed(value) if isinstance(value, list) else [value]
    return found


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The text of each page, by its path."""
    target = tmp_path_factory.mktemp("site") / "docs"
    gather(target)
    return {
        path.relative_to(target).as_posix(): path.read_text(encoding="utf-8")
        for path in target.rglob("*.md")
    }


def test_the_navigation_has_four_parts_and_few_pages(pages: dict[str, str]) -> None:
    nav = project()["nav"]
    assert [name for entry in nav for name in entry] == PARTS
    assert len(listed(nav)) <= MOST_PAGES
    assert set(listed(nav)) <= set(pages)


def test_every_page_can_be_reached(pages: dict[str, str]) -> None:
    """From those of the navigation, by the links of pages."""
    reached: set[str] = set()
    left = listed(project()["nav"])
    while left:
        page = left.pop()
        if page in reached or page not in pages:
            continue
        reached.add(page)
        folder = posixpath.dirname(page)
        left += [posixpath.normpath(posixpath.join(folder, to)) for to in LINK.findall(pages[page])]
    assert set(pages) - reached == set()


def test_the_pages_are_gathered_where_the_site_is_built_from() -> None:
    assert Path(project()["docs_dir"]) == GATHERED.relative_to(CONFIG.parent)


def test_pages_of_the_sources_are_among_them(pages: dict[str, str]) -> None:
    assert "`partition.py`" in pages["file-map.md"]
    assert "](0001-machines-decide-the-shell-awaits.md)" in pages["decisions/README.md"]
    assert "```python\n" in pages["examples/textbook.md"]
    assert "(examples/textbook.md)" in pages["kafka-2.3.md"]
    assert "no-run" not in pages["security.md"], "options of fences are the tests'"
