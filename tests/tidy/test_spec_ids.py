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
STATES = {"done", "partly", "not yet"}

ROW = re.compile(r"^\| ([A-Z]{2}-\d+) \| ([^|]+) \| ([^|]+) \|([^|]*)\|$", re.MULTILINE)
LINE = re.compile(r'^- <a id="([a-z]{2}-\d+)"></a>\*\*([A-Z]{2}-\d+)\*\* \S', re.MULTILINE)
HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
ID = re.compile(r"\b(?:TP|PR|CO|AS|GC|ST|RE|ZK|DL|SE|SP|BT|LG|UX|TK|IN|MX|ZS|SH)-\d+\b")


class Row(NamedTuple):
    """One line of the status: what it is about, how far it is, what is missing."""

    id: str
    state: str
    subject: str
    missing: str


def rows() -> list[Row]:
    found = ROW.findall(STATUS.read_text(encoding="utf-8"))
    return [Row(*map(str.strip, columns)) for columns in found]


@functools.cache
def carried() -> frozenset[str]:
    """The ids that stand in a test's name or docstring."""
    return frozenset(id_ for file in sources("tests") for id_ in ID.findall(file.text))


def test_each_line_has_one_state_that_we_know() -> None:
    assert [id_ for id_, times in Counter(row.id for row in rows()).items() if times > 1] == []
    assert {row.state for row in rows()} <= STATES


def test_only_what_is_partly_done_says_what_is_missing() -> None:
    assert [row for row in rows() if (row.state == "partly") != bool(row.missing)] == []


def test_every_line_of_the_specification_has_a_state() -> None:
    """In the same order, below the same headings, and at an anchor of its own."""
    specification, status = (page.read_text(encoding="utf-8") for page in (SPECIFICATION, STATUS))
    lines = LINE.findall(specification)
    assert [id_ for _, id_ in lines] == [row.id for row in rows()]
    assert [anchor for anchor, id_ in lines if anchor != id_.lower()] == []
    assert specification.count("<a id=") == len(lines), "a line that is not written like the others"
    headings = HEADING.findall(specification)
    assert headings == HEADING.findall(status)[: len(headings)]


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
