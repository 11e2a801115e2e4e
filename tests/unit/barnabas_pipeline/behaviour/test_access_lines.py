"""The catalogue's access logs: samples, lines held back, and no line with wrong columns (SP-2)."""

from __future__ import annotations

import json

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from barnabas_formats.catalogue import catalogue
from barnabas_formats.format import Format, Sample
from barnabas_pipeline.behaviour.access_line import parse_line
from barnabas_pipeline.behaviour.access_lines import SCHEMA, matched_count, parse_lines, values
from barnabas_pipeline.behaviour.line_parts import Fields

ACCESS = catalogue("access")
SAMPLES = [(of, sample) for of in ACCESS for sample in of.samples]
AGENT = "Mozilla/5.0 (X11)"
NO_LINE = "not an access log line"
CLF = '192.0.2.7 - - [10/Mar/2026:11:00:00 +0100] "GET /a HTTP/1.1" 200 5'


def parsed(*lines: str) -> list[dict[str, object]]:
    """The rows, each with its reason if it has one."""
    raw = pl.Series([line.encode() for line in lines], dtype=pl.Binary)
    rows = parse_lines(raw, pl.Series([False] * len(lines), dtype=pl.Boolean))
    assert rows.schema == SCHEMA
    return [
        {"reason": row["reason"]} if row["reason"] else values(row)
        for row in rows.iter_rows(named=True)
    ]


@pytest.mark.parametrize(
    ("of", "sample"),
    [
        pytest.param(of, sample, id=f"{of.name}-{number}")
        for of in ACCESS
        for number, sample in enumerate(of.samples)
    ],
)
def test_lg_1_a_sample_has_its_values(of: Format, sample: Sample) -> None:
    assert parsed(sample.line) == [{"format": of.name, **sample.values}]


def test_sp_2_all_samples_at_once_have_the_same_values_in_any_order() -> None:
    lines = [sample.line for _, sample in SAMPLES]
    wanted = [{"format": of.name, **sample.values} for of, sample in SAMPLES]
    assert parsed(*lines) == wanted
    assert parsed(*lines[::-1]) == wanted[::-1]


def test_sp_2_lines_that_several_threads_match_keep_their_order() -> None:
    """SP-2: each thread matches a part of a large batch."""
    hits = [CLF.replace("/a", f"/{number}") for number in range(25_001)]
    hits[12_345] = "no hit"
    rows = parsed(*hits)
    assert rows[12_345] == {"reason": "not an access log line"}
    paths = [row.get("path") for row in rows]
    assert paths == [None if at == 12_345 else f"/{at}" for at in range(25_001)]


@pytest.mark.thorough
def test_sp_2_a_cut_sample_is_never_taken_with_other_columns() -> None:
    """A line that was cut anywhere is rejected, or its columns are the first ones of the whole."""
    for of, sample in SAMPLES:
        cuts = [sample.line[:length] for length in range(1, len(sample.line))]
        for cut, row in zip(cuts, parsed(*cuts), strict=True):
            if "reason" in row:
                continue
            for name in ("time", "client", "user", "method", "path", "status", "virtual_host"):
                wanted = sample.values.get(name)
                assert row.get(name) in (wanted, None), (of.name, name, cut)


@pytest.mark.thorough
@pytest.mark.parametrize("doubled", [" ", '"', "\t", "-", "[", "{", ","])
def test_sp_2_a_sample_with_one_more_of_a_character_is_never_taken_with_another_client(
    doubled: str,
) -> None:
    for of, sample in SAMPLES:
        places = [i for i, character in enumerate(sample.line) if character == doubled]
        odd = [sample.line[:i] + doubled + sample.line[i:] for i in places]
        for line, row in zip(odd, parsed(*odd), strict=True):
            assert row.get("client") in (sample.values["client"], None), (of.name, line)


