"""The headlines of the page of system logs, counted again from its own files (SP-5)."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from barnabas_pipeline.accounts import Accounts
from barnabas_pipeline.logs.definition import LOGS
from barnabas_pipeline.logs.figures import read_figures
from barnabas_pipeline.logs.generator import generate
from barnabas_pipeline.logs.headlines import headlines, summary
from barnabas_pipeline.logs.report import write_report
from barnabas_pipeline.page.page import PageOptions
from barnabas_pipeline.snapshot import Snapshot
from barnabas_pipeline.tables import Tables
from tests.kit.parsed_page import Page
from tests.kit.pipeline.log_records import records, send, write

OPTIONS = PageOptions(datetime.fromisoformat("2026-03-16T12:00:05+00:00"))
SSH = (
    *("Failed password for root from 192.0.2.77 port 1 ssh2",) * 6,
    "Accepted password for root from 192.0.2.77 port 1 ssh2",
    "Failed password for anna from 192.0.2.78 port 1 ssh2",
    *(f"Accepted publickey for anna from 198.51.100.{n} port 1 ssh2" for n in range(30)),
    # What PAM says is the same attempt again where sshd says it, and the only word elsewhere.
    "pam_unix(sshd:auth): authentication failure; rhost=192.0.2.77  user=root",
)
ALONE = "authentication failure; logname= uid=0 rhost=203.0.113.9  user=root"


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("headlines")
    files = generate(20_000, seed=11)
    files["auth.log"] += [f"Mar 12 17:00:00 gate sshd[1]: {each}".encode() for each in SSH]
    files["old.log"] = [f"Mar 12 17:00:00 old sshd(pam_unix)[1]: {ALONE}".encode()]
    parts = [records(name, each, at) for at, (name, each) in enumerate(sorted(files.items()))]
    write(Tables(directory / "tables", LOGS), 0, pa.concat_tables(parts), send)
    write_report(
        directory / "report.html", read_figures(Snapshot(directory / "tables", LOGS)), OPTIONS
    )
    return directory


@pytest.fixture(scope="module")
def data(out: Path) -> dict[str, list[dict[str, Any]]]:
    read: dict[str, Any] = json.loads((out / "report-data" / "report.json").read_text())
    return {name: rows for name, rows in read.items() if name != "made_at"}


def total(rows: list[dict[str, Any]], column: str, **wanted: object) -> int:
    """The sum of a column over the rows that have these values."""
    return sum(
        int(row[column]) for row in rows if all(row[key] == value for key, value in wanted.items())
    )


@pytest.mark.thorough
def test_sp_5_each_headline_is_what_the_tables_below_it_say(
    data: dict[str, list[dict[str, Any]]],
) -> None:
    """SP-5: all numbers of the headlines, from the rows of the page's files."""
    levels, logins, guessing = data["levels"], data["ssh_logins"], data["ssh_guessing"]
    again = {
        "entries": total(levels, "entries"),
        "formats": len({row["format"] for row in levels} - {"raw"}),
        "hosts": len(data["hosts"]),
        "errors": total(levels, "entries", level="ERROR") + total(levels, "entries", level="FATAL"),
        "templates": len(data["templates"]),
        "new_templates": len(data["new_templates"]),
        "bursts": len({row["number"] for row in data["bursts"]}),
        "silent_components": len(data["silent_components"]),
        "components": len(data["components"]),
        "failed_logins": total(logins, "failed"),
        "failed_addresses": sum(row["failed"] > 0 for row in logins),
        "accepted_logins": total(logins, "accepted"),
        "break_ins": sum(bool(row["entered_as"]) for row in guessing),
        "guessing_addresses": len(guessing),
        "raw_entries": total(levels, "entries", format="raw"),
    }
    assert {row["figure"]: row["total"] for row in data["summary"]} == again
    assert min(again.values()) > 0, "each is tested with something"
    assert total(data["hosts"], "entries") == again["entries"]
    assert total(data["components"], "errors") <= again["errors"]
    assert {row["template"] for row in data["new_templates"]} <= {
        row["template"] for row in data["templates"]
    }
    assert total(data["accounts"], "valid") == again["entries"], "an entry is a valid record"


def test_failed_logins_are_counted_without_those_that_succeeded(
    data: dict[str, list[dict[str, Any]]], out: Path
) -> None:
    """The addresses of accepted ones are no addresses of failed ones."""
    logins = data["ssh_logins"]
    by_address = {
        each.address: each
        for each in read_figures(Snapshot(out / "tables", LOGS), show_addresses=True).logins
    }
    assert by_address["192.0.2.77"][1:3] == (6, 1)
    assert by_address["192.0.2.78"][1:3] == (1, 0)
    assert by_address["203.0.113.9"][1:3] == (1, 0)
    assert by_address["198.51.100.7"][1:3] == (0, 1)
    assert len(logins) == len(by_address) and "192.0.2.77" not in str(logins)
    for row in data["ssh_guessing"]:
        assert row["failures"] in [each["failed"] for each in logins]


def test_page_and_terminal_say_the_same(data: dict[str, list[dict[str, Any]]], out: Path) -> None:
    page = Page((out / "report.html").read_text()).text
    figures = read_figures(Snapshot(out / "tables", LOGS))
    for each in headlines(figures):
        assert f"{each.total:,} {each.label} {each.about}" in page, each
    of = {row["figure"]: row["total"] for row in data["summary"]}
    lines = dict(summary(figures))
    assert (
        f"{of['templates']:,}, {of['new_templates']:,} of them new; {of['errors']:,} errors"
        in (lines["templates"])
    )
    assert lines["ssh"].startswith(
        f"{of['failed_logins']:,} failed logins from {of['failed_addresses']:,} addresses;"
        f" {of['guessing_addresses']:,} guessed"
    )
    read = sum(row["read"] for row in data["accounts"])
    assert f"{read:,} records read =" in page and "Every record accounted for" in page
    assert figures.accounts == Accounts(*(total(data["accounts"], n) for n in Accounts._fields))
