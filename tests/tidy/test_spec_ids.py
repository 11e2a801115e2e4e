"""Each line of `docs/specification.md` has a state in `docs/status.md`, and tests prove it."""

from __future__ import annotations

import functools
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from tests.kit.foreign import CHECKOUT
from tests.tidy.source import everything, sources

SPECIFICATION = CHECKOUT / "docs" / "specification.md"
STATUS = CHECKOUT / "docs" / "status.md"
STATES = ("done", "partly", "not yet")

AREA = re.compile(r"^\| ([^|]+) \|([^|]*)\|([^|]*)\|([^|]*)\|$", re.MULTILINE)
PARTLY = re.compile(r"^\| ([A-Z]{2}-\d+) \| [^|]+ \| [^|]+ \|$", re.MULTILINE)
SPAN = re.compile(r"([A-Z]{2})-(\d+)(?: to (\d+))?")
LINE = re.compile(r'^- <a id="([a-z]{2}-\d+)"></a>\*\*([A-Z]{2}-\d+)\*\* \S', re.MULTILINE)
HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
ID = re.compile(r"\b(?:TP|PR|CO|AS|GC|ST|RE|ZK|DL|SE|SP|BT|LG|UX|TK|IN|MX|ZS|SH)-\d+\b")


class Row(NamedTuple):
    """One line of the specification, and how far it is."""

    id: str
    state: str
    area: str


@functools.cache
def rows() -> tuple[Row, ...]:
    """The lines in the order of their areas, and in each by number."""
    found = []
    for area, *columns in AREA.findall(STATUS.read_text(encoding="utf-8")):
        ids = [
            (number, f"{kind}-{number}", state)
            for state, column in zip(STATES, columns, strict=True)
            for kind, first, last in SPAN.findall(column)
            for number in range(int(first), int(last or first) + 1)
        ]
        found += [Row(id_, state, area) for _, id_, state in sorted(ids)]
    return tuple(found)


@functools.cache
def carried() -> frozenset[str]:
    """The ids that stand in a test's name or docstring."""
    return frozenset(id_ for file in sources("tests") for id_ in ID.findall(file.text))


def test_each_line_has_one_state() -> None:
    assert [id_ for id_, times in Counter(row.id for row in rows()).items() if times > 1] == []


def test_the_columns_of_the_status_have_ids_and_nothing_else() -> None:
    for _, *columns in AREA.findall(STATUS.read_text(encoding="utf-8"))[1:]:
        assert [column for column in columns if SPAN.sub("", column).strip(" ,")] == []


def test_only_what_is_partly_done_says_what_is_missing() -> None:
    """In the table below the areas, in their order."""
    listed = PARTLY.findall(STATUS.read_text(encoding="utf-8"))
    assert listed == [row.id for row in rows() if row.state == "partly"]


def test_every_line_of_the_specification_has_a_state() -> None:
    """In the same order, in the same areas, and at an anchor of its own."""
    specification = SPECIFICATION.read_text(encoding="utf-8")
    lines = LINE.findall(specification)
    assert [id_ for _, id_ in lines] == [row.id for row in rows()]
    assert [anchor for anchor, id_ in lines if anchor != id_.lower()] == []
    assert specification.count("<a id=") == len(lines), "a line that is not written like the others"
    headings = HEADING.findall(specification)
    assert headings == list(dict.fromkeys(row.area for row in rows()))


def test_the_specification_is_whole(shared: Path) -> None:
    text = (shared / "spec.md").read_text(encoding="utf-8")
    wanted = re.findall(r"^- ([A-Z]{2}-\d+) ", text, re.MULTILINE)
    assert [row.id for row in rows()] == wanted


def test_whatever_is_done_is_carried_by_a_test() -> None:
    assert {row.id for row in rows() if row.state != "not yet"} - carried() == set()


def test_the_roadmap_has_whatever_is_not_there_yet() -> None:
    """A range such as `GC-6 to GC-8` has all ids from the first to the last."""
    text = (CHECKOUT / "ROADMAP.md").read_text(encoding="utf-8")
    planned = set(ID.findall(text))
    for name, first, last in re.findall(r"\b([A-Z]{2})-(\d+) to \1-(\d+)", text):
        planned |= {f"{name}-{number}" for number in range(int(first), int(last) + 1)}
    assert {row.id for row in rows() if row.state == "not yet"} - planned == set()


def test_only_ids_that_exist_are_carried() -> None:
    """By tests, by docstrings and by pages."""
    texts = [file.text for file in everything()]
    texts += [page.read_text(encoding="utf-8") for page in CHECKOUT.glob("docs/**/*.md")]
    found = {id_ for text in texts for id_ in ID.findall(text)}
    assert found - {row.id for row in rows()} == set()
