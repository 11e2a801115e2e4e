"""A user's own formats of access logs (LG-1, SP-2)."""

from __future__ import annotations

import polars as pl
import pytest

from barnabas_formats.format import Format
from barnabas_formats.user_formats import own_format
from barnabas_pipeline.behaviour import lines
from barnabas_pipeline.behaviour.access_lines import parse_lines, values
from tests.kit.pipeline.web_records import record, table

GATEWAY = own_format(
    "gateway",
    kind="access",
    pattern="{client} {user} [{time:%d/%b/%Y:%H:%M:%S%f %z}] {host} "
    '"{request}" {status} {bytes} "{referrer}" "{agent}" {response_time_ms}ms',
)
PIPES = own_format(
    "pipes",
    kind="access",
    pattern="{time:%Y-%m-%d %H:%M:%S}|{client}|{method}|{path}|{_}|{status}|{response_time_s}",
)._replace(zone="Europe/Vienna")
EDGE = own_format(
    "edge",
    kind="access",
    pattern=None,
    json={
        "client": ["http.ip", "ip"],
        "time": ["at"],
        "request": ["line"],
        "status": ["code"],
        "agent": ["ua"],
        "host": ["http.host"],
        "response_time_us": ["us"],
    },
)._replace(zone="Europe/Vienna")
OWN = (GATEWAY, PIPES, EDGE)
HIT = '192.0.2.7 - - [10/Mar/2026:11:00:00 +0100] "GET /a HTTP/1.1" 200 5'
NINE = "2026-03-10T09:00:00Z"


def parsed(*texts: str, own: tuple[Format, ...] = OWN) -> list[dict[str, object]]:
    raw = pl.Series([text.encode() for text in texts], dtype=pl.Binary)
    rows = parse_lines(raw, pl.Series([False] * len(texts), dtype=pl.Boolean), own)
    return [
        {"reason": row["reason"]} if row["reason"] else values(row)
        for row in rows.iter_rows(named=True)
    ]


def test_lg_1_a_line_of_quoted_columns() -> None:
    line = (
        '[2001:db8::7] anna [10/Mar/2026:10:00:00.250 +0100] www.example.com:8443 "GET /a?b=c'
        r' HTTP/2.0" 200 5 "-" "say \"hi\" \\ (X11)" 12.5ms'
    )
    assert parsed(line) == [
        {
            "format": "gateway",
            "time": "2026-03-10T09:00:00.25Z",
            "client": "2001:db8::7",
            "user": "anna",
            "method": "GET",
            "path": "/a",
            "query": "b=c",
            "protocol": "HTTP/2.0",
            "status": 200,
            "bytes": 5,
            "agent": 'say "hi" \\ (X11)',
            "virtual_host": "www.example.com",
            "response_time_us": 12_500,
        }
    ]


def test_lg_1_a_time_in_the_zone_of_the_format() -> None:
    winter, summer = (
        f"2026-{month}-10 10:00:00|192.0.2.7|GET|/a b|x y|200|0.25" for month in ("03", "07")
    )
    raw = pl.Series([winter, summer]).cast(pl.Binary)
    rows = parse_lines(raw, pl.Series([False, False]), OWN)
    assert rows["utc_offset_minutes"].to_list() == [60, 120]
    assert [each["time"] for each in parsed(winter, summer)] == [NINE, "2026-07-10T08:00:00Z"]
    assert (rows["path"][0], rows["response_time_us"][0]) == ("/a b", 250_000)


@pytest.mark.parametrize(
    "at",
    [
        '"2026-03-10T09:00:00Z"',
        '"2026-03-10T10:00:00.000+01:00"',
        '"2026-03-10 10:00:00"',
        '"10/Mar/2026:10:00:00 +0100"',
        "1773133200",
        "1773133200000",
        '"1773133200.000"',
    ],
)
def test_lg_1_an_object(at: str) -> None:
    line = (
        f'{{"at":{at},"http":{{"ip":"192.0.2.9:3000","host":"a.example.com"}},"code":"404",'
        '"line":"GET https://b.example.com/x HTTP/1.1","ua":"Mozilla/5.0","us":1500}'
    )
    assert parsed(line) == [
        {
            "format": "edge",
            "time": NINE,
            "client": "192.0.2.9",
            "method": "GET",
            "path": "/x",
            "protocol": "HTTP/1.1",
            "status": 404,
            "agent": "Mozilla/5.0",
            "virtual_host": "a.example.com",
            "response_time_us": 1500,
        }
    ]


