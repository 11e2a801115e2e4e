"""Encodes and decodes the records in Kafka's internal topics, which store groups and transactions.

    __consumer_offsets     key: version int16, which is the record's type, then its body
                               0, 1  an offset that a group committed (0 is only read)
                               2     a group of the classic protocol, with its members
                           value: version int16, body; null deletes
    __transaction_state    key: version int16 (0), transactional id
                           value: version int16 (0; 1 from Kafka 4), body; null deletes

This module defines these layouts with the same notation as the messages of the wire protocol, and
encodes and decodes them. For any input, a decoder either returns a record or raises
`UnknownRecordType` or `CorruptData`.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct, error
from typing import NamedTuple

from barnabas.coordinator.offset_bytes import (
    OffsetCommit,
    decode_offset_commit,
    encode_offset_key,
    encode_offset_value,
)
from barnabas.errors import CorruptData
from barnabas.protocol.codec import decode, encode_after
from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import BYTES, INT8, INT16, INT32, INT64, STRING, Array

_VERSION = Struct(">h")


class OffsetCommitKey(Message):
    group: str = field(STRING)
    topic: str = field(STRING)
    partition: int = field(INT32)


class OffsetCommitValue(Message, flexible="4+"):
    offset: int = field(INT64)
    leader_epoch: int = field(INT32, versions="3+", default=-1, ignorable=True)
    metadata: str = field(STRING)
    commit_timestamp: int = field(INT64)
    expire_timestamp: int = field(INT64, versions="1", default=-1, ignorable=True)


class GroupMetadataKey(Message):
    group: str = field(STRING)


class MemberMetadata(Message):
    member_id: str = field(STRING)
    group_instance_id: str | None = field(
        STRING, versions="3+", nullable="3+", default=None, ignorable=True
    )
    client_id: str = field(STRING)
    client_host: str = field(STRING)
    rebalance_timeout: int = field(INT32, versions="1+", ignorable=True)
    session_timeout: int = field(INT32)
    subscription: bytes = field(BYTES)
    assignment: bytes = field(BYTES)


class GroupMetadataValue(Message, flexible="4+"):
    protocol_type: str = field(STRING)
    generation: int = field(INT32)
    protocol: str | None = field(STRING, nullable="0+")
    leader: str | None = field(STRING, nullable="0+")
    current_state_timestamp: int = field(INT64, versions="2+", default=-1, ignorable=True)
    members: list[MemberMetadata] = field(Array(MemberMetadata))


class TransactionKey(Message):
    transactional_id: str = field(STRING)


class TransactionPartitions(Message):
    topic: str = field(STRING)
    partition_ids: list[int] = field(Array(INT32))


class TransactionValue(Message, flexible="1+"):
    producer_id: int = field(INT64)
    producer_epoch: int = field(INT16)
    transaction_timeout_ms: int = field(INT32)
    transaction_status: int = field(INT8)
    transaction_partitions: list[TransactionPartitions] | None = field(
        Array(TransactionPartitions), nullable="0+"
    )
    last_update_timestamp_ms: int = field(INT64)
    start_timestamp_ms: int = field(INT64)  # -1 if there has been no transaction yet


class TransactionStatus(IntEnum):
    """The states of a transaction, with Kafka's names. The last two are never written."""

    Empty = 0
    Ongoing = 1
    PrepareCommit = 2
    PrepareAbort = 3
    CompleteCommit = 4
    CompleteAbort = 5
    Dead = 6
    PrepareEpochFence = 7


OFFSET_COMMIT_TYPES, GROUP_METADATA_TYPE, TRANSACTION_TYPE = (0, 1), 2, 0

_GROUP_KEYS: dict[int, type[Message]] = {
    **dict.fromkeys(OFFSET_COMMIT_TYPES, OffsetCommitKey),
    GROUP_METADATA_TYPE: GroupMetadataKey,
}
_NEWEST: dict[type[Message], int] = {
    OffsetCommitValue: 4,
    GroupMetadataValue: 4,
    TransactionValue: 1,
}


class UnknownRecordType(CorruptData):
    """Raised for a type of record that a newer version of Kafka introduced.

    Readers skip the record.
    """

    def __init__(self, version: int) -> None:
        super().__init__(f"unknown record type {version}")
        self.version = version


class InternalRecord(NamedTuple):
    """A record of an internal topic. A record without a value is a tombstone."""

    type: int  # the version of the key
    key: Message
    version: int  # the version of the value, or -1 if there is none
    value: Message | None


