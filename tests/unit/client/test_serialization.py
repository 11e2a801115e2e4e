"""PR-10: serializers and deserializers by short name, by Kafka's class name, or as a callable."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from barnabas.client.errors import SerializationError
from barnabas.client.serialization import (
    SERIALIZERS,
    deserialize,
    deserializer,
    serialize,
    serializer,
)
from barnabas.errors import ConfigError

KAFKAS = "org.apache.kafka.common.serialization."
AN_ID = uuid.UUID("123e4567-e89b-12d3-a456-426614174000")
FORMATS = [
    ("string", "StringSerializer", "grüße", "grüße".encode()),
    ("integer", "IntegerSerializer", -2, b"\xff\xff\xff\xfe"),
    ("long", "LongSerializer", 2**40, b"\x00\x00\x01\x00\x00\x00\x00\x00"),
    ("short", "ShortSerializer", 258, b"\x01\x02"),
    ("float", "FloatSerializer", 1.5, b"\x3f\xc0\x00\x00"),
    ("double", "DoubleSerializer", -2.0, b"\xc0\x00\x00\x00\x00\x00\x00\x00"),
    ("uuid", "UUIDSerializer", AN_ID, b"123e4567-e89b-12d3-a456-426614174000"),
]


@pytest.mark.parametrize(("name", "kafkas", "value", "data"), FORMATS)
def test_pr_10_formats_are_those_of_kafkas_classes(
    name: str, kafkas: str, value: Any, data: bytes
) -> None:
    for given in (name, KAFKAS + kafkas):
        there = serializer(given, "value.serializer")
        assert there is not None and serialize(there, value, "value", "t") == data
        back = deserializer(given.replace("Serializer", "Deserializer"), "value.deserializer")
        assert back is not None and deserialize(back, data, "value", "t-0@1") == value


def test_pr_10_json_goes_both_ways_without_spaces() -> None:
    there = serializer("org.apache.kafka.connect.json.JsonSerializer", "value.serializer")
    assert there is not None
    data = serialize(there, {"name": "grüße", "n": [1, None]}, "value", "t")
    assert data == '{"name":"grüße","n":[1,null]}'.encode()
    back = deserializer("json", "value.deserializer")
    assert back is not None and back(data) == {"name": "grüße", "n": [1, None]}


@pytest.mark.parametrize("name", ["bytes", f"{KAFKAS}ByteArray{{}}", f"{KAFKAS}Bytes{{}}"])
def test_pr_10_bytes_need_no_serializer(name: str) -> None:
    assert serializer(name.format("Serializer"), "key.serializer") is None
    assert deserializer(name.format("Deserializer"), "key.deserializer") is None


@pytest.mark.parametrize("name", SERIALIZERS)
def test_pr_10_null_stays_null(name: str) -> None:
    there, back = serializer(name, "o"), deserializer(name, "o")
    if there is not None and back is not None:
        assert serialize(there, None, "key", "t") is None
        assert deserialize(back, None, "key", "t-0@1") is None


def test_pr_10_a_callable_is_taken_as_it_is() -> None:
    there = serializer(lambda value: bytearray(value.upper().encode()), "value.serializer")
    assert there is not None
    assert serialize(there, "a", "value", "t") == b"A"


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("string", 5, "5 of type int cannot be serialized by string_serializer: it takes str"),
        ("string", "\ud800", "surrogates not allowed"),
        ("integer", 2**31, "-2147483648 to 2147483647"),
        ("integer", True, "it takes int, not bool"),
        ("integer", "1", "of type str cannot be serialized by integer_serializer"),
        ("short", -(2**15) - 1, "-32768 to 32767"),
        ("long", 2**63, "8 bytes"),
        ("float", 1e300, "float_serializer"),
        ("double", "1.0", "it takes float, not str"),
        ("uuid", "not one", "it takes uuid.UUID, not str"),
        ("json", {1, 2}, "not JSON serializable"),
        ("json", float("nan"), "not JSON compliant"),
    ],
)
def test_pr_10_what_cannot_be_serialized_is_named(name: str, value: Any, problem: str) -> None:
    there = serializer(name, "key.serializer")
    assert there is not None
    with pytest.raises(SerializationError, match=problem) as caught:
        serialize(there, value, "key", "orders")
    assert str(caught.value).startswith("key of a record for topic 'orders': ")


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("string", b"\xff", "utf-8"),
        ("integer", b"123", "it takes 4 bytes"),
        ("uuid", b"123", "badly formed"),
        ("json", b"{", "cannot be deserialized by json_deserializer"),
    ],
)
def test_pr_10_what_cannot_be_deserialized_is_named(name: str, data: bytes, problem: str) -> None:
    back = deserializer(name, "value.deserializer")
    assert back is not None
    with pytest.raises(SerializationError, match=problem) as caught:
        deserialize(back, data, "value", "orders-0 at offset 7")
    assert str(caught.value).startswith("value of the record at orders-0 at offset 7: ")


def test_pr_10_a_serializer_that_returns_no_bytes_is_named() -> None:
    there = serializer(repr, "value.serializer")
    assert there is not None
    with pytest.raises(SerializationError, match="serializer repr returned str; it must return"):
        serialize(there, 5, "value", "orders")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("strng", "'strng' is not one of bytes, .*; did you mean string"),
        ("com.example.LongsSerializer", "did you mean long"),
        ("avro", "value.serializer: 'avro' is not one of bytes"),
        (5, "5 is neither a serializer's name nor callable"),
        (int, "int is a class"),
    ],
)
def test_pr_10_an_unknown_serializer_is_refused(given: object, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        serializer(given, "value.serializer")
