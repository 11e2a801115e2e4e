"""`barnabas formats` as its users type it (LG-1, SP-2, UX-4)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from barnabas.cli.main import main
from barnabas_formats.catalogue import catalogue

ENTRY = "2026-03-10 10:00:00,000 ERROR [main] jobs.Nightly: Job 7 failed\n\tat jobs.Run"
HIT = '192.0.2.7 - - [10/Oct/2025:13:55:36 +0000] "GET /a HTTP/1.1" 200 5 "-" "Mozilla/5.0 (X11)"'
OWN = "[[format]]\nname = 'shop'\npattern = '{time:%d.%m.%Y %H:%M:%S}|{level}|{message}'\n"


def tried(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: str | bytes, *options: str
) -> tuple[int, list[dict[str, object]], str]:
    path = tmp_path / "a.log"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    code = main(["formats", "try", str(path), "--json", *options])
    out, err = capsys.readouterr()
    return code, [json.loads(line) for line in out.splitlines()], err


def test_lg_1_the_catalogue(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["formats", "list"]) == 0
    out = capsys.readouterr().out
    assert {tuple(line.split("\t")) for line in out.splitlines()} == {
        (each.name, each.kind, each.title, each.source) for each in catalogue()
    }
    assert main(["formats", "list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {(row["name"], row["kind"]) for row in rows} == {
        (each.name, each.kind) for each in catalogue()
    }


def test_lg_1_a_format_with_samples_and_values(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["formats", "list", "nginx"]) == 0
    assert "2026-03-10T10:00:00Z" in capsys.readouterr().out
    assert main(["formats", "list", "nginx", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert len(shown["samples"]) >= 3
    assert main(["formats", "list", "nginks"]) == 1
    assert "there is no format nginks; did you mean nginx?" in capsys.readouterr().err
    assert main(["formats", "list", "zzzz"]) == 1
    assert "there is no format zzzz; the formats are " in capsys.readouterr().err


def test_lg_1_the_formats_with_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    """A part of a name or of a title is enough to find a format."""
    assert main(["formats", "list", "ngin"]) == 0
    names = [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()]
    assert {"nginx", "nginx_main", "combined"} <= {*names} < {each.name for each in catalogue()}
    assert main(["formats", "list", "LARAVEL", "--json"]) == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)] == ["monolog"]


def test_lg_1_what_the_records_of_a_file_become(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, rows, err = tried(capsys, tmp_path, f"a note\n{ENTRY}\n{ENTRY}\n")
    assert code == 0
    assert rows[0] == {"format": "raw", "message": "a note"}
    assert rows[1:] == 2 * [
        {
            "time": "2026-03-10T10:00:00Z",
            "format": "log4j",
            "component": "jobs.Nightly",
            "level": "ERROR",
            "thread": "main",
            "message": "Job 7 failed",
            "more": "\tat jobs.Run",
        }
    ]
    assert err == (
        "3 records: log4j 2, no format 1\nrecords that match no format, such as\n  line 1: a note\n"
    )


def test_lg_1_an_access_log(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, rows, err = tried(capsys, tmp_path, f"{HIT}\n{HIT}\nnonsense\n")
    assert (code, rows[0]["format"], rows[0]["status"]) == (0, "combined", 200)
    assert rows[2]["format"] is None
    assert rows[2]["message"] == "nonsense"
    assert "combined 2, no format 1" in err


def test_lg_1_a_file_with_directives(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    columns = ("date time c-ip cs-method cs-uri-stem sc-status", "date time sc-status c-ip")
    head = "2026-03-10 10:00:00"
    code, rows, err = tried(
        capsys,
        tmp_path,
        f"#Fields: {columns[0]}\n{head} 192.0.2.7 GET /a 200\n{head} 192.0.2.7 GET /a\n"
        f"#Fields: {columns[1]}\n{head} 200 192.0.2.7\n",
    )
    assert code == 0
    assert [row["format"] for row in rows] == ["directive", "iis", None, None, None]
    assert (rows[1]["client"], rows[1]["path"]) == ("192.0.2.7", "/a")
    assert "directive 1, iis 1, no format 3" in err
    assert "a number of columns that differs from that in the file's #Fields directive" in err


def test_sp_2_a_file_that_no_format_fits_fails(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, rows, err = tried(capsys, tmp_path, b"one\ntwo\n\xff\nfour\n")
    assert code == 1
    assert rows[2] == {"format": "raw", "message": "\\xff"}
    assert "line 3: \\xff" in err
    assert "line 4" not in err, "three examples are enough"
    assert "line 1: (empty)" in tried(capsys, tmp_path, f"\n{ENTRY}\n")[2]


def test_lg_1_own_formats_and_patterns(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    line = "10.03.2026 10:00:00|warn|late\n"
    assert tried(capsys, tmp_path, line)[0] == 1
    own = tmp_path / "own.toml"
    own.write_text(OWN)
    pattern = "{time:%d.%m.%Y %H:%M:%S}|{level}|{message}"
    for options, name in ((("--formats", str(own)), "shop"), (("--pattern", pattern), "pattern")):
        code, rows, _ = tried(capsys, tmp_path, line, *options, "--zone", "Europe/Vienna")
        assert (code, rows) == (
            0,
            [
                {
                    "time": "2026-03-10T09:00:00Z",
                    "format": name,
                    "level": "WARN",
                    "message": "late",
                }
            ],
        )


def test_lg_1_hours_from_1_to_12(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    clocks = (
        "12:00:01 AM",
        "1:00:01 am",
        "12:00:01 PM",
        " 1:00:01 PM",
        "11:00:01 pm",
        "13:00:01 PM",
    )
    lines = "".join(f"3/10/2026 {clock} a\n" for clock in clocks)
    pattern = "{time:%m/%d/%Y %I:%M:%S %p} {message}"
    code, rows, _ = tried(capsys, tmp_path, lines, "--pattern", pattern)
    hours = [str(row.get("time"))[11:13] for row in rows[:5]]
    assert (code, hours) == (0, ["00", "01", "12", "13", "23"])
    assert rows[5]["reason"] == "the line has an impossible time (pattern)"


GATE = "192.0.2.7|2026-03-10 10:00:00|GET|/a|200\n"
GATE_PATTERN = "{client}|{time:%Y-%m-%d %H:%M:%S}|{method}|{path}|{status}"
GATE_FORMAT = f"[[format]]\nname = 'gate'\nkind = 'access'\npattern = '{GATE_PATTERN}'\n"


def test_lg_1_own_formats_of_access_logs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert tried(capsys, tmp_path, GATE)[0] == 1
    own = tmp_path / "own.toml"
    own.write_text(GATE_FORMAT + OWN)
    for options, name in (
        (("--formats", str(own)), "gate"),
        (("--pattern", GATE_PATTERN), "pattern"),
        (("--formats", str(own), "--format", "gate"), "gate"),
    ):
        code, rows, _ = tried(
            capsys, tmp_path, f"{GATE}{HIT}\n", *options, "--zone", "Europe/Vienna"
        )
        assert (code, rows[0]["format"], rows[0]["time"]) == (0, name, "2026-03-10T09:00:00Z")
        assert rows[1]["format"] == ("raw" if "--format" in options else "combined")
    code, rows, _ = tried(
        capsys, tmp_path, "10.03.2026 10:00:00|warn|late\n", "--formats", str(own)
    )
    assert (code, rows[0]["format"]) == (0, "shop"), "the file has formats of both kinds"


def test_lg_1_the_notation_of_nginx(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """LG-1: the columns of a `log_format` are found as nginx writes them."""
    line = (
        '192.0.2.7 [2025-10-10T13:55:36+02:00] "GET /a HTTP/1.1" 200 "10.0.0.1, 10.0.0.2"'
        ' "a \\x22b" 0.012 x\n'
    )
    given = """log_format timed '$remote_addr [$time_iso8601] "$request" '
        '$status "$http_x_forwarded_for" "$http_user_agent" $request_time x';"""
    code, rows, _ = tried(capsys, tmp_path, line, "--pattern", given)
    assert (code, rows[0]) == (
        0,
        {
            "time": "2025-10-10T11:55:36Z",
            "format": "pattern",
            "client": "192.0.2.7",
            "method": "GET",
            "path": "/a",
            "protocol": "HTTP/1.1",
            "status": 200,
            "agent": r"a \x22b",
            "response_time_us": 12_000,
        },
    )


def test_lg_1_one_format(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, rows, _ = tried(capsys, tmp_path, f"{ENTRY}\n", "--format", "nginx")
    assert (code, rows[0]["format"]) == (1, "raw")
    assert tried(capsys, tmp_path, f"{HIT}\n", "--format", "common")[0] == 1
    assert tried(capsys, tmp_path, f"{HIT}\n", "--format", "combined")[0] == 0


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (("--format", "nope"), "there is no format nope"),
        (("--format", "ngnix"), "there is no format ngnix; did you mean nginx"),
        (("--zone", "Mars"), "'Mars' is not a time zone"),
        (("--pattern", "{time}"), "has no format"),
    ],
)
def test_ux_4_what_is_wrong_with_the_options(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, options: tuple[str, ...], what: str
) -> None:
    code, rows, err = tried(capsys, tmp_path, "x\n", *options)
    assert (code, rows) == (1, [])
    assert what in err


def test_ux_4_files_that_cannot_be_read(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["formats", "try", str(tmp_path / "none.log")]) == 1
    assert "none.log" in capsys.readouterr().err
    code, _, err = tried(capsys, tmp_path, "")
    assert code == 1
    assert "there are no lines in " in err


def test_ux_4_nothing_of_a_log_controls_a_terminal(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "a.log").write_bytes(
        b"2026-03-10 10:00:00,000 ERROR [main] a.B: \x1b[31mred\n\x1b]0;title\x07\n"
        b'{"time":"2026-03-10T10:00:00Z","level":"info","msg":"\\u001b[1m \\ud800"}\n'
    )
    assert main(["formats", "try", str(tmp_path / "a.log")]) == 0
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err
    assert r"\x1b[31mred" in out
    assert r"\x1b[1m ?" in out


def test_ux_4_without_the_extra(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "barnabas_pipeline.trial", None)
    assert tried(capsys, tmp_path, "x\n")[0] == 1
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "barnabas_pipeline.trial", None)
    assert main(["formats", "try", str(tmp_path / "a.log")]) == 1
    assert "pip install" in capsys.readouterr().err
    assert main(["formats", "list"]) == 0
