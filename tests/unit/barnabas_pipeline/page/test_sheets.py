"""Files beside a page."""

from __future__ import annotations

import csv
import io
import json
from datetime import datetime
from pathlib import Path

from barnabas_pipeline.page import sheets
from barnabas_pipeline.page.page import PageOptions
from barnabas_pipeline.page.sheets import Sheet

OPTIONS = PageOptions(datetime.fromisoformat("2026-03-16T12:00:05+01:00"))
SHEETS = [
    Sheet("pages", ("path", "views"), [('/"a",\n', 3), ("/b", None)]),
    Sheet("none", ("x",), []),
]


def test_a_file_for_each_sheet_and_one_for_all(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    for _ in range(2):
        sheets.write(page, SHEETS, OPTIONS)
    folder = tmp_path / "report-data"
    assert sorted(file.name for file in folder.iterdir()) == [
        "none.csv",
        "pages.csv",
        "report.json",
    ]
    with (folder / "pages.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [["path", "views"], ['/"a",\n', "3"], ["/b", ""]]
    assert json.loads((folder / "report.json").read_text("utf-8")) == {
        "made_at": "2026-03-16T12:00:05+01:00",
        "pages": [{"path": '/"a",\n', "views": 3}, {"path": "/b", "views": None}],
        "none": [],
    }


def test_no_spreadsheet_computes_what_a_stranger_wrote() -> None:
    sheet = Sheet("robots", ("robot", "hits"), [("=cmd|'/c calc'!A1", -1), ("@a", 2), ("a=1", 3)])
    rows = list(csv.reader(io.StringIO(sheets.csv_of(sheet))))
    assert rows[1:] == [["'=cmd|'/c calc'!A1", "-1"], ["'@a", "2"], ["a=1", "3"]]