@pytest.mark.parametrize(
    ("end", "name", "time_us"),
    [
        ("", "combined", None),
        (' "203.0.113.5"', "nginx_main", None),
        (' "unknown"', "nginx_main", None),
        (' "-" 0.012', "combined_timed", 12_000),
        (" 0.012 -", "combined_timed", 12_000),
        (" 0.012 0.011 .", "combined_timed", 12_000),
        (" 12ms", "combined_timed", 12_000),
        (' rt="0.012"', "combined_timed", 12_000),
        (" request_time:0.012", "combined_timed", 12_000),
        (" urt=0.011 rt=0.012", "combined_timed", 12_000),
        (" response_time=1.5s", "combined_timed", 1_500_000),
        (' "-" rt=0.012 uct="0.000"', "combined_timed", 12_000),
        (" 12", "combined_more", None),  # %D, %T or a port
        (" rt=12", "combined_more", None),
        (" 2.43", "combined_more", None),  # $gzip_ratio
        (" 1773136800.250", "combined_more", None),  # $msec
        (' urt="0.011"', "combined_more", None),  # of another server
        (' x="rt=0.012"', "combined_more", None),  # a visitor's text
    ],
)
def test_sp_2_a_response_time_is_one_only_if_that_is_certain(
    end: str, name: str, time_us: int | None
) -> None:
    """SP-2: a bare whole number behind the agent could be anything."""
    (found,) = parsed(f'{CLF} "-" "{AGENT}"{end}')
    assert (found["format"], found.get("response_time_us")) == (name, time_us)
    assert found["agent"] == AGENT


HELD_BACK = [
    # nginx: keys in another order, numbers as text, null, and its own escapes
    (
        {
            "status": 200,
            "request": "GET / HTTP/1.1",
            "remote_addr": "192.0.2.7",
            "time_iso8601": "2026-03-10T10:00:00+00:00",
            "http_referer": None,
            "request_time": "",
            "extra": [1],
        },
        {"format": "nginx_json", "client": "192.0.2.7", "path": "/", "status": 200},
    ),
    (
        {
            "@timestamp": "2026-03-10T10:00:00.5Z",
            "remote_addr": "192.0.2.7",
            "status": "204",
            "request_method": "GET",
            "uri": "/a",
            "args": "b=c",
            "body_bytes_sent": 0,
        },
        {"time": "2026-03-10T10:00:00.5Z", "path": "/a", "query": "b=c", "bytes": 0},
    ),
    ({"remote_addr": "-", "status": 200, "msec": 1773136800}, {"reason": "no client"}),
    (
        {"remote_addr": "unix:", "status": 200, "msec": 1773136800},
        {"reason": "a client that is no address or host name, or unclear columns before the time"},
    ),
    ({"remote_addr": "192.0.2.7", "status": 200, "msec": 7}, {"reason": "bad time"}),
    (
        {"remote_addr": "192.0.2.7", "status": 0, "msec": 1773136800},
        {"reason": "bad status"},
    ),
    (
        {"remote_addr": "192.0.2.7", "status": 200, "msec": 1773136800, "request": "\x16\x03"},
        {"reason": "bad request"},
    ),
    (
        {
            "remote_addr": "192.0.2.7",
            "status": 200,
            "msec": 1773136800,
            "request": "GET /\ud800 HTTP/1.1",
        },
        {"reason": "broken JSON"},
    ),
    # other programs' objects
    ({"level": "info", "ts": 1773136800.1, "msg": "serving"}, {"reason": "not an access log line"}),
    ({"request": "GET /", "status": 200}, {"reason": "not an access log line"}),
    (
        {
            "level": "info",
            "ts": 1773136800.1,
            "status": 200,
            "request": {"remote_ip": "", "method": "GET", "uri": "/"},
        },
        {"reason": "no client"},
    ),
    (
        {
            "level": "info",
            "ts": 1773136800100,
            "status": 200,
            "request": {"remote_ip": "192.0.2.7", "method": "GET", "uri": "/a?b"},
        },
        {"format": "caddy", "time": "2026-03-10T10:00:00.1Z", "path": "/a", "query": "b"},
    ),
]


@pytest.mark.parametrize(("line", "wanted"), HELD_BACK, ids=range(len(HELD_BACK)))
def test_sp_2_json_lines_held_back(line: dict[str, object], wanted: dict[str, object]) -> None:
    (found,) = parsed(json.dumps(line))
    assert {name: found.get(name) for name in wanted} == wanted


