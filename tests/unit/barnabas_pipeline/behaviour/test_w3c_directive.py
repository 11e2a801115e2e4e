"""Lines in W3C's format by the directive of their file (SP-2, LG-1)."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas_collector.headers import FIELDS, FILE, FILE_ID, POSITION
from barnabas_formats.format import Format
from barnabas_formats.user_formats import w3c_format
from barnabas_pipeline.behaviour import lines
from barnabas_pipeline.behaviour.access_lines import parse_lines, values
from barnabas_pipeline.behaviour.w3c_directive import DOUBLE, MANY, MISSING, OTHER_COUNT
from tests.kit.pipeline.web_records import table

SHORT = "date time c-ip cs-method cs-uri-stem sc-status"
LONG = (
    "date time s-sitename cs-username c-ip cs-method cs-uri-stem cs-uri-query sc-status sc-bytes"
    " time-taken cs(User-Agent) cs(Referer) cs-host x-unknown cs-version"
)
AT = "2026-03-10 10:00:00"
HIT = {"format": "iis", "time": "2026-03-10T10:00:00Z", "client": "192.0.2.7", "method": "GET"}


def parsed(
    columns: str | None, *texts: str, own: tuple[Format, ...] = ()
) -> list[dict[str, object]]:
    raw = pl.Series([text.encode() for text in texts], dtype=pl.Binary)
    is_cut = pl.Series([False] * len(texts), dtype=pl.Boolean)
    rows = parse_lines(raw, is_cut, own, pl.Series([columns] * len(texts), dtype=pl.String))
    return [
        {"reason": row["reason"]} if row["reason"] else values(row)
        for row in rows.iter_rows(named=True)
    ]


def test_lg_1_columns_in_any_order_with_unknown_ones() -> None:
    assert parsed(SHORT, f"#Fields: {SHORT}", f"{AT} 192.0.2.7 GET /a 200 ", "# a comment") == [
        {"format": "directive"},
        {**HIT, "path": "/a", "status": 200},
        {"reason": "not an access log line"},
    ]
    line = f"{AT} W3SVC1 X\\anna ::1 POST /b q=1 201 7 15 A/1+(x) http://a/ h:80 ? HTTP/1.1"
    assert parsed(LONG, line) == [
        {
            **HIT,
            "client": "::1",
            "user": "X\\anna",
            "method": "POST",
            "path": "/b",
            "query": "q=1",
            "protocol": "HTTP/1.1",
            "status": 201,
            "bytes": 7,
            "referrer": "http://a/",
            "agent": "A/1 (x)",
            "virtual_host": "h",
            "response_time_us": 15_000,
        }
    ]
    assert "response_time_us" not in parsed(LONG, line.replace(" 15 ", " 0.015 "))[0]


def test_lg_1_columns_of_cloudfront() -> None:
    columns = f"{SHORT} x-edge-location cs(Host) x-host-header cs(User-Agent) time-taken"
    line = f"{AT} ::1 GET /a 200 FRA56-P4 d.example www.example A/1%2520(x) 0.002"
    assert parsed(columns, line.replace(" ", "\t")) == [
        {
            **HIT,
            "format": "cloudfront",
            "client": "::1",
            "path": "/a",
            "status": 200,
            "agent": "A/1 (x)",
            "virtual_host": "www.example",
            "response_time_us": 2_000,
        }
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"{AT} 192.0.2.7 GET /a", OTHER_COUNT),
        (f"{AT} 192.0.2.7 GET /a 200 0", OTHER_COUNT),
        (f"{AT} 192.0.2.7  GET /a 200", OTHER_COUNT),
        # as many columns as IIS writes by default
        (f"{AT} 10.0.0.5 GET /a - 443 - 192.0.2.7 A/1 - 200 0 0 15", OTHER_COUNT),
        ('192.0.2.7 - - [10/Oct/2025:13:55:36 +0000] "GET / HTTP/1.1" 200 5', OTHER_COUNT),
        (f"{AT} - GET /a 200", "no client"),
        (f"{AT} 192.0.2.7 GET /a OK", "bad status"),
        ("2026-02-30 10:00:00 192.0.2.7 GET /a 200", "bad time"),
        ("", "empty line"),
        (f"{AT} 192.0.2.7 GET /a\0 200", "control character"),
    ],
)
def test_sp_2_a_line_that_does_not_fit_the_directive_is_rejected(text: str, reason: str) -> None:
    """SP-2: never a hit with wrong columns."""
    assert parsed(SHORT, text) == [{"reason": reason}]


IIS = f"{AT} 10.0.0.5 GET /a - 443 - 192.0.2.7 A/1 - 200 0 0 15"


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (f"{SHORT} cs-host Cs-Host", DOUBLE),
        (f"{SHORT} {' '.join(f'x-{n}' for n in range(59))}", MANY),
        ("", MANY),
        ("date time c-ip", MISSING),
    ],
)
def test_lg_1_an_unusable_directive_is_rejected_with_its_lines(columns: str, reason: str) -> None:
    """LG-1: known columns are not guessed after it, but another format is unmistakable."""
    combined = '192.0.2.7 - - [10/Oct/2025:13:55:36 +0000] "GET / HTTP/1.1" 200 5 "-" "A/1"'
    rows = parsed(columns, f"#Fields: {columns}", IIS, combined)
    assert rows[:2] == [{"reason": reason}] * 2
    assert rows[2]["format"] == "combined"


def test_lg_1_64_columns_are_read() -> None:
    columns = f"{SHORT} {' '.join(f'x-{n}' for n in range(58))}"
    text = f"{AT} 192.0.2.7 GET /a 200 {' '.join('0' * 58)}"
    assert parsed(columns, text) == [{**HIT, "path": "/a", "status": 200}]


def test_lg_1_without_a_directive_nothing_has_changed() -> None:
    assert "response_time_us" not in parsed(None, IIS)[0]
    (row,) = parsed(None, f"#Fields: {SHORT}")
    assert str(row["reason"]).startswith("columns that differ")


def test_lg_1_ones_own_formats_come_first() -> None:
    own = (w3c_format("ours", f"#Fields: {SHORT}"),)
    rows = parsed(SHORT, f"#Fields: {SHORT}", f"{AT} 192.0.2.7 GET /a 200", own=own)
    assert [row["format"] for row in rows] == ["directive", "ours"]


def test_sp_2_ones_own_columns_do_not_override_the_directive() -> None:
    """SP-2: a site may have changed its columns; the directive says which ones a line has."""
    columns = SHORT.replace("sc-status", "cs-username cs-uri-query sc-status")
    swapped = SHORT.replace("sc-status", "cs-uri-query cs-username sc-status")
    own = (w3c_format("ours", f"#Fields: {columns}"),)
    text = f"{AT} 192.0.2.7 GET /a anna b=c 200"
    for directive, name, user in (
        (None, "ours", "anna"),
        (columns.replace(" ", "  ").upper(), "ours", "anna"),
        (swapped, "iis", "b=c"),
    ):
        (row,) = parsed(directive, text, own=own)
        assert (row["format"], row["user"]) == (name, user)


def test_lg_1_records_of_several_files_in_one_batch() -> None:
    """LG-1: the header decides, and visitors without an agent column are no robots."""

    def record(text: str, file: bytes, columns: str | None) -> tuple[object, ...]:
        headers = [(FILE, file), (FILE_ID, file), (POSITION, b"%d" % len(rows))]
        headers += [] if columns is None else [(FIELDS, columns.encode())]
        return (b"key", text.encode(), "web-access", 0, len(rows), 0, 0, headers)

    rows: list[tuple[object, ...]] = []
    agent = "date time cs-method c-ip cs-uri-stem sc-status cs(User-Agent)"
    rows.append(record(f"{AT} 192.0.2.7 GET /a 200", b"a", SHORT))
    rows.append(record(f"{AT} GET 192.0.2.8 /b 200 -", b"b", agent))
    rows.append(record(f"{AT} 192.0.2.9 GET /c 404", b"a", SHORT))
    rows.append(record(f"{AT} 192.0.2.9 GET /c 404", b"c", None))
    found = lines.classify(table(rows), {})
    assert found["client"].to_list() == ["192.0.2.7", "192.0.2.8", "192.0.2.9", None]
    assert found["path"].to_list() == ["/a", "/b", "/c", None]
    assert found["robot"].to_list()[:3] == [False, True, False]
    assert found["reason"].is_null().to_list() == [True, True, True, False]


@given(
    st.lists(st.sampled_from([*LONG.split(), "", "cs-host", "#"]), max_size=70),
    st.lists(st.sampled_from([*AT.split(), "::1", "GET", "/a", "200", "", "\t", "#"]), max_size=20),
)
def test_ux_4_any_directive_and_line_give_fields_or_a_reason(
    columns: list[str], words: list[str]
) -> None:
    (row,) = parsed(" ".join(columns), " ".join(words))
    assert row.get("reason") or row["format"]
