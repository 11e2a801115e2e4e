"""The page of system logs: it stands alone, gives no address away, and bears hostile input."""

from __future__ import annotations

import csv
import json
from datetime import datetime
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from barnabas_pipeline.__main__ import main
from barnabas_pipeline.logs.definition import LOGS
from barnabas_pipeline.logs.figures import Figures, read_figures
from barnabas_pipeline.logs.generator import generate
from barnabas_pipeline.logs.headlines import summary
from barnabas_pipeline.logs.report import render, write_report
from barnabas_pipeline.logs.sheets import sheets
from barnabas_pipeline.page.page import PageOptions
from barnabas_pipeline.snapshot import Snapshot
from barnabas_pipeline.tables import Tables
from tests.kit.parsed_page import Page
from tests.kit.pipeline.log_records import records, send, write

OPTIONS = PageOptions(datetime.fromisoformat("2026-03-16T12:00:05+00:00"))
HOSTILE = "<script>alert(1)</script>"


def page_of(figures: Figures, options: PageOptions) -> str:
    return render(figures, options, sheets(figures), "report-data")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the generated logs, and of what somebody would like to have in the page."""
    directory = tmp_path_factory.mktemp("of-logs") / "tables"
    files = generate(20_000, seed=11)
    files["notes.txt"][:2] = [HOSTILE.encode(), b"from 198.51.100.23 and 2001:db8:1:2::7"]
    files["198.51.100.23.log"] = [b"a note", b"260231 101500 17 INFO a.B: no text: \xff"]
    files["storage.log"][:1] = [f"260312 060000 1 INFO {HOSTILE}: {HOSTILE}".encode()]
    files["auth.log"] += [
        f"2026-03-12T17:00:0{n}Z gate sshd[1]: Failed password for {HOSTILE} from 192.0.2.77"
        " port 1 ssh2".encode()
        for n in range(6)
    ]
    parts = [records(name, each, at) for at, (name, each) in enumerate(sorted(files.items()))]
    write(Tables(directory, LOGS), 0, pa.concat_tables(parts), send)
    return directory


@pytest.mark.thorough
def test_sp_5_the_page_says_what_is_going_on(tables: Path) -> None:
    """SP-5"""
    page = Page(page_of(read_figures(Snapshot(tables, LOGS)), OPTIONS))
    for expected in (
        "Thursday, 12 March 2026",
        "Payment of order <num> failed",
        "got in as git",
        "search.indexer",
        "Remounting <path> read-only after I/O errors",
        "the line has an impossible time (hdfs)",
        "Made on 16 March 2026",
    ):
        assert expected in page.text, expected


@pytest.mark.thorough
def test_sp_2_the_page_counts_the_formats_found_and_shows_what_none_fits(tables: Path) -> None:
    figures = read_figures(Snapshot(tables, LOGS))
    page = Page(page_of(figures, OPTIONS))
    assert "Formats found" in page.text
    assert "Syslog: RFC 5424, RFC 3164 and rsyslog's files" in page.text
    assert f"Raw entries: {figures.raw_lines:,}" in page.text
    assert page_of(figures, OPTIONS).count('<div class="where">notes.txt') <= 3
    assert page.text.index("System logs of gate") < page.text.index("Needs attention")


def test_sp_5_a_sheet_counts_entries_and_no_lines(tables: Path) -> None:
    """SP-5: an entry may have many lines, so a column of entries is not called lines."""
    made = sheets(read_figures(Snapshot(tables, LOGS)))
    assert "lines" not in {column for sheet in made for column in sheet.columns}


@pytest.mark.thorough
def test_nothing_of_a_log_is_code_and_no_address_or_path_is_whole(tables: Path) -> None:
    text = page_of(read_figures(Snapshot(tables, LOGS)), OPTIONS)
    assert HOSTILE not in text and HOSTILE in Page(text).text
    for secret in ("198.51.100.23", "2001:db8:1:2::7", "192.0.2.77", "203.0.113.18", "/logs/"):
        assert secret not in text, secret
    figures = read_figures(Snapshot(tables, LOGS), show_addresses=True)
    shown = page_of(figures, OPTIONS._replace(show_addresses=True))
    assert all(each in shown for each in ("192.0.2.77", "198.51.100.23", "198.51.100.23.log"))


def test_its_files_have_its_figures_and_every_link_leads_to_one(
    tables: Path, tmp_path: Path
) -> None:
    path = tmp_path / "report.html"
    figures = read_figures(Snapshot(tables, LOGS))
    write_report(path, figures, OPTIONS)
    links = Page(path.read_text()).files
    assert len(links) > 9 and all((tmp_path / each).is_file() for each in links)
    data = json.loads((tmp_path / "report-data" / "report.json").read_text())
    assert data["made_at"] == "2026-03-16T12:00:05+00:00"
    assert [each["entries"] for each in data["templates"]] == [
        each.lines for each in figures.templates
    ]
    assert {each["address"] for each in data["ssh_guessing"]} == {"203.0.113.x", "192.0.2.x"}
    with (tmp_path / "report-data" / "levels.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert sum(int(row["entries"]) for row in rows) == figures.lines
    assert {name for name in data if name != "made_at"} == {
        file.stem for file in (tmp_path / "report-data").glob("*.csv")
    }


def test_a_page_of_nothing(tmp_path: Path) -> None:
    figures = read_figures(Snapshot(tmp_path / "tables", LOGS))
    assert "nothing yet" in Page(page_of(figures, OPTIONS)).text
    assert summary(figures)[0] == ("formats", "none")


def test_ux_4_formats_and_zones_that_cannot_be_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["report", "--out", str(tmp_path)]
    for pipeline in ("behaviour", "logs"):
        assert main([*given, "--formats", "x.toml", "--pipeline", pipeline]) == 1
        assert "x.toml: No such file or directory" in capsys.readouterr().err
    assert main([*given, "--zone", "UTC"]) == 1
    assert "--zone is for --pipeline logs or --formats" in capsys.readouterr().err
