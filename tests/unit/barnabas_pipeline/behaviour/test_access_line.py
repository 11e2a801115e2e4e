"""Lines of access logs: fields and reasons, and the fast way beside the exact one (SP-2)."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from barnabas_pipeline.behaviour import line_parts
from barnabas_pipeline.behaviour.access_line import parse_line
from barnabas_pipeline.behaviour.access_lines import FIELDS, matched_count, parse_lines
from barnabas_pipeline.behaviour.line_parts import DIRECTIVE, Fields
from tests.kit.pipeline.web_records import line

TIME = "[17/May/2015:10:05:03 +0200]"
HEAD = f"198.18.0.1 - - {TIME} "

REASONS: list[tuple[bytes | None, str | None]] = [
    ((HEAD + '"GET / HTTP/1.1" 200 12 "-" "-"').encode(), None),
    ((HEAD + '"GET / HTTP/1.1" 304 -').encode(), None),  # the Common Log Format
    ((HEAD + '"-" 408 - "-" "-"').encode(), None),  # the server could not read it, and said so
    ((HEAD + r'"\x16\x03\x01" 400 1 "-" "-"').encode(), None),
    ((HEAD + '"GET / HTTP/1.1" 200 12 "-" "' + r"\"\\" * 20_000 + '"').encode(), None),
    (None, line_parts.NO_VALUE),
    (HEAD.encode() + b'"GET /caf\xe9 HTTP/1.1" 200 12 "-" "-"', None),  # not UTF-8
    (b"\xff" * 9, line_parts.NOT_AN_ACCESS_LOG),
    (b'{"a":"\xff', line_parts.BROKEN_JSON),
    (b"\xff\x00", line_parts.CONTROL_CHARACTER),
    (b"", line_parts.EMPTY),
    (b" \r", line_parts.EMPTY),
    (HEAD.encode() + b'"GET / HTTP/1.1" 200 12 "-" "\x00"', line_parts.CONTROL_CHARACTER),
    ((HEAD + '"GET / HTTP/1.1" 200 12 "-" "Moz').encode(), line_parts.UNBALANCED_QUOTES),
    (b"Exception in thread main", line_parts.NOT_AN_ACCESS_LOG),
    (HEAD.encode(), line_parts.NOT_AN_ACCESS_LOG),
    ((HEAD + '"GET / HTTP/1.1" 200 12 "-" "-" 0.3').encode(), None),
    ((HEAD + '"GET / HTTP/1.1" 200 12 0.017').encode(), None),
    ((HEAD + '"GET / HTTP/1.1" 200 12 17').encode(), line_parts.MORE_COLUMNS),
    (("www.example.com:443 " + HEAD + '"GET / HTTP/1.1" 200 12').encode(), None),
    (("192.0.2.9 " + HEAD + '"GET / HTTP/1.1" 200 12').encode(), line_parts.VIRTUAL_HOST),
    (("a 7 " + HEAD + '"GET / HTTP/1.1" 200 12').encode(), line_parts.BAD_CLIENT),
    ((HEAD.replace("17/May", "32/May") + '"GET / HTTP/1.1" 200 12').encode(), line_parts.BAD_TIME),
    ((HEAD.replace("17/May", "31/Feb") + '"GET / HTTP/1.1" 200 12').encode(), line_parts.BAD_TIME),
    ((HEAD.replace("+0200", "+1801") + '"GET / HTTP/1.1" 200 1').encode(), line_parts.BAD_TIME),
    ((HEAD + '"GET / HTTP/1.1" 2OO 12').encode(), line_parts.BAD_STATUS),
    ((HEAD + '"GET / HTTP/1.1" 999 12').encode(), line_parts.BAD_STATUS),
    ((HEAD + '"/" 200 12').encode(), line_parts.BAD_REQUEST),
    ((HEAD + '"GET / HTTP/1.1" 200 -12').encode(), line_parts.BAD_SIZE),
    ((HEAD + '"GET / HTTP/1.1" 200 ' + "9" * 19).encode(), line_parts.BAD_SIZE),
    (b'{"remote_addr": "192.0.2.7", "status"', line_parts.BROKEN_JSON),
    (b"[" * 100_000, line_parts.NOT_AN_ACCESS_LOG),
    (b'{"a":' * 100_000, line_parts.BROKEN_JSON),
    (b"2026-03-10 10:00:00 192.0.2.7 GET /", line_parts.UNKNOWN_COLUMNS),
    (b"#Fields: date time c-ip cs-method", line_parts.UNKNOWN_COLUMNS),
    (b'{"remote_addr": "", "status": 200}', line_parts.NO_CLIENT),
    (b"x " * 100_000, line_parts.NOT_AN_ACCESS_LOG),
    (b'"' * 100_001, line_parts.UNBALANCED_QUOTES),
]


def both_ways(values: list[bytes | None], cut: list[bool]) -> list[tuple[object, ...]]:
    """The rows by the fast way, which are those of the exact one."""
    frame = parse_lines(pl.Series(values, dtype=pl.Binary), pl.Series(cut, dtype=pl.Boolean))
    exact = [row(value, is_cut) for value, is_cut in zip(values, cut, strict=True)]
    assert frame.rows() == exact
    return exact


def row(value: bytes | None, is_cut: bool) -> tuple[object, ...]:
    found = parse_line(value, is_cut=is_cut)
    if isinstance(found, Fields):
        return (*found, None)
    nothing = (None,) * (len(FIELDS) - 1)
    return (*nothing, found, None) if found == DIRECTIVE else (*nothing, None, found)


def test_every_bad_line_has_its_reason_sp_2() -> None:
    """SP-2, UX-4: what is no access log is recognised, and no line is too odd to be looked at."""
    values = [*(value for value, _ in REASONS), b"x" * 10]
    wanted = [*(reason for _, reason in REASONS), line_parts.TOO_LONG]
    assert {reason for reason in wanted if reason} == set(line_parts.REASONS)
    rows = both_ways(values, [False] * len(REASONS) + [True])
    assert [each[-1] for each in rows] == wanted


def test_a_line_becomes_fields() -> None:
    head = "2001:db8::1 id frank o'hara [17/May/2015:00:05:03 -0130]"
    lines = [
        head + r' "POST http://me:80/a%20b c?q=1?2 HTTP/2.0" 201 77 "http://x/?y" "a \"b\" \\"',
        HEAD + '"GET /" 304 - "" ""\r',
    ]
    both_ways([text.encode() for text in lines], [False, False])
    first, second = (parse_line(text.encode()) for text in lines)
    assert isinstance(first, Fields) and isinstance(second, Fields)
    assert first == Fields(
        time_us=int(datetime(2015, 5, 17, 1, 35, 3, tzinfo=UTC).timestamp()) * 1_000_000,
        utc_offset_minutes=-90,
        client="2001:db8::1",
        ident="id",
        user="frank o'hara",
        method="POST",
        path="/a%20b c",
        query="q=1?2",
        protocol="HTTP/2.0",
        status=201,
        bytes=77,
        referrer="http://x/?y",
        agent='a "b" \\',
        virtual_host=None,
        response_time_us=None,
        format="combined",
    )
    assert second.protocol is second.bytes is second.referrer is second.agent is None
    assert (second.path, second.utc_offset_minutes) == ("/", 120)


@pytest.mark.parametrize(
    ("front", "client", "user"),
    [
        ("fe80::a00:27ff:abcd:abc%enp0s8 - -", "fe80::a00:27ff:abcd:abc%enp0s8", None),
        ("::ffff:192.0.2.7 - -", "::ffff:192.0.2.7", None),
        ("192.0.2.7.example.com - -", "192.0.2.7.example.com", None),
        ("localhost - -", "localhost", None),
        ("host. - -", "host.", None),
        ('192.0.2.7 - ""', "192.0.2.7", None),
        ('192.0.2.7 - "anna smith"', "192.0.2.7", "anna smith"),
        ("192.0.2.7 - anna smith", "192.0.2.7", "anna smith"),
        ("192.0.2.7 - first.last", "192.0.2.7", "first.last"),
        (r"192.0.2.7 - EXAMPLE\\anna@x.org", "192.0.2.7", r"EXAMPLE\anna@x.org"),
        ("www.example.com:443 192.0.2.7 - -", "192.0.2.7", None),
        ("www.example.com:443 2001:db8::7 - anna", "2001:db8::7", "anna"),
        ("www.example.com:443 client.example.net - -", "client.example.net", None),
        ("www.example.com 192.0.2.7 - anna smith", "192.0.2.7", "anna smith"),
        ("www 192.0.2.7 - -", "192.0.2.7", None),
        ("_:80 192.0.2.7 - -", "192.0.2.7", None),
        ("127.0.1.1:80 192.0.2.7 - -", "192.0.2.7", None),
        ("[2001:db8::1]:443 192.0.2.7 - -", "192.0.2.7", None),
        ("[2001:db8::7] - -", "2001:db8::7", None),
        ("[2001:db8::7]:54321 - -", "2001:db8::7", None),  # a gateway's
        ("192.0.2.7:54321 - anna", "192.0.2.7", "anna"),
        ("64:ff9b::192.0.2.33 - -", "64:ff9b::192.0.2.33", None),
        ("::192.0.2.33 - -", "::192.0.2.33", None),
        ("::ffff:0:192.0.2.33 - -", "::ffff:0:192.0.2.33", None),
        ("1:2:3:4:5:6:192.0.2.7 - -", "1:2:3:4:5:6:192.0.2.7", None),
        ("192.0.2.7 - [192.0.2.7] - anna", "192.0.2.7", "anna"),  # ingress-nginx before 0.26
        ("\ufeff192.0.2.7 - -", "192.0.2.7", None),
        ("Oct 10 13:55:36 web nginx: 192.0.2.7 - -", "192.0.2.7", None),
        ("<190>Oct 10 13:55:36 nginx[3253]: 192.0.2.7 - -", "192.0.2.7", None),
        ("2025-10-10T13:55:36.1+00:00 web nginx: 192.0.2.7 - anna", "192.0.2.7", "anna"),
        ('<190>1 2025-10-10T13:55:36Z web nginx - - [a b="c"] 192.0.2.7 - -', "192.0.2.7", None),
        ("web-1  | 192.0.2.7 - -", "192.0.2.7", None),  # Compose
        ("2025-10-10T13:55:36Z stdout F 192.0.2.7 - -", "192.0.2.7", None),  # Kubernetes
        ("2025-10-10T13:55:36Z stdout F web-1 | 192.0.2.7 - -", "192.0.2.7", None),
    ],
)
def test_sp_2_the_client_is_found_in_what_is_before_the_time(
    front: str, client: str, user: str | None
) -> None:
    """SP-2: with a virtual host in front, and for all kinds of addresses and users."""
    (found,) = both_ways([f'{front} {TIME} "GET / HTTP/1.1" 200 5 "-" "A/1"'.encode()], [False])
    assert (found[2:5], found[-1]) == ((client, None, user), None)


@pytest.mark.parametrize(
    ("front", "reason"),
    [
        ("www.example.com:443 - -", line_parts.VIRTUAL_HOST),
        ("www.example.com:443 192.0.2.7 -", line_parts.VIRTUAL_HOST),
        ("www.example.com 192.0.2.7 -", line_parts.VIRTUAL_HOST),
        ("www.example.com client.example.net - -", line_parts.VIRTUAL_HOST),
        ("192.0.2.7 www.example.com - -", line_parts.VIRTUAL_HOST),
        ("192.0.2.7 10.0.0.1 - -", line_parts.VIRTUAL_HOST),
        ("192.0.2.7:51234 10.0.0.1 - -", line_parts.VIRTUAL_HOST),  # a gateway's
        ("192.0.2.7, 10.0.0.1 - -", line_parts.BAD_CLIENT),
        ("- 192.0.2.7 - -", line_parts.BAD_CLIENT),
        ("- - -", line_parts.BAD_CLIENT),
        ("unix: - -", line_parts.BAD_CLIENT),
        ("192.0.2.300 - -", line_parts.BAD_CLIENT),
        ("1760104536.123 - -", line_parts.BAD_CLIENT),
        ("2001:db8::1::2 - -", line_parts.BAD_CLIENT),
        ("192.0.2.7 - - www.example.com", line_parts.BAD_CLIENT),
        ("192.0.2.7 - anna www.example.com", line_parts.BAD_CLIENT),
        ("192.0.2.7 - anna 0.012", line_parts.BAD_CLIENT),
        ("192.0.2.7 - 10.0.0.1", line_parts.BAD_CLIENT),
        ("192.0.2.7:443 - -", line_parts.VIRTUAL_HOST),  # a server's port, so no client
        ("192.0.2.7 - [192.0.2.8] - -", line_parts.BAD_CLIENT),
        ("1:2:3:4:5:6:7:192.0.2.7 - -", line_parts.BAD_CLIENT),
        ("::1::192.0.2.7 - -", line_parts.BAD_CLIENT),
        ("2025-10-10T13:55:36Z stdout P 192.0.2.7 - -", line_parts.BAD_CLIENT),  # a part
        ("Oct 10 13:55:36 web nginx: 192.0.2.7 10.0.0.1 - -", line_parts.VIRTUAL_HOST),
        ("192.0.2.7 - anna [17/May/2015:10:05:03 192.0.2.8 - -", line_parts.BAD_CLIENT),
    ],
)
def test_sp_2_no_line_is_taken_with_a_wrong_client(front: str, reason: str) -> None:
    """SP-2: of a line that is not understood there is a dead letter, never a hit."""
    (found,) = both_ways([f'{front} {TIME} "GET / HTTP/1.1" 200 5 "-" "A/1"'.encode()], [False])
    assert found[-1] == reason


@pytest.mark.parametrize(
    ("end", "is_taken"),
    [
        ('"http://x/" "A/1 (B)" "-"', True),  # of nginx's own package
        ('"-" "A/1 (B)" "192.0.2.9, unknown, 10.0.0.3"', True),
        ('"-" "-" "-"', True),
        ('"x.org" "A/1 (B)" "192.0.2.9"', True),
        ('"-" "A/1 (B)" "-" "www.example.com" 0.012 0.011 .', True),
        ('"-" "A/1 (B)" 512 1024', True),
        ('"-" "A/1 (B)" rt=0.012 uct="0.000" urt="-"', True),
        ('"-" "-" 411 0.001 [default-web-80] [] 10.0.0.5:80 5 0.001 200 abc', True),
        ('"www.example.com" "http://x/" "A/1 (B)"', False),  # the host in front
        ('"www.example.com" "-" "A/1 (B)"', False),
        ('"-" "http://x/" "A/1 (B)"', False),
        ('"-" "-" "A/1 (B)"', False),
        ('"www.example.com" "A/1 (B)" "http://x/"', False),
        ('"-" "www.example.com" "A/1 (B)"', False),
        ('"-" "A/1 (B)" "C/2"', True),
        ('"-" "A/1 (B)"x', False),
        ('"-" "A/1 (B)" "x"y', False),
        ('"-" "A/1 (B)""x"', False),
        ('"-" "A/1 (B)" 192.0.2.8 - - [17/May/2015:10:05:03 +0200] "GET /b HTTP/1.1" 200 5', False),
    ],
)
def test_sp_2_what_is_behind_the_agent_is_ignored_if_that_is_certain(
    end: str, is_taken: bool
) -> None:
    """SP-2"""
    (found,) = both_ways([f'{HEAD}"GET /a HTTP/1.1" 200 5 {end}'.encode()], [False])
    if is_taken:
        assert found[-1] is None and (found[2], found[6], found[9]) == ("198.18.0.1", "/a", 200)
        assert found[12] == ("A/1 (B)" if "A/1" in end else None)
    else:
        assert found[-1] == line_parts.MORE_COLUMNS


def test_a_leap_second_is_the_next_one() -> None:
    times = (
        "31/Dec/2016:23:59:60 +0000",
        "01/Jan/2017:00:59:60 +0100",
        "31/Dec/2016:23:58:60 +0000",
    )
    lines = [f'192.0.2.7 - - [{time}] "GET / HTTP/1.1" 200 1'.encode() for time in times]
    rows = both_ways([*lines], [False] * 3)
    new_year_us = int(datetime(2017, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
    assert [row[0] for row in rows] == [new_year_us, new_year_us, None]
    assert rows[2][-1] == line_parts.BAD_TIME


@pytest.mark.parametrize(
    "time",
    [
        "[2015-05-17T10:05:03+02:00]",  # nginx's $time_iso8601
        "[2015-05-17T08:05:03Z]",
        "[17/May/2015:10:05:03 +02:00]",
        "[17/May/2015:08:05:03 GMT]",
        "[17/May/2015:10:05:03.000 +0200]",  # Apache's %{msec_frac}t
    ],
)
def test_sp_2_a_time_in_a_similar_form_is_the_same_time(time: str) -> None:
    """SP-2"""
    first, second = both_ways(
        [f'192.0.2.7 - - {each} "GET / HTTP/1.1" 200 5'.encode() for each in (TIME, time)],
        [False] * 2,
    )
    assert first[0] == second[0] is not None and second[-1] is None


@pytest.mark.parametrize(
    ("time", "time_us"),
    [
        ("[7/May/2015:10:05:03.25 Z]", 1_430_993_103_250_000),
        ("[17/May/2015 10:05:03]", None),  # Python's server writes no zone
        ("[17/May/2015:10:05:03]", None),
        ("[2015-05-17T10:05:03]", None),
        ("[29/Feb/2015:10:05:03 +00:00]", None),
        ("[2015-02-29T10:05:03Z]", None),
    ],
)
def test_sp_2_a_time_without_a_zone_or_that_does_not_exist_is_bad(
    time: str, time_us: int | None
) -> None:
    """SP-2"""
    (found,) = both_ways([f'192.0.2.7 - - {time} "GET / HTTP/1.1" 200 5'.encode()], [False])
    assert (found[0], found[-1]) == (time_us, None if time_us else line_parts.BAD_TIME)


def test_sp_2_a_line_in_a_containers_json_file_is_unwrapped() -> None:
    """SP-2: also with characters that JSON escapes, but a text cannot contain."""
    found = []
    for agent in ("A/1", r"\ud800", r"\u0001"):
        inner = f'192.0.2.7 - - {TIME} \\"GET / HTTP/1.1\\" 200 5 \\"-\\" \\"{agent}\\"\\n'
        text = f'{{"log":"{inner}","stream":"stdout","time":"2015-05-17T08:05:03.1Z"}}'
        (row,) = both_ways([text.encode()], [False])
        found.append((row[2], row[12], row[-1]))
    control = (None, None, line_parts.CONTROL_CHARACTER)
    assert found == [("192.0.2.7", "A/1", None), ("192.0.2.7", "?", None), control]


def test_ordinary_lines_go_the_fast_way() -> None:
    """Or all of it would be for nothing, and every test pass."""
    ordinary = [line(path=path) for path in ("/", "/a?b=c", "http://me/x", "/caf\u00e9")]
    ordinary += [(HEAD + '"HEAD / HTTP/1.0" 304 -').encode(), (HEAD + '"GET /" 200 1').encode()]
    ordinary += [
        f'{front} - - {TIME} "GET / HTTP/1.1" 200 1 "-" "A/1"{more}'.encode()
        for front in ("::1", "www.example.com:80 2001:db8::7", "127.0.1.1:80 192.0.2.7", "a.org")
        for more in ("", ' "-"', ' "192.0.2.9, 10.0.0.3"', " 0.012")
    ]
    assert matched_count(pl.Series(ordinary, dtype=pl.Binary)) == len(ordinary)


PIECES = st.sampled_from(
    [
        *(
            " ",
            "  ",
            '"',
            "\\",
            '\\"',
            "\\\\",
            "-",
            "[",
            "]",
            "?",
            "\t",
            "\r",
            "\n",
            "\u2028",
            "\x85",
        ),
        *(
            "\x00",
            "\x7f",
            "\xa0",
            "é",
            "GET",
            "GE_T",
            "9",
            "HTTP/1.1",
            "http://h:1",
            "/a",
            "/a.CSS",
        ),
        *(
            "200",
            "404",
            "2000",
            "1" * 18,
            "1" * 19,
            "+0000",
            "-1800",
            "+1759",
            "10:00:00",
            "24:00:00",
        ),
        *("23:59:60", "17/May/2015", "17/may/2015", "29/Feb/2015", "29/Feb/2016", "17/May/0000"),
        *("17/May/9999", "01/Jan/0001", "٣"),
        *(
            "www.example.com:443",
            "a.org",
            "::1",
            "1::2:3",
            "192.0.2.7",
            "0.012",
            "192.0.2.7:80",
            "_",
        ),
        *(' "-"', ' "192.0.2.9"', "http://h/", "1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:8:9", "fe80::1%e"),
    ]
)
PARTS = (
    "198.18.0.1",
    " ",
    "-",
    " ",
    "-",
    " ",
    "[",
    "17/May/2015",
    ":",
    "10:00:00",
    " ",
    "+0200",
    "]",
)
PARTS += (" ", '"', "GET", " ", "/x", " ", "HTTP/1.1", '"', " ", "200", " ", "12")
PARTS += (" ", '"', "http://h/", '"', " ", '"', "Agent", '"')


@st.composite
def odd_lines(draw: st.DrawFn) -> bytes:
    """A line with some of its parts changed, left out, doubled or cut."""
    parts = list(PARTS)
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, len(parts) - 1))
        parts[place] = draw(st.one_of(PIECES, st.just(""), st.just(parts[place] * 2), st.text()))
    text = "".join(parts)
    raw = text[: draw(st.one_of(st.none(), st.integers(0, len(text))))].encode()
    return raw if draw(st.integers(0, 9)) else raw + draw(st.binary(max_size=3))


def test_lg_1_bytes_that_are_not_utf8_are_written_as_escapes() -> None:
    """LG-1: as nginx writes them; a quote after such a byte ends its column."""
    head = HEAD.encode()
    for request, path, agent in (
        (b"/caf\xe9?a=\xff", r"/caf\xe9", "Mozilla"),
        (b"/\xc3\xa9\xc3", "/é\\xc3", r"\xf0\x9f"),
        (b"/a\\\xe9", r"/a\xe9", r"\x80"),
    ):
        value = head + b'"GET ' + request + b' HTTP/1.1" 200 12 "-" "' + agent.encode() + b'"'
        found = parse_line(value)
        assert isinstance(found, Fields)
        assert (found.path, found.agent, found.format) == (path, agent, "combined")
        both_ways([value], [False])
    found = parse_line(
        b'{"remote_addr":"192.0.2.7","time_iso8601":"2026-03-10T10:00:00Z","status":200,'
        b'"request":"GET /\xe9 HTTP/1.1","http_user_agent":"\\x22\xff"}'
    )
    assert isinstance(found, Fields)
    assert (found.path, found.agent) == (r"/\xe9", r"\x22\xff")


@given(st.lists(odd_lines(), min_size=1, max_size=20))
@example([b'1 2 3 [17/May/2015:10:00:00 +0200] "GET  HTTP/1.1" 200 1'])
@example([b'1 2 3 [17/May/2015:10:00:00 +0200] "GET HTTP/1.1" 200 1'])
@example([b'1 2 3 [17/May/2015:10:00:00 +0200] "GET ? HTTP/1.1" 200 1'])
@example([b'1 2 3 [31/Feb/2015:10:00:00 +0200] "GET ? HTTP/1.1" 200 1', b"\xff"])
def test_the_fast_way_and_the_exact_way_agree(values: list[bytes]) -> None:
    both_ways(list(values), [False] * len(values))


ADDRESSES = ("-", "192.0.2.7", "::1", "1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:8:9", "fe80::1%e", "1.2.3")
HOSTS = ("a", "a.org", "a.org:443", "192.0.2.7:80", "192.0.2.7:81", "[::1]:80", "_", "_a", "a-.b")
COLUMNS = st.sampled_from((*ADDRESSES, *HOSTS, "9", '""'))
ENDS = st.sampled_from(
    [
        '"-"',
        '""',
        '"A/1"',
        '"http://h/"',
        '"a.org"',
        '"192.0.2.9, ::1"',
        "0.012",
        "7",
        '"x y"',
        'r="1"',
    ]
)


@given(st.lists(COLUMNS, min_size=2, max_size=5), st.lists(ENDS, max_size=5))
def test_the_two_ways_agree_on_columns_before_the_time_and_at_the_end(
    columns: list[str], ends: list[str]
) -> None:
    text = " ".join([*columns, TIME, '"GET / HTTP/1.1" 200 5', *ends])
    both_ways([text.encode()], [False])


@pytest.mark.parametrize("given_lines", [[], [None]])
def test_few_lines(given_lines: list[bytes | None]) -> None:
    assert len(both_ways(given_lines, [False] * len(given_lines))) == len(given_lines)
