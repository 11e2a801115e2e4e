"""Encodes and decodes the subscriptions and assignments of consumers (`ConsumerProtocol`).

    version int16 | body; newer versions only add fields at the end

The broker passes these bytes from one member to another without interpreting them. It decodes them
only to find out which topics a group is subscribed to, and which partitions moved in a rebalance.
Any bytes are decoded into a message or raise `CorruptData`.
"""

from __future__ import annotations

from struct import Struct, error
from typing import TypeVar

from barnabas.errors import CorruptData
from barnabas.protocol.codec import decode_prefix, encode_after
from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import BYTES, INT32, STRING, Array

CONSUMER_PROTOCOL = "consumer"
"""The protocol type of groups in which members exchange `ConsumerProtocol` messages."""

_VERSION = Struct(">h")

M = TypeVar("M", bound=Message)


class TopicPartitions(Message):
    topic: str = field(STRING)
    partitions: list[int] = field(Array(INT32))


class ConsumerProtocolSubscription(Message):
    topics: list[str] = field(Array(STRING))
    user_data: bytes | None = field(BYTES, nullable="0+")
    owned_partitions: list[TopicPartitions] = field(
        Array(TopicPartitions), versions="1+", ignorable=True
    )
    generation_id: int = field(INT32, versions="2+", default=-1, ignorable=True)
    rack_id: str | None = field(STRING, versions="3+", nullable="3+", default=None, ignorable=True)


class ConsumerProtocolAssignment(Message):
    assigned_partitions: list[TopicPartitions] = field(Array(TopicPartitions))
    user_data: bytes | None = field(BYTES, nullable="0+")


_NEWEST: dict[type[Message], int] = {
    ConsumerProtocolSubscription: 3,
    ConsumerProtocolAssignment: 3,
}


def encode_consumer_protocol(message: Message) -> bytes:
    """Encode a subscription or an assignment in the newest version that Kafka 3.9 has."""
    version = _NEWEST[type(message)]
    out = bytearray(_VERSION.pack(version))
    encode_after(out, message, version)
    return bytes(out)


def decode_consumer_protocol(cls: type[M], data: bytes | memoryview) -> tuple[int, M]:
    """Decode a member's subscription or assignment.

    Return its version and content. Raises CorruptData.
    """
    try:
        (version,) = _VERSION.unpack_from(data)
    except error as cause:
        raise CorruptData("the data ends before its version") from cause
    if version < 0:
        raise CorruptData(f"{cls.__name__} has version {version}")
    return version, decode_prefix(cls, data[_VERSION.size :], min(version, _NEWEST[cls]))
