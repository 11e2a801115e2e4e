"""W3C's format without and with the columns of its directive (SP-2, LG-1)."""

from __future__ import annotations

import polars as pl
import pytest

from barnabas_formats.format import Format
from barnabas_formats.user_formats import w3c_format
from barnabas_pipeline.behaviour.access_lines import parse_lines, values

HEAD = "2026-03-10 10:00:00 10.0.0.5 GET /a id=7 443 -"
AGENT = "Mozilla/5.0+(X11;+Linux)"
REFERRER = "https://www.example.com/"
COLUMNS = "columns that differ from those of the format that the line begins with"


def parsed(*lines: str, own: tuple[Format, ...] = ()) -> list[dict[str, object]]:
    raw = pl.Series([line.encode() for line in lines], dtype=pl.Binary)
    rows = parse_lines(raw, pl.Series([False] * len(lines), dtype=pl.Boolean), own)
    return [
        {"reason": row["reason"]} if row["reason"] else values(row)
        for row in rows.iter_rows(named=True)
    ]


@pytest.mark.parametrize(
    "line",
    [
        # as many columns as the default, but a host, a cookie or a version in place of the referrer
        f"{HEAD} 192.0.2.7 {AGENT} www.example.com 200 0 0 15",
        f"{HEAD} 192.0.2.7 {AGENT} www.example.com:8443 200 0 0 15",
        f"{HEAD} 192.0.2.7 {AGENT} session=https://a.example.com/ 200 0 0 15",
        f"{HEAD} 192.0.2.7 HTTP/1.1 {AGENT} 200 0 0 15",
        # the same in place of the agent, with and without a referrer
        f"{HEAD} 192.0.2.7 www.example.com:8443 200 0 0 15",
        f"{HEAD} 192.0.2.7 www.example.com 200 0 0 15",
        f"{HEAD} 192.0.2.7 session=1;+way=a/b 200 0 0 15",
        f"{HEAD} 192.0.2.7 {REFERRER} 200 0 0 15",
        f"{HEAD} 192.0.2.7 {REFERRER} - 200 0 0 15",
        f"{HEAD} 192.0.2.7 session=1 {REFERRER} 200 0 0 15",
        # without the referrer and the time taken, and with both sizes
        f"{HEAD} 192.0.2.7 {AGENT} 200 0 0 512 640",
        # without the time taken
        f"{HEAD} 192.0.2.7 {AGENT} {REFERRER} 200 0 0",
        # without the time taken, and with a forwarded address at the end
        f"{HEAD} 192.0.2.7 {AGENT} {REFERRER} 200 0 0 192.0.2.9",
        f"{HEAD} 192.0.2.7 {AGENT} {REFERRER} 200 0 0 -",
        # without the user, and with the version
        f"2026-03-10 10:00:00 10.0.0.5 GET /a - 443 192.0.2.7 HTTP/1.1 {AGENT} - 200 0 0 15",
        # the order of IIS 5 and 6
        f"2026-03-10 10:00:00 192.0.2.7 anna 10.0.0.5 80 GET /a - 200 0 512 640 15 {AGENT}",
        f"2026-03-10 10:00:00 192.0.2.7 - W3SVC1 WEB01 10.0.0.5 80 GET /a - 200 0 1 2 {AGENT}",
        # all columns but one, and a forwarded address at the end
        f"2026-03-10 10:00:00 W3SVC1 WEB01 10.0.0.5 GET /a - 443 - 192.0.2.7 HTTP/2.0 {AGENT}"
        f" {REFERRER} www.example.com 404 100 0 512 640 15 192.0.2.9",
        f"2026-03-10 10:00:00 W3SVC1 WEB01 10.0.0.5 GET /a - 443 - 192.0.2.7 HTTP/2.0 {AGENT}"
        f" - {REFERRER} 404 100 0 512 640 15 -",
    ],
)
def test_sp_2_other_columns_in_the_same_number_are_rejected(line: str) -> None:
    assert parsed(line) == [{"reason": COLUMNS}]


@pytest.mark.parametrize(
    "agent", ["-", "curl/8.5.0", "Microsoft+Office+Existence+Discovery", "kube-probe/1.29"]
)
def test_sp_2_the_default_columns(agent: str) -> None:
    """The last column may be a size instead of the time taken, so it says nothing."""
    row = {
        "format": "iis",
        "time": "2026-03-10T10:00:00Z",
        "client": "192.0.2.7",
        "method": "GET",
        "path": "/a",
        "query": "id=7",
        "status": 200,
        **({} if agent == "-" else {"agent": agent.replace("+", " ")}),
    }
    assert parsed(
        f"{HEAD} 192.0.2.7 {agent} 200 0 0 15", f"{HEAD} 192.0.2.7 {agent} {REFERRER} 200 0 0 15"
    ) == [row, {**row, "referrer": REFERRER}]


FIELDS = "#Fields: date time c-ip cs-username cs-method cs-uri-stem cs-uri-query sc-status"
OWN = w3c_format(
    "ours",
    f"{FIELDS} sc-bytes time-taken cs(User-Agent) cs(Cookie) cs(Host) cs-host X-Forwarded-For",
)


def test_lg_1_the_columns_of_a_users_own_directive() -> None:
    line = (
        "2026-03-10 10:00:00 192.0.2.7 EXAMPLE\\anna GET /a b=c 200 512 15"
        ' Mozilla/5.0+("X11") k=v;+l=w www.example.com:80 - 192.0.2.9'
    )
    directive = f"{FIELDS} sc-bytes time-taken cs(User-Agent) cs(Cookie) cs(Host) cs-host"
    in_seconds = line.replace(" 15 ", " 0.015 ")
    rows = parsed(
        line, f"{directive} X-Forwarded-For", directive, f"{line} 1", in_seconds, own=(OWN,)
    )
    assert rows == [
        {
            "format": "ours",
            "time": "2026-03-10T10:00:00Z",
            "client": "192.0.2.7",
            "user": "EXAMPLE\\anna",
            "method": "GET",
            "path": "/a",
            "query": "b=c",
            "status": 200,
            "bytes": 512,
            "agent": 'Mozilla/5.0 ("X11")',
            "virtual_host": "www.example.com",
            "response_time_us": 15_000,
        },
        {"format": "directive"},
        {"reason": COLUMNS},
        {"reason": COLUMNS},
        {"reason": COLUMNS},
    ]
