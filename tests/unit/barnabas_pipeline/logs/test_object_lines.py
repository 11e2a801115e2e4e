"""Columns of lines with keys and values: times in any unit, nested keys, levels (SP-2)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from barnabas_formats.format import Format, json_keys
from barnabas_pipeline.logs.object_lines import Columns, ObjectReader


def read(value: dict[str, Any], zone: str = "UTC", **keys: Any) -> Columns | None:
    of = Format("own", json=(json_keys({"message": ["m"], **keys}),), zone=zone)
    (found,) = ObjectReader("json", [of]).read([json.dumps({"m": "x", **value})])
    return found


@pytest.mark.parametrize(
    ("time", "unit", "expected_us"),
    [
        (1_773_136_800, None, 1_773_136_800_000_000),
        (1_773_136_800.123456, None, 1_773_136_800_123_456),
        ("1773136800.5", None, 1_773_136_800_500_000),
        (1_773_136_800_123, None, 1_773_136_800_123_000),
        (1_773_136_800_123_456, None, 1_773_136_800_123_456),
        (1_773_136_800_123_456_789, None, 1_773_136_800_123_456),
        (7, "s", 7_000_000),
        (7, "ms", 7_000),
        (7.5, "us", 8),
        ("2026-03-10T10:00:00Z", None, 1_773_136_800_000_000),
        ("2026-03-10 10:00:00,5 UTC", None, 1_773_136_800_500_000),
        ("2026-03-10 11:00:00 CET", None, 1_773_136_800_000_000),
        ("2026-03-10T11:00:00.123456789+0100", None, 1_773_136_800_123_456),
    ],
)
def test_times(time: object, unit: str | None, expected_us: int) -> None:
    rule = {"time": ["t"]} if unit is None else {"time": ["t"], "unit": unit}
    found = read({"t": time}, **rule)
    assert found is not None
    assert found.time_us == expected_us


def test_a_time_without_an_offset_is_of_the_zone() -> None:
    found = read({"t": "2026-03-10T11:00:00"}, zone="Europe/Vienna", time=["t"])
    assert found is not None
    assert found.time_us == 1_773_136_800_000_000


@pytest.mark.parametrize("time", [5, -1, "soon", True, [], 1e300, {"a": 1}])
def test_sp_2_an_object_with_another_kind_of_time_is_not_ours(time: object) -> None:
    assert read({"t": time}, time=["t"]) is None


def test_an_impossible_time() -> None:
    found = read({"t": "2026-02-31T10:00:00"}, time=["t"])
    assert found is not None
    assert found.is_impossible


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": {"b": {"c": "x"}}}, "x"),
        ({"a.b": {"c": "x"}}, "x"),
        ({"a.b.c": "x", "a": {}}, "x"),
        ({"a": {"b.c": 7}}, "7"),
        ({"a": {"b": 1}}, None),
        ({"other": " y:12 "}, "y"),
        ({"a": {"b": {"c": None}}, "other": "z"}, "z"),
    ],
)
def test_nested_keys_and_the_first_key_that_is_there(
    value: dict[str, Any], expected: str | None
) -> None:
    found = read({**value, "l": "info"}, component=["a.b.c", "other"], level=["l"])
    assert found is not None
    assert found.component == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Warning", "WARN"),
        (" err ", "ERROR"),
        (10, "TRACE"),
        (60, "FATAL"),
        (11, None),
        (True, None),
    ],
)
def test_levels_have_names_or_numbers(name: object, expected: str | None) -> None:
    found = read({"l": name, "t": 1_773_136_800}, level=["l"], time=["t"])
    assert found is not None
    assert found.level == expected


def test_texts_of_bytes_and_lines() -> None:
    keys = {"more": ["s"], "time": ["t"], "message": ["b"]}
    found = read({"b": [104, 105, 255], "s": ["a", "b"], "t": 1_773_136_800}, **keys)
    assert found is not None
    assert (found.message, found.more) == ("hi\ufffd", "a\nb")


def test_the_format_that_requires_most_keys_comes_first() -> None:
    loose = Format("loose", json=(json_keys({"message": ["m"], "time": ["t"]}),), source="x")
    exact = Format(
        "exact", json=(json_keys({"message": ["m"], "required": ["m", "v"]}),), source="x"
    )
    for formats in ([loose, exact], [exact, loose]):
        reader = ObjectReader("json", formats)
        rows = reader.read(['{"m":"","v":1,"t":1773136800}', '{"m":"","t":1773136800}', "{}"])
        assert [row and row.format for row in rows] == ["exact", "loose", None]
