"""Values are read as Kafka reads them, and errors name the key and the rule."""

from __future__ import annotations

import pytest

from barnabas.config import ConfigKey, ConfigValue
from barnabas.errors import ConfigError


def _key(kind: str, valid: str = "") -> ConfigKey:
    return ConfigKey("a.key", kind, None, valid, "A sentence.")


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("int", " 42 ", 42),
        ("int", "+7", 7),
        ("int", "-2147483648", -2147483648),
        ("long", "9223372036854775807", 9223372036854775807),
        ("short", "-1", -1),
        ("boolean", "TRUE", True),
        ("boolean", "false", False),
        ("double", "0.5", 0.5),
        ("double", "1.7976931348623157E308", 1.7976931348623157e308),
        ("string", " with blanks around ", "with blanks around"),
        ("list", "a, b ,c", ["a", "b", "c"]),
        ("list", "", []),
        ("class", "com.example.Policy", "com.example.Policy"),
    ],
)
def test_values_are_read_as_kafka_reads_them(kind: str, text: str, value: ConfigValue) -> None:
    assert _key(kind).parse(text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("int", "10k"),
        ("int", ""),
        ("int", "1_000"),
        ("int", "١٢"),
        ("int", "2147483648"),
        ("short", "40000"),
        ("long", "1e6"),
        ("boolean", "yes"),
        ("double", "half"),
        ("double", "1_0"),
        ("double", "inf"),
        ("double", "NaN"),
        ("double", "1e999"),
    ],
)
def test_what_is_no_value_of_the_type_is_refused(kind: str, text: str) -> None:
    with pytest.raises(ConfigError, match=r"a\.key: "):
        _key(kind).parse(text)


@pytest.mark.parametrize(
    ("valid", "good", "bad"),
    [
        ("[1,...]", ["1", "99"], ["0", "-1"]),
        ("[1,...,9]", ["1", "9"], ["0", "10"]),
        ("[1,...,9] or -1", ["-1", "1", "9"], ["0", "-2"]),
        ("[-131072,...,22]", ["-131072", "0", "22"], ["23"]),
    ],
)
def test_numbers_stay_within_their_bounds(valid: str, good: list[str], bad: list[str]) -> None:
    key = _key("int", valid)
    for text in good:
        key.parse(text)
    for text in bad:
        with pytest.raises(ConfigError) as caught:
            key.parse(text)
        assert str(caught.value) == f"a.key: {text!r} is not one of {valid}"


def test_each_item_of_a_list_must_be_one_of_the_names() -> None:
    key = _key("list", "[compact, delete]")
    assert key.parse("delete,compact") == ["delete", "compact"]
    with pytest.raises(ConfigError, match="is not one of compact, delete"):
        key.parse("delete,forget")


def test_values_are_printed_as_kafka_prints_them() -> None:
    key = _key("string")
    printed = [key.text(value) for value in (True, False, None, ["a", "b"], -1, 0.5, "x")]
    assert printed == ["true", "false", None, "a,b", "-1", "0.5", "x"]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.5, "0.5"),
        (1.0, "1.0"),
        (0.0, "0.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (-12345678.5, "-1.23456785E7"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
    ],
)
def test_doubles_are_printed_as_java_prints_them(number: float, text: str) -> None:
    assert _key("double").text(number) == text