class KeyValue(NamedTuple):
    """A record of an internal topic, encoded as bytes. A record without a value is a tombstone."""

    key: bytes
    value: bytes | None


# These are the versions that Kafka 3.9 writes with the newest inter-broker protocol that ZooKeeper
# mode supports.
_WRITTEN: dict[type[Message], int] = {
    OffsetCommitKey: 1,
    OffsetCommitValue: 3,
    GroupMetadataKey: GROUP_METADATA_TYPE,
    GroupMetadataValue: 3,
    TransactionKey: TRANSACTION_TYPE,
    TransactionValue: 0,
}
_WITH_EXPIRY = 1  # the version of an offset that has its own expiry time


def encode_record(key: Message, value: Message | None) -> KeyValue:
    """Encode a record as Kafka 3.9 does; a value of None is a tombstone. Raises ValueError."""
    if isinstance(key, OffsetCommitKey):
        return _encode_offset(key, value)
    name = _encode(key, _WRITTEN[type(key)])
    return KeyValue(name, None if value is None else _encode(value, _WRITTEN[type(value)]))


def _encode_offset(key: OffsetCommitKey, value: Message | None) -> KeyValue:
    """Encode an offset.

    Offsets are frequent, so they are encoded by hand, except those with an expiry time.
    """
    name = encode_offset_key(key.group, key.topic, key.partition)
    if value is None:
        return KeyValue(name, None)
    assert isinstance(value, OffsetCommitValue), f"{value} is no offset"
    # Only version 1 has this field. Kafka writes it only if an old client made the commit.
    if value.expire_timestamp != -1:
        return KeyValue(name, _encode(value, _WITH_EXPIRY))
    return KeyValue(
        name,
        encode_offset_value(
            value.offset, value.leader_epoch, value.metadata, value.commit_timestamp
        ),
    )


def _encode(message: Message, version: int) -> bytes:
    out = bytearray(_VERSION.pack(version))
    encode_after(out, message, version)
    return bytes(out)


def decode_group_record(key: bytes | None, value: bytes | None) -> InternalRecord:
    """Decode a record of `__consumer_offsets`. Raises UnknownRecordType or CorruptData."""
    if key is not None and value is not None:
        commit = decode_offset_commit(key, value)  # the most frequent type of record
        if commit is not None:
            return _offset_record(commit)
    kind, body = _split_version(key)
    # The records of Kafka 4 (KIP-848) have types of their own, and readers skip unknown types.
    if kind not in _GROUP_KEYS:
        raise UnknownRecordType(kind)
    is_group = kind == GROUP_METADATA_TYPE
    name = decode(_GROUP_KEYS[kind], body, kind)
    return _record(kind, name, GroupMetadataValue if is_group else OffsetCommitValue, value)


def _offset_record(commit: OffsetCommit) -> InternalRecord:
    group, topic, partition, offset, leader_epoch, metadata, commit_timestamp = commit
    return InternalRecord(
        _WRITTEN[OffsetCommitKey],
        OffsetCommitKey(group=group, topic=topic, partition=partition),
        _WRITTEN[OffsetCommitValue],
        OffsetCommitValue(
            offset=offset,
            leader_epoch=leader_epoch,
            metadata=metadata,
            commit_timestamp=commit_timestamp,
        ),
    )


def decode_transaction_record(key: bytes | None, value: bytes | None) -> InternalRecord:
    """Decode a record of `__transaction_state`. Raises UnknownRecordType or CorruptData."""
    kind, body = _split_version(key)
    if kind != TRANSACTION_TYPE:
        raise UnknownRecordType(kind)
    return _record(kind, decode(TransactionKey, body, kind), TransactionValue, value)


def _record(kind: int, key: Message, cls: type[Message], value: bytes | None) -> InternalRecord:
    if value is None:
        return InternalRecord(kind, key, -1, None)
    version, body = _split_version(value)
    if not 0 <= version <= _NEWEST[cls]:
        raise CorruptData(f"{cls.__name__} has unknown version {version}")
    return InternalRecord(kind, key, version, decode(cls, body, version))


def _split_version(data: bytes | None) -> tuple[int, bytes]:
    if data is None:
        raise CorruptData("the record has no key")
    try:
        (version,) = _VERSION.unpack_from(data)
    except error as cause:
        raise CorruptData("the record ends before its version") from cause
    return version, data[_VERSION.size :]
