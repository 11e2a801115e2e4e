"""UX-2: what `consume` prints of a record."""

from __future__ import annotations

import json

import pytest

from barnabas.cli.records.layout import BadFormat, json_layout, template_layout, value_layout
from barnabas.client.consumer.fetched import ConsumerRecord

RECORD = ConsumerRecord("t", 3, 42, 1_700_000_000_000, 0, b"k", b"v", (("a", b"1"), ("b", None)))
NULLS = RECORD._replace(key=None, value=None, headers=())


def test_the_value_alone_is_the_default() -> None:
    assert value_layout(RECORD) == b"v\n"
    assert value_layout(NULLS) == b"null\n"
    assert value_layout(RECORD._replace(value=b"\xff\x00")) == b"\xff\x00\n", "bytes as they are"


@pytest.mark.parametrize(
    ("template", "line"),
    [
        ("{key}={value}", b"k=v\n"),
        ("{topic}-{partition}@{offset} {timestamp}", b"t-3@42 1700000000000\n"),
        (r"{key}\t{headers}\n--", b"k\ta:1,b:null\n--\n"),
        ("{ key }", b"k\n"),
        ("key,value", b"k\tv\n"),
        ("offset", b"42\n"),
        ("grüße {value}", "grüße v\n".encode()),
    ],
)
def test_a_template_or_a_list_of_names(template: str, line: bytes) -> None:
    assert template_layout(template)(RECORD) == line


def test_null_is_the_word_null() -> None:
    assert template_layout("{key}|{value}|{headers}|")(NULLS) == b"null|null||\n"


@pytest.mark.parametrize("template", ["{size}", "key,size", "{}", ""])
def test_a_name_that_no_record_has_is_an_error(template: str) -> None:
    """UX-4: with the names that there are."""
    with pytest.raises(BadFormat, match="topic, partition, offset, timestamp, key, value, headers"):
        template_layout(template)


def test_json_is_one_object_a_line() -> None:
    line = json_layout(RECORD._replace(value=b"\xff", key="grüße".encode()))
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    assert json.loads(line) == {
        "topic": "t",
        "partition": 3,
        "offset": 42,
        "timestamp": 1_700_000_000_000,
        "key": "grüße",
        "value": {"base64": "/w=="},
        "headers": [{"key": "a", "value": "1"}, {"key": "b", "value": None}],
    }
    assert json.loads(json_layout(NULLS))["value"] is None
