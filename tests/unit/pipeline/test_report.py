"""The report of a site without a visitor: a page all the same, and one that stands alone."""

from __future__ import annotations

import re
from pathlib import Path

from barnabas.pipeline.figures import read_figures
from barnabas.pipeline.report import write_report


def test_a_page_without_hits_is_a_page(tmp_path: Path) -> None:
    """SP-5: it needs no network, no script and no other file."""
    path = tmp_path / "report.html"
    write_report(path, read_figures(tmp_path / "tables"))
    page = path.read_text("utf-8")
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert "<script" not in page
    assert not re.search(r'(?:src|href)="(?!#|data:)', page)
    assert not re.search(r"url\((?!#|data:|'data:)", page)