COLUMNS = "columns that differ from those of the format that the line begins with"
REJECTED = [
    ('[2026-03-10T10:00:00.310Z] "GET / HTTP/1.1" 200 - 0 1 2 3 "-" "a" "b" "c" "d"', "no client"),
    # Istio's, with more columns before the size
    (
        '[2026-03-10T10:00:00.310Z] "GET / HTTP/1.1" 200 - via_upstream - "-" 0 95 4 3 "-" "a"'
        ' "b" "c" "10.0.0.1:80" outbound|80 10.0.0.1:3 10.0.0.2:80 10.0.0.3:4 - default',
        COLUMNS,
    ),
    (
        '[2026-03-10T10:00:00.310Z] "GET / HTTP/1.1" 0 DC 0 0 2 - "192.0.2.7" "a" "b" "c" "d"',
        "bad status",
    ),
    # HAProxy's TCP log
    ("192.0.2.7:51544 [10/Mar/2026:10:00:00.000] fe be/s1 0/0/5007 212 -- 0/0/0/0/3 0/0", COLUMNS),
    (
        "192.0.2.7:51544 [32/Mar/2026:10:00:00.000] fe be/s1 0/0/1/2/3 200 1 - - ---- 1/1/1/1/0 0/0"
        ' "GET / HTTP/1.1"',
        "bad time",
    ),
    (
        "http 2026-03-10T10:00:00.000000Z app/lb/1 192.0.2.7:1 10.0.0.1:80 0.1 0.2 200 200 1 2"
        ' "GET http://a/ HTTP/1.1" "-" - -',
        COLUMNS,
    ),
    (
        "tls 2026-03-10T10:00:00 net/lb/1 g3d4b5e8bb8464cd 192.0.2.7:51341 172.31.1.1:443 5 2",
        "not an access log line",
    ),
    # the agent before the referrer, alone and with more behind
    (f'{CLF} "{AGENT}" "https://example.com/"', "unclear columns after the status"),
    (f'{CLF} "{AGENT}" "-"', "unclear columns after the status"),
    (f'{CLF} "{AGENT}" "-" 0.012', "unclear columns after the status"),
    (f'{CLF} "{AGENT}" "https://example.com/" rt=0.012', "unclear columns after the status"),
    # other layouts of nginx, Apache and Squid
    (f'{CLF} "UA"', "not an access log line"),
    (f'{CLF} 3 "-" "{AGENT}"', "unclear columns after the status"),
    (f'{CLF} "-" "{AGENT}"text/html', "unclear columns after the status"),
    (f"{CLF} TCP_MISS:DIRECT", "unclear columns after the status"),
    (CLF.replace('"GET', '"www.example.com" "GET'), "not an access log line"),
    (CLF.replace('"GET', '0.005 "GET'), "not an access log line"),
    (CLF.replace(" 200 5", " - -") + ' "-" "-"', "bad status"),
    (CLF.replace(" 200 5", " 5 200") + ' "-" "-"', "bad status"),
    ('[10/Mar/2026:11:00:00 +0100] 192.0.2.7 TLSv1.3 AES256 "GET / HTTP/1.1" 200', NO_LINE),
    (
        "1710064800.123 123 192.0.2.7 TCP_MISS/200 4512 GET http://a.org/ - DIRECT/192.0.2.9 -",
        NO_LINE,
    ),
    # IIS with other columns: no referrer but a host, the client first, none of the end
    (
        "2026-03-10 10:00:00 10.0.0.5 GET /a - 443 - 192.0.2.7 A/1 www.example.com 200 0 0 15",
        COLUMNS,
    ),
    ("2026-03-10 10:00:00 10.0.0.5 GET /a - 443 - 192.0.2.7 HTTP/1.1 A/1 200 0 0 15", COLUMNS),
    ("2026-03-10 10:00:00 192.0.2.7 GET /a 200", COLUMNS),
    ("2026-03-10 10:00:00 10.0.0.5 GET /a - 443 - - A/1 - 200 0 0 15", "no client"),
    ("2026-02-30 10:00:00 10.0.0.5 GET /a - 443 - 192.0.2.7 A/1 - 200 0 0 15", "bad time"),
    # a real-time log of CloudFront has other columns
    ("2026-03-10\t10:00:00\tFRA56-P4\t192.0.2.7", COLUMNS),
    ("#Fields: date time c-ip cs-method cs-uri-stem sc-status", COLUMNS),
    ("# a comment", "not an access log line"),
    ("2026-03-10 10:00:00 INFO started", "not an access log line"),
]


@pytest.mark.parametrize(("line", "reason"), REJECTED, ids=range(len(REJECTED)))
def test_sp_2_other_columns_are_rejected(line: str, reason: str) -> None:
    """SP-2: in doubt a dead letter with its reason, never a hit with wrong columns."""
    assert parsed(line) == [{"reason": reason}]


