"""Writes a page's figures to files next to it: a CSV file per table, and a JSON file for all
tables.

Text from a client (a path, a referrer, a user agent) may look like a formula, which a spreadsheet
would evaluate. In the CSV files, such text is prefixed with an apostrophe.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from barnabas_pipeline.page import page
from barnabas_pipeline.page.page import PageOptions

Cell = str | int | float | None

JSON: Final = "report.json"

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


class Sheet(NamedTuple):
    """One table of figures."""

    name: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]

    @property
    def file(self) -> str:
        return f"{self.name}.csv"


def folder_of(path: Path) -> Path:
    """Return the folder for the files of the page at this path."""
    return path.with_name(f"{path.stem}-data")


def write(path: Path, sheets: Sequence[Sheet], options: PageOptions) -> None:
    """Write the files of the page at this path, each atomically."""
    folder = folder_of(path)
    folder.mkdir(exist_ok=True)
    for sheet in sheets:
        page.write(folder / sheet.file, csv_of(sheet))
    page.write(folder / JSON, json_of(sheets, options))


def csv_of(sheet: Sheet) -> str:
    """Return the sheet as CSV, with a header."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(sheet.columns)
    writer.writerows([safe_cell(cell) for cell in row] for row in sheet.rows)
    return text.getvalue()


def json_of(sheets: Sequence[Sheet], options: PageOptions) -> str:
    """Return a JSON object with a list of objects for each sheet."""
    rows = {
        sheet.name: [dict(zip(sheet.columns, row, strict=True)) for row in sheet.rows]
        for sheet in sheets
    }
    made_at = options.made_at.isoformat(timespec="seconds")
    return json.dumps({"made_at": made_at, **rows}, ensure_ascii=False, indent=1) + "\n"


def safe_cell(cell: Cell) -> Cell:
    """Return a cell that no spreadsheet evaluates."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell
