"""Formats in a user's file (SP-2, UX-4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.errors import ConfigError
from barnabas_formats.user_formats import read_access_formats, read_formats

HADOOP = """
[[format]]
name = "hadoop"
pattern = "{time:%Y-%m-%d %H:%M:%S,%f} {level} [{thread}] {component}: {message}"
zone = "Europe/Vienna"

[[format]]
name = "hadoop"
pattern = "{level}: {message}"
"""


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "formats.toml"
    path.write_text(HADOOP)
    first, second = read_formats(path)
    assert (first.name, first.zone) == ("hadoop", "Europe/Vienna")
    assert (second.name, second.zone) == ("hadoop", "UTC")
    assert second.patterns[0].columns == ("level", "message")


ACCESS = """
[[format]]
name = "gateway"
kind = "access"
pattern = '{client} [{time:%d/%b/%Y:%H:%M:%S %z}] "{request}" {status}'
"""


def test_lg_1_own_formats_of_access_logs(tmp_path: Path) -> None:
    path = tmp_path / "formats.toml"
    path.write_text(HADOOP + ACCESS)
    (found,) = read_access_formats(path)
    assert (found.name, found.kind, found.patterns) == ("gateway", "access", ())
    assert found.access[0].columns == ("client", "time", "request", "status")
    (zoned,) = read_access_formats(path, "Europe/Vienna")
    assert zoned.zone == "Europe/Vienna"
    assert read_access_formats(None) == ()


def test_ux_4_a_file_without_formats_of_access_logs(tmp_path: Path) -> None:
    path = tmp_path / "formats.toml"
    path.write_text(HADOOP)
    with pytest.raises(ConfigError, match="no format for access logs; such a format has kind"):
        read_access_formats(path)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("", "must contain at least one [[format]] table"),
        ("[format]\nname = 'x'", "must contain at least one [[format]] table"),
        ("[[format]]\nname = 'x'\n[other]", "must contain at least one"),
        ("[[format]]\nname = 'x'", "format 1: pattern is missing"),
        ("[[format]]\nname = 3\npattern = '{message}'", "format 1: name is not text"),
        (
            "[[format]]\nname = 'raw'\npattern = '{message}'",
            "is reserved for lines that match no format",
        ),
        (
            "[[format]]\nname = 'x'\npattern = '{message}'\nzone = 'Mars'",
            "'Mars' is not a time zone",
        ),
        (
            "[[format]]\nname = 'x'\npattern = '{message}'\ncolour = 1",
            "colour: no such key; the keys are name, kind, zone and one of pattern, json and w3c",
        ),
        (
            "[[format]]\nname = 'x'\npattern = 'x'",
            "format 1: the pattern 'x': {message} is missing",
        ),
        ("[[format]]\nname = 'x'\npattern = 'x'\njson = {}", "either a pattern or json"),
        ("[[format]]\nname = 'x'\njson = 1", "json: the value must be a table of lists of keys"),
        (
            "[[format]]\nname = 'x'\njson = {tiem = ['a'], message = ['m']}",
            "format 1: json: tiem: no such field; tiem: did you mean time?; the fields are time,",
        ),
        ("[[format]]\nname = 'x'\njson = {time = 'a'}", "json: time is not a list of keys"),
        ("[[format]]\nname = 'x'\npattern = '{message}'\nkind = 'z'", "'z' is not a kind"),
        (
            "[[format]]\nname = 'x'\npattern = '{message}'\nkind = 'access'",
            "format 1: the pattern '{message}': message: no such field of an access log",
        ),
        (
            "[[format]]\nname = 'x'\njson = {client = ['a'], time = ['b']}\nkind = 'access'",
            "format 1: json: an access log needs status, method, path; request, a whole request",
        ),
        (
            "[[format]]\nname = 'x'\njson = {referer = ['a']}\nkind = 'access'",
            "json: referer: no such field of an access log; referer: did you mean referrer?; the",
        ),
        (
            "[[format]]\nname = 'x'\nkind = 'access'\nw3c = 'time date c-ip'",
            "w3c: 'time date c-ip' does not have the columns date time, in this order",
        ),
        (
            "[[format]]\nname = 'x'\nkind = 'access'\nw3c = 'date time c-ip c-ip'",
            "w3c: c-ip occurs twice",
        ),
        (
            "[[format]]\nname = 'x'\nkind = 'access'\nw3c = 'date time c-ip cs-method'",
            "format 1: w3c: an access log needs cs-uri-stem, sc-status",
        ),
        (
            "[[format]]\nname = 'x'\nw3c = 'date time c-ip'",
            'w3c: the format needs kind = "access"',
        ),
        (
            "[[format]]\nname = 'x'\nkind = 'access'\nw3c = 'date time'\nzone = 'UTC'",
            "format 1: a format with w3c has no pattern, json or zone",
        ),
        ("[[format", "formats.toml: "),
        ("format = [1]", "may contain only [[format]] tables"),
        ("[[format]]\npattern = '{message}'", "format 1: name is missing: a format needs one"),
        ("[[format]]\nname = ' '\npattern = '{message}'", "format 1: name is empty"),
        ("[[format]]\nname = 'x'\npattern = 1", "format 1: pattern is not text"),
        (
            "[[format]]\nname = 'x'\npatern = 'x'",
            "patern: no such key; patern: did you mean pattern?",
        ),
        (
            "[[format]]\nname = 'x'\npattern = '{message}'\nkind = 'acces'",
            "'acces' is not a kind; did you mean access?",
        ),
        (
            "[[format]]\nname = 'x'\njson = {tme = ['a']}",
            "tme: no such field; tme: did you mean time?",
        ),
        (
            "[[format]]\nname = 'x'\njson = {time = [], message = ['m']}",
            "json: time is an empty list; name a key, or leave time out",
        ),
        (
            "[[format]]\nname = 'nginx'\npattern = '{message}'",
            "'nginx' is the name of a built-in format; choose another, such as 'our-nginx'",
        ),
        (
            2 * "[[format]]\nname = 'x'\npattern = '{message}'\n",
            "format 2: 'x' is the same as format 1",
        ),
        (
            f"[[format]]\nname = 'gateway'\npattern = '{{message}}'\n{ACCESS}",
            "format 2: format 1 has the name 'gateway', too, and is of the kind system",
        ),
        (
            "[[format]]\nname = 'x'\npattern = '{client} {status}'",
            '{message} is missing; if the lines are of an access log, add kind = "access"',
        ),
        (
            "[[format]]\nname = 'x'\nkind = 'access'\n"
            "w3c = 'date time cip cs-method cs-uri-stem sc-status'",
            "w3c: an access log needs c-ip; cip: did you mean c-ip?",
        ),
        (
            "[[format]]\nname = 'x'\nkind = 'access'\n"
            "w3c = '#Fields: date time s-ip cs-method cs-uri-stem sc-status'",
            "formats.toml, format 1: w3c: an access log needs c-ip$",
        ),
    ],
)
def test_ux_4_what_is_wrong_with_a_file(tmp_path: Path, content: str, what: str) -> None:
    path = tmp_path / "formats.toml"
    path.write_text(content)
    with pytest.raises(ConfigError) as caught:
        read_formats(path)
    assert what in f"{caught.value}$"
    assert "{_}" not in str(caught.value) or "{" in content, (
        "no pattern that the user did not write"
    )


def test_ux_4_a_directive_in_another_case(tmp_path: Path) -> None:
    path = tmp_path / "formats.toml"
    columns = "date time c-ip cs-method cs-uri-stem sc-status"
    for directive in (f"#fields: {columns}", f"# FIELDS: {columns.upper()}", columns):
        path.write_text(f"[[format]]\nname = 'x'\nkind = 'access'\nw3c = '{directive}'")
        (found,) = read_formats(path)
        assert found.access[0].w3c == tuple(columns.split())


def test_lg_1_the_notation_of_nginx(tmp_path: Path) -> None:
    """LG-1: what a user pastes from nginx.conf describes an access log without a `kind`."""
    path = tmp_path / "formats.toml"
    path.write_text(
        "[[format]]\nname = 'x'\npattern = '$remote_addr [$time_local] \"$request\" $status'"
    )
    (found,) = read_formats(path)
    assert (found.kind, found.access[0].columns) == (
        "access",
        ("client", "time", "request", "status"),
    )


def test_ux_4_a_mark_before_the_text_is_no_part_of_it(tmp_path: Path) -> None:
    """UX-4: some editors of Windows write it; what is no text at all is named as such."""
    path = tmp_path / "formats.toml"
    path.write_bytes(b"\xef\xbb\xbf[[format]]\nname = 'x'\npattern = '{message}'\n")
    assert [each.name for each in read_formats(path)] == ["x"]
    path.write_bytes(b"\xd0\x00")
    with pytest.raises(ConfigError, match="the file is not text in UTF-8"):
        read_formats(path)
