"""IN-7: the pictures in the documentation are small, safe to embed, and all of them are shown."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.kit.foreign import CHECKOUT
from tests.kit.pictures.page_picture import LARGEST_BYTES

PICTURES = sorted((CHECKOUT / "docs" / "pictures").iterdir())
PAGES = [CHECKOUT / "README.md", *(CHECKOUT / "docs").rglob("*.md")]
ELEMENTS = {"svg", "title", "style", "clipPath", "g", "rect", "path", "text"}
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("path", PICTURES, ids=[path.name for path in PICTURES])
def test_a_picture_has_nothing_but_shapes_and_text(path: Path) -> None:
    """No script, no font, nothing from elsewhere, and no address of the machine that drew it."""
    text = path.read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    assert {each.tag.removeprefix(SVG) for each in root.iter()} <= ELEMENTS
    names = {name for each in root.iter() for name in each.attrib}
    assert [name for name in names if name.startswith("on") or "href" in name] == []
    without_space = text.replace("http://www.w3.org/2000/svg", "")
    assert re.findall(r"https?:|//|@import|url\((?!#frame\))", without_space) == []
    assert re.findall(r"127\.0\.0\.1:\d+|localhost:(?!909[2-4])\d+", text) == []
    assert len(text.encode()) <= LARGEST_BYTES
    title = root.find(f"{SVG}title")
    assert title is not None and title.text


def test_each_picture_is_shown_and_each_shown_picture_is_there() -> None:
    shown = {
        (page.parent / name).resolve()
        for page in PAGES
        for name in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", page.read_text(encoding="utf-8"))
    }
    assert {path for path in shown if not path.is_file()} == set()
    assert {*PICTURES} <= shown
