"""Java properties files and environment variables, read as Kafka reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.config import load_properties, parse_properties
from barnabas.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("a=b", {"a": "b"}),
        ("  a = b ", {"a": "b "}),
        ("a:b\nc d", {"a": "b", "c": "d"}),
        ("a   =   b=c", {"a": "b=c"}),
        ("# no\n! no\n\n \t\na=1", {"a": "1"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=one,\\\n   two", {"a": "one,two"}),
        ("a=C:\\\\data", {"a": "C:\\data"}),
        ("a=end\\\\\nb=1", {"a": "end\\", "b": "1"}),
        ("a\\ b\\=c\\:d=1", {"a b=c:d": "1"}),
        ("a=\\u0041\\t\\q", {"a": "A\tq"}),
        ("a", {"a": ""}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1 # not a comment", {"a": "1 # not a comment"}),
        ("a=x\\\n# part of it", {"a": "x# part of it"}),
        ("a=x\\", {"a": "x"}),
    ],
)
def test_the_syntax_of_java_properties(text: str, settings: dict[str, str]) -> None:
    assert parse_properties(text) == settings


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_a_file_may_be_utf_8_or_latin_1(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "server.properties"
    file.write_bytes("log.dirs=/daten/größe\n".encode(encoding))
    assert load_properties(file) == {"log.dirs": "/daten/größe"}


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.properties: No such file"):
        load_properties(tmp_path / "none.properties")


def test_a_binary_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "zoo.cfg"
    file.write_bytes(b"\x7fELF\x02\x01\x01\0\0\0dataDir=/data")
    with pytest.raises(ConfigError, match=r"zoo\.cfg: this is not a text file of settings"):
        load_properties(file)
