"""`barnabas report` as its users type it (LG-5, UX-4)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.cli.main import main
from barnabas_pipeline.behaviour.definition import BEHAVIOUR
from barnabas_pipeline.logs.definition import LOGS
from barnabas_pipeline.snapshot import Snapshot
from tests.kit.pipeline.otlp_requests import AT_NS, as_json, request

HIT = '192.0.2.7 - - [10/Oct/2025:13:55:36 +0000] "GET /a HTTP/1.1" 200 5 "-" "Mozilla/5.0 (X11)"'
ENTRY = "2026-03-10 10:00:00,000 ERROR [main] jobs.Nightly: Job 7 failed\n\tat jobs.Run"


@pytest.fixture(autouse=True)
def _in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(name: str, text: str) -> str:
    Path(name).write_text(text, "utf-8")
    return name


def test_lg_5_an_access_log(capsys: pytest.CaptureFixture[str]) -> None:
    """LG-5: its kind is recognised, and the page lies where it was run."""
    log = written("access.log", f"{HIT}\n" * 3)
    assert main(["report", log]) == 0
    out = capsys.readouterr().out
    assert "read 3 = valid 3 + dead letters 0 + sent twice 0" in out
    assert "1 visitor" in out and "report.html" in out
    page = Path("report.html").read_text("utf-8")
    assert "192.0.2.7" not in page
    assert Path("report-data").is_dir()


@pytest.mark.thorough
def test_lg_5_system_logs_with_tables(capsys: pytest.CaptureFixture[str]) -> None:
    Path("logs").mkdir()
    written("logs/jobs.log", f"{ENTRY}\n" * 2)
    written("logs/.hidden", "no log\n")
    assert main(["report", "logs", "--tables", "tables", "-o", "page.html"]) == 0
    assert "records     read 2 = valid 2" in capsys.readouterr().out
    entries = Snapshot(Path("tables").absolute(), LOGS).frame("entries")
    assert entries["level"].to_list() == ["ERROR"] * 2
    assert entries["more"].to_list() == ["\tat jobs.Run"] * 2
    assert entries["format"].to_list() == ["log4j"] * 2
    assert Path("page.html").exists()


def test_sp_2_system_logs_that_no_format_fits(capsys: pytest.CaptureFixture[str]) -> None:
    log = written("notes.log", "one note\nanother\n")
    assert main(["report", log, "--kind", "system"]) == 1
    assert "no known format fits any of 2 records; such as notes.log, line 1: one note" in (
        capsys.readouterr().err
    )
    assert Path("report.html").exists()


@pytest.mark.thorough
def test_the_zone_of_system_logs(capsys: pytest.CaptureFixture[str]) -> None:
    log = written("jobs.log", f"{ENTRY}\n")
    assert main(["report", log, "--zone", "Europe/Vienna", "--tables", "tables"]) == 0
    entries = Snapshot(Path("tables").absolute(), LOGS).frame("entries")
    assert f"{entries['time'][0]:%H:%M}" == "09:00"
    assert main(["report", log, "--zone", "Mars"]) == 1
    assert "'Mars' is not a time zone" in capsys.readouterr().err
    assert main(["report", written("access.log", HIT), "--zone", "UTC"]) == 2


GATE = """
[[format]]
name = "gate"
kind = "access"
pattern = "{client}|{time:%Y-%m-%d %H:%M:%S}|{method}|{path}|{status}|{agent}"
"""


def test_lg_1_own_formats_of_access_logs() -> None:
    own = written("own.toml", GATE)
    gate = "192.0.2.7|2026-03-10 10:00:00|GET|/a|200|Mozilla/5.0 (X11)\n"
    log = written("gate.log", f"{gate}nonsense\n{HIT}\n")
    words = ["report", log, "--formats", own, "--zone", "Europe/Vienna", "--tables", "tables"]
    assert main(words) == 0
    events = Snapshot(Path("tables").absolute(), BEHAVIOUR).frame("events")
    assert events["time"].dt.hour().to_list() == [9, 13]
    formats = (Path("report-data") / "formats.csv").read_text("utf-8")
    assert "gate,1" in formats


def test_lg_3_records_are_joined_by_the_rules_of_formats(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = written("jobs.log", f"{ENTRY}\nshop.Declined: no\n\nDuring x:\n{ENTRY}\n")
    assert main(["report", log]) == 0
    assert "read 2 = valid 2" in capsys.readouterr().out


def test_lg_2_a_file_of_the_opentelemetry_collector(capsys: pytest.CaptureFixture[str]) -> None:
    """LG-2: its file exporter writes a request a line; each log record counts as a record."""
    sent = request(
        {"severity_number": 17, "body": "Job 7 failed", "time_unix_nano": AT_NS},
        {"body": ENTRY, "observed_time_unix_nano": AT_NS},
        {"body": "late", "time_unix_nano": 2**63},
        resource={"service.name": "jobs"},
    )
    line = as_json(sent).decode().replace('": ', '":')
    log = written("logs.json", f'{line}\n{line}\n{{"resourceLogs":[{{}}]}}\n{ENTRY}\n')
    assert main(["report", log, "--tables", "tables"]) == 0
    assert "records     read 8 = valid 5 + dead letters 3 + sent twice 0" in capsys.readouterr().out
    snapshot = Snapshot(Path("tables").absolute(), LOGS)
    entries = snapshot.frame("entries").sort("position", "item")
    columns = ("format", "level", "service", "component", "message", "more", "line", "item")
    first = ("otlp", "ERROR", "jobs", "jobs", "Job 7 failed", None)
    second = ("otlp", "ERROR", "jobs", "jobs.Nightly", "Job 7 failed", "\tat jobs.Run")
    assert entries.select(columns).rows() == [
        *((*first, 1, 0), (*second, 1, 1), (*first, 2, 0), (*second, 2, 1)),
        ("log4j", "ERROR", None, "jobs.Nightly", "Job 7 failed", "\tat jobs.Run", 4, None),
    ]
    assert snapshot.reasons() == {
        "the log record has an impossible time (otlp)": 2,
        "the OTLP record has no log records": 1,
    }
    # Without tables, the page is the same.
    assert main(["report", log, "-o", "without.html"]) == 0
    pages = [Path(f"{name}-data", "levels.csv").read_text() for name in ("report", "without")]
    assert pages[0] == pages[1]


@pytest.mark.thorough
def test_lg_5_the_tables_are_those_in_memory() -> None:
    """LG-5: the page is the same with tables and without."""
    log = written("access.log", f"{HIT}\nnonsense\n{HIT.replace('/a', '/b')}\n")
    assert main(["report", log, "--tables", "tables", "-o", "with.html"]) == 0
    assert main(["report", log, "-o", "without.html"]) == 0
    pages = [(Path(f"{name}-data") / "traffic.csv").read_text() for name in ("with", "without")]
    assert pages[0] == pages[1]
    snapshot = Snapshot(Path("tables").absolute(), BEHAVIOUR)
    assert snapshot.frame("events")["path"].to_list() == ["/a", "/b"]
    assert snapshot.frame("dead_letters")["value"].to_list() == [b"nonsense"]


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", written("access.log", f"{HIT}\n"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["kind"], found["read"], found["page"]) == ("access", 1, "report.html")


@pytest.mark.thorough
def test_standard_input() -> None:
    """Its kind is recognised without losing its first lines."""
    text = f"{HIT}\n" * 20_000
    done = subprocess.run(
        [sys.executable, "-m", "barnabas.cli.main", "report", "-"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "read 20,000 = valid 20,000" in done.stdout


def test_several_files_and_patterns(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("access.log", "access.log.1", "other.txt"):
        written(name, f"{HIT}\n")
    assert main(["report", "access.log", "access.log*"]) == 0
    assert "read 2 = valid 2" in capsys.readouterr().out, "a file that is named twice counts once"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 2, "Missing argument"),
        (["missing.log"], 1, "cannot read missing.log: there is no such file or directory"),
        (["empty"], 1, "there are no files in empty"),
        (["nothing.log"], 1, "there are no lines in nothing.log"),
        (["bad.log", "--kind", "access"], 1, "none of 2 lines is valid: 2 not an access log"),
        (
            ["bad.log", "--formats", "f.toml"],
            1,
            "f.toml: the file must contain at least one [[format]] table",
        ),
        (["bad.log", "--kind", "access", "--formats", "s.toml"], 1, "no format for access logs"),
        (["good.log", "--tables", "full"], 1, "full is not empty: --tables needs a new directory"),
        (["good.log", "-o", "nowhere/page.html"], 1, "nowhere"),
    ],
)
def test_ux_4_what_cannot_be_reported_on(
    words: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """UX-4: what, where, and what to do."""
    Path("empty").mkdir()
    Path("full").mkdir()
    written("full/file", "")
    written("nothing.log", "")
    written("bad.log", "one\ntwo\n")
    written("good.log", f"{HIT}\n")
    written("f.toml", "")
    written("s.toml", "[[format]]\nname = 's'\npattern = '{level}: {message}'\n")
    assert main(["report", *words]) == code
    out, err = capsys.readouterr()
    assert message in err
    if "nothing.log" in words:
        assert (out, Path("report.html").exists()) == ("", False), "there is nothing to show"
