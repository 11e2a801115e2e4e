"""Formats in a user's file (SP-2, UX-4)."""

from __future__ import annotations

import re
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
    with pytest.raises(ConfigError, match="no format of access logs; such a format has kind"):
        read_access_formats(path)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("", "must contain at least one [[format]] table"),
        ("[format]\nname = 'x'", "must contain at least one [[format]] table"),
        ("[[format]]\nname = 'x'\n[other]", "must contain at least one"),
        ("[[format]]\nname = 'x'", "format 1: pattern is missing"),
        ("[[format]]\nname = 3\npattern = '{message}'", "format 1: name is missing, or not text"),
        (
            "[[format]]\nname = 'raw'\npattern = '{message}'",
            "is the name of lines that match no format",
        ),
        (
            "[[format]]\nname = 'x'\npattern = '{message}'\nzone = 'Mars'",
            "'Mars' is not a time zone",
        ),
        (
            "[[format]]\nname = 'x'\npattern = '{message}'\ncolour = 1",
            "colour: no such key; there are name, kind, zone and one of pattern, json and w3c",
        ),
        (
            "[[format]]\nname = 'x'\npattern = 'x'",
            "format 1: the pattern 'x': {message} is missing",
        ),
        ("[[format]]\nname = 'x'\npattern = 'x'\njson = {}", "either a pattern or json"),
        ("[[format]]\nname = 'x'\njson = 1", "json: it must have lists of keys"),
        (
            "[[format]]\nname = 'x'\njson = {tiem = ['a'], message = ['m']}",
            "format 1: json: tiem: no such field; there are time, level,",
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
            "format 1: json: referer: no such field of an access log; there are client, ident,",
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
            "an access log needs status, path",
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
    ],
)
def test_ux_4_what_is_wrong_with_a_file(tmp_path: Path, content: str, what: str) -> None:
    path = tmp_path / "formats.toml"
    path.write_text(content)
    with pytest.raises(ConfigError, match=re.escape(what)):
        read_formats(path)


def test_ux_4_a_mark_before_the_text_is_no_part_of_it(tmp_path: Path) -> None:
    """UX-4: some editors of Windows write it; what is no text at all is named as such."""
    path = tmp_path / "formats.toml"
    path.write_bytes(b"\xef\xbb\xbf[[format]]\nname = 'x'\npattern = '{message}'\n")
    assert [each.name for each in read_formats(path)] == ["x"]
    path.write_bytes(b"\xd0\x00")
    with pytest.raises(ConfigError, match="the file is not text in UTF-8"):
        read_formats(path)