@pytest.mark.parametrize(
    ("request_line", "wanted"),
    [
        ("GET /a HTTP/3.0", {"method": "GET", "path": "/a", "protocol": "HTTP/3.0"}),
        ("GET /a HTTP/2", {"method": "GET", "path": "/a", "protocol": "HTTP/2"}),
        ("OPTIONS * HTTP/1.1", {"method": "OPTIONS", "path": "*", "protocol": "HTTP/1.1"}),
        (
            "CONNECT [2001:db8::1]:443 HTTP/1.1",
            {"method": "CONNECT", "path": "[2001:db8::1]:443", "protocol": "HTTP/1.1"},
        ),
        (
            "GET http://u:p@a.org:8080/x?y HTTP/1.1",
            {"method": "GET", "path": "/x", "query": "y", "protocol": "HTTP/1.1"},
        ),
        ("", {}),
        ("-", {}),
    ],
)
def test_sp_2_odd_requests(request_line: str, wanted: dict[str, object]) -> None:
    client = "2001:db8::7"
    line = f'{client} - - [10/Mar/2026:11:00:00 +0100] "{request_line}" 405 - "-" "say \\"hi\\""'
    assert parsed(line) == [
        {
            "format": "combined",
            "time": "2026-03-10T10:00:00Z",
            "client": client,
            "status": 405,
            "agent": 'say "hi"',
            **wanted,
        }
    ]


def test_sp_2_directives_are_neither_hits_nor_errors() -> None:
    names = "date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip"
    names += " cs(User-Agent) cs(Referer) sc-status sc-substatus sc-win32-status time-taken"
    lines = ("#Software: Microsoft Internet Information Services 10.0", "#Version: 1.0")
    lines += ("#Date: 2026-03-10 10:00:00", f"#Fields: {names}")
    assert parsed(*lines) == [{"format": "directive"}] * 4


ODD_PIECES = st.sampled_from(
    [
        *(
            " ",
            '"',
            "\\",
            "[",
            "]",
            "{",
            "}",
            ",",
            ":",
            "-",
            "-1",
            "\t",
            "\n",
            "\r",
            "0",
            "é",
            "٣",
            "µ",
        ),
        *("1e99", "9" * 25, "Infinity", "NaN", "null", "true", "[[[[", "\\ud800", "\\u0000", "+"),
        *("192.0.2.7:80", "::1", "2026-02-30", "99:99:99", "32/Mar/2026", "#Fields:", "us", "h"),
    ]
)


@st.composite
def odd_samples(draw: st.DrawFn) -> bytes:
    """A sample with pieces put in or in the place of others."""
    _, sample = draw(st.sampled_from(SAMPLES))
    text = sample.line
    for _ in range(draw(st.integers(0, 3))):
        begin = draw(st.integers(0, len(text)))
        end = min(len(text), begin + draw(st.integers(0, 6)))
        text = text[:begin] + draw(st.one_of(ODD_PIECES, st.text(max_size=3))) + text[end:]
    return text.encode()


@given(st.lists(odd_samples(), min_size=1, max_size=20))
@example(
    [
        b'{"ts":1773136800,"request":{"remote_ip":"::1","method":"G","uri":"/"},'
        b'"status":200,"duration":"' + b"9" * 400 + b'h"}'
    ]
)
def test_ux_4_no_line_is_too_odd_to_be_parsed(lines: list[bytes]) -> None:
    """UX-4: fields or a reason; and both ways say the same."""
    raw, cut = pl.Series(lines, dtype=pl.Binary), pl.Series([False] * len(lines))
    for line, row in zip(lines, parse_lines(raw, cut).rows(), strict=True):
        alone = parse_line(line)
        if isinstance(alone, Fields):
            assert row == (*alone, None)
        else:
            assert set(row) == {None, alone}


def test_common_formats_go_the_fast_way() -> None:
    """Most lines of the web's most common programs do not need a decoder in Python."""
    names = {"combined", "vhost_combined", "nginx_main", "combined_timed", "ingress_nginx"}
    lines = [sample.line for of, sample in SAMPLES if of.name in {*names, "traefik"}]
    ordinary = [line for line in lines if not line.endswith("us") and "request_time=" not in line]
    ordinary = [line for line in ordinary if "\\x" not in line]
    assert len(ordinary) >= 16
    raw = pl.Series([line.encode() for line in ordinary], dtype=pl.Binary)
    assert matched_count(raw) == len(ordinary)