def test_lg_1_own_formats_come_before_the_catalogue_which_takes_the_rest() -> None:
    own = own_format(
        "mine",
        kind="access",
        pattern='{client} {_} {_} [{time:%d/%b/%Y:%H:%M:%S %z}] "{request}" {status} {bytes}',
    )
    combined = f'{HIT} "-" "Mozilla/5.0 (X11)"'
    assert [each.get("format") for each in parsed(HIT, combined, own=(own,))] == [
        "mine",
        "combined",
    ]
    assert parsed(HIT, own=())[0]["format"] == "common"


def test_sp_2_a_line_that_could_be_split_in_two_ways_is_rejected() -> None:
    """A blank, a bar or a port more, and it is unclear which column is which."""
    doubtful = own_format(
        "doubtful",
        kind="access",
        pattern="{client}:{_} {time:%Y-%m-%dT%H:%M:%S%z} {method} {path},{_},{status}{_}",
    )
    front = "2026-03-10T10:00:00Z GET"
    assert parsed(
        f"192.0.2.7:80 {front} /a,x,200.", f"2001:db8::7:80 {front} /a,x,200.", own=(doubtful,)
    ) == [
        {
            "format": "doubtful",
            "time": "2026-03-10T10:00:00Z",
            "client": "192.0.2.7",
            "method": "GET",
            "path": "/a",
            "status": 200,
        },
        {"reason": "not an access log line"},
    ]
    assert "reason" in parsed("2026-03-10 10:00:00|192.0.2.7|GET|/a|404|0.1|x|200|0.25")[0]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("2026-03-10 10:00:00|192.0.2.7|GET|/a|x|999|0.25", "bad status"),
        ("2026-02-30 10:00:00|192.0.2.7|GET|/a|x|200|0.25", "bad time"),
        ("2026-03-29 02:30:00|192.0.2.7|GET|/a|x|200|0.25", "bad time"),  # clocks skip it
        ("2026-03-10 10:00:00|10|GET|/a|x|200|0.25", "a client that is no address or host"),
        ("2026-03-10 10:00:00|192.0.2.7|-|-|x|200|0.25", "bad request"),
        ("2026-03-10 10:00:00|192.0.2.7|GET|/a\x00|x|200|0.25", "control character"),
        ('{"at":"soon","ip":"192.0.2.7","line":"GET /a HTTP/1.1","code":200}', "bad time"),
        ('{"at":1773133200,"ip":"192.0.2.7","line":"GET /a","code":true}', "bad status"),
        ('{"at":1773133200,"line":"GET /a","code":200}', "not an access log line"),
        ('{"at":1773133200,"ip":"192.0.2.7"', "broken JSON"),
    ],
)
def test_sp_2_an_impossible_line_is_rejected_with_its_reason(line: str, reason: str) -> None:
    assert str(parsed(line)[0]["reason"]).startswith(reason)


def test_sp_2_a_request_that_the_server_could_not_parse() -> None:
    row = parsed("2026-03-10 10:00:00|192.0.2.7|-|-|x|400|-")[0]
    assert (row["status"], row.get("method"), row.get("response_time_us")) == (400, None, None)


def test_sp_2_a_format_without_agents_says_nothing_about_robots() -> None:
    agentless = b"2026-03-10 10:00:00|192.0.2.7|GET|/a|x|200|0.25"
    without = b'192.0.2.7 - [10/Mar/2026:10:00:00 +0100] a.org "GET / HTTP/1.1" 200 5 "-" "-" 1ms'
    found = lines.classify(table([record(agentless, 0), record(without, 1)]), {}, OWN)
    assert found["format"].to_list() == ["pipes", "gateway"]
    assert found["robot"].to_list() == [False, True]
