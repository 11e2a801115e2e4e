"""The README's doors are short, and their examples run and print what the README shows.

Here they run with the packages of this environment, each door in an empty directory. With exactly
the packages that its install line names, each runs in `tests/integration/test_readme_doors.py`, and
Spark's in `tests/integration/test_wheel.py`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.kit.foreign import CHECKOUT
from tests.kit.readme import README, Door, doors, run_door

LONGEST_DOOR = 35
LONGEST_README = 160


# Spark's takes half a minute; it runs with the tests of the wheel.
QUICK = [door for door in doors() if "spark" not in door.packages[0]]


@pytest.mark.parametrize("door", QUICK, ids=[door.name for door in QUICK])
def test_each_door_leads_where_the_readme_shows(door: Door, tmp_path: Path) -> None:
    """UX-1, UX-2, UX-8"""
    run_door(door, Path(sys.executable).parent, tmp_path)


def test_there_are_three_short_doors_and_each_has_something_to_run() -> None:
    assert [door.name for door in doors()] == ["Test with it", "Run it", "Spark it"]
    assert [door.name for door in doors() if door.length > LONGEST_DOOR or not door.blocks] == []


def test_it_is_read_in_minutes_and_begins_with_the_picture() -> None:
    lines = README.read_text(encoding="utf-8").splitlines()
    assert len(lines) < LONGEST_README
    [picture] = [number for number, line in enumerate(lines) if line.startswith("![")]
    first_chapter = next(number for number, line in enumerate(lines) if line.startswith("## "))
    assert picture < first_chapter


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md"])
def test_links_find_their_pages_and_headings(name: str) -> None:
    text = (CHECKOUT / name).read_text(encoding="utf-8")
    lost = [
        page for page in re.findall(r"\]\(([\w/.-]+\.md)\)", text) if not (CHECKOUT / page).exists()
    ]
    for page, anchor in re.findall(r"\]\(([\w/.-]+\.md)#([\w-]+)\)", text):
        headings = re.findall(r"^#+ (.*)$", (CHECKOUT / page).read_text(encoding="utf-8"), re.M)
        anchors = {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}
        lost += [f"{page}#{anchor}"] if anchor not in anchors else []
    assert lost == []
