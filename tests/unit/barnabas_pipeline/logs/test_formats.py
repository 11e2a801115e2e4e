"""Formats of log lines: known ones, and those of a user's file (SP-2, UX-4)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from barnabas.errors import ConfigError
from barnabas_pipeline.logs.formats import known_formats, read_formats

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
    assert second.pattern.columns == ("level", "message")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("", "must only have a list of [[format]]"),
        ("[format]\nname = 'x'", "must only have a list of [[format]]"),
        ("[[format]]\nname = 'x'\n[other]", "must only have a list"),
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
        ("[[format]]\nname = 'x'\npattern = '{message}'\ncolour = 1", "colour: there are name"),
        (
            "[[format]]\nname = 'x'\npattern = 'x'",
            "format 1: the pattern 'x': {message} is missing",
        ),
        ("[[format", "formats.toml: "),
    ],
)
def test_ux_4_what_is_wrong_with_a_file(tmp_path: Path, content: str, what: str) -> None:
    path = tmp_path / "formats.toml"
    path.write_text(content)
    with pytest.raises(ConfigError, match=re.escape(what)):
        read_formats(path)


def test_the_known_ones_have_a_message_and_all_but_three_a_time() -> None:
    """Those are RFC 5424 with a hyphen for it, and the default of Python's `logging`."""
    formats = known_formats()
    assert all("message" in each.pattern.columns for each in formats)
    timeless = [each.name for each in formats if "time" not in each.pattern.columns]
    assert timeless == ["syslog", "syslog", "python"]
