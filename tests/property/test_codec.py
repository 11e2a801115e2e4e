"""The compiled codec against the interpreter, and against malformed bytes (UX-4)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.errors import CorruptData
from barnabas.protocol import codec, interpreter
from barnabas.protocol.api import APIS
from barnabas.protocol.frame import decode_request_header
from barnabas.protocol.message import Message
from tests.kit.effort import examples, rounds
from tests.kit.random_messages import ANY_VERSION, MESSAGES, VERSIONS

quick = settings(
    max_examples=examples(25, least=5),  # of each message, and they are many
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
deep = settings(quick, max_examples=examples(rounds(40, in_soak=300)))
every_message = pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)


def joined(parts: list[Any]) -> bytes:
    assert all(len(part) for part in parts)
    return b"".join(parts)


def is_equal(mine: Any, other: Any) -> bool:
    """A call, since pytest would print a diff of two `==` operands: minutes for 20 KB."""
    return bool(mine == other)


def outcome(decode: Any, cls: type[Message], data: bytes, version: int) -> Any:
    """The message, or CorruptData; anything else fails the test."""
    try:
        return decode(cls, data, version)
    except CorruptData:
        return CorruptData


@every_message
@quick
@given(data=st.data())
def test_compiled_and_interpreted_agree(cls: type[Message], data: st.DataObject) -> None:
    message, version = data.draw(ANY_VERSION[cls])
    encoded = joined(codec.encode(message, version))
    assert is_equal(encoded, interpreter.encode(message, version))
    assert is_equal(codec.decode(cls, encoded, version), message)
    assert is_equal(interpreter.decode(cls, encoded, version), message)


@every_message
@quick
@given(data=st.data())
def test_any_bytes_give_a_message_or_corrupt_data(cls: type[Message], data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(VERSIONS[cls]))
    noise = data.draw(st.binary(max_size=80))
    decoded = outcome(codec.decode, cls, noise, version)
    assert is_equal(decoded, outcome(interpreter.decode, cls, noise, version))
    prefix = outcome(codec.decode_prefix, cls, noise, version)
    assert decoded is CorruptData or is_equal(prefix, decoded)


@every_message
@quick
@given(data=st.data())
def test_damaged_messages_give_a_message_or_corrupt_data(
    cls: type[Message], data: st.DataObject
) -> None:
    check_damaged(cls, data)


@pytest.mark.slow
@pytest.mark.repeated
@every_message
@deep
@given(data=st.data())
def test_damaged_messages_in_bulk(cls: type[Message], data: st.DataObject) -> None:
    check_damaged(cls, data)


def check_damaged(cls: type[Message], data: st.DataObject) -> None:
    message, version = data.draw(ANY_VERSION[cls])
    damaged = bytearray(interpreter.encode(message, version))
    for _ in range(data.draw(st.integers(1, 4))):
        _damage(damaged, data)
    frame = bytes(damaged)
    assert is_equal(
        outcome(codec.decode, cls, frame, version), outcome(interpreter.decode, cls, frame, version)
    )


def _damage(damaged: bytearray, data: st.DataObject) -> None:
    """Overwrite, cut out or insert a byte; those that lengths are made of most often."""
    byte = data.draw(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF]) | st.integers(0, 255))
    at = data.draw(st.integers(0, max(len(damaged) - 1, 0)))
    how = data.draw(st.sampled_from(["set", "cut", "insert", "end"]))
    if how == "insert" or not damaged:
        damaged.insert(at, byte)
    elif how == "set":
        damaged[at] = byte
    elif how == "cut":
        del damaged[at]
    else:
        del damaged[at:]


@quick
@given(st.binary(max_size=60), st.sampled_from(sorted(APIS)), st.integers(-1, 20))
def test_any_bytes_are_a_request_header_or_corrupt_data(
    noise: bytes, key: int, version: int
) -> None:
    for frame in (noise, key.to_bytes(2, "big") + version.to_bytes(2, "big", signed=True) + noise):
        try:
            header = decode_request_header(memoryview(frame))
        except CorruptData:
            continue
        assert frame.endswith(bytes(header.body))
