"""Encodes and decodes offset commits by hand, because they are the most frequent group records.

    key, version 1      int16 version, string group, string topic, int32 partition
    value, version 3    int16 version, int64 offset, int32 leader epoch, string metadata, int64 time
                        (a string is its length in bytes as an int16, followed by UTF-8 text)

All other layouts and record types are handled by `records`, which also reports the errors.
"""

from __future__ import annotations

from struct import Struct, error

_KEY_VERSION, _VALUE_VERSION = 1, 3
_KEY_BEGIN = Struct(">hh")
_LENGTH = Struct(">h")
_PARTITION = Struct(">i")
_VALUE_BEGIN = Struct(">hqih")
_TIMESTAMP = Struct(">q")


OffsetCommit = tuple[str, str, int, int, int, str, int]
"""The fields of a commit: group, topic, partition; offset, leader epoch, metadata, time (ms)."""


def encode_offset_key(group: str, topic: str, partition: int) -> bytes:
    """Encode the key. Raises ValueError if a name is longer than 32,767 bytes."""
    group_bytes, topic_bytes = group.encode(), topic.encode()
    try:
        return b"".join(
            (
                _KEY_BEGIN.pack(_KEY_VERSION, len(group_bytes)),
                group_bytes,
                _LENGTH.pack(len(topic_bytes)),
                topic_bytes,
                _PARTITION.pack(partition),
            )
        )
    except error as cause:
        raise ValueError(f"an offset's key cannot be encoded: {cause}") from cause


def encode_offset_value(
    offset: int, leader_epoch: int, metadata: str, commit_timestamp: int
) -> bytes:
    """Encode the value. Raises ValueError if the metadata is longer than 32,767 bytes."""
    text = metadata.encode()
    try:
        begin = _VALUE_BEGIN.pack(_VALUE_VERSION, offset, leader_epoch, len(text))
        return begin + text + _TIMESTAMP.pack(commit_timestamp)
    except error as cause:
        raise ValueError(f"an offset's value cannot be encoded: {cause}") from cause


def decode_offset_commit(key: bytes, value: bytes) -> OffsetCommit | None:
    """Decode a commit, or return None if the bytes are malformed or have another version."""
    try:
        kind, size = _KEY_BEGIN.unpack_from(key)
        group_end = _KEY_BEGIN.size + size
        topic_at = group_end + _LENGTH.size
        (topic_size,) = _LENGTH.unpack_from(key, group_end)
        topic_end = topic_at + topic_size
        version, offset, leader_epoch, text_size = _VALUE_BEGIN.unpack_from(value)
        text_end = _VALUE_BEGIN.size + text_size
        # Before reading a field, check that enough bytes are left for it.
        if (
            kind != _KEY_VERSION
            or version != _VALUE_VERSION
            or size < 0
            or topic_size < 0
            or text_size < 0
            or len(key) != topic_end + _PARTITION.size
            or len(value) != text_end + _TIMESTAMP.size
        ):
            return None
        (partition,) = _PARTITION.unpack_from(key, topic_end)
        (timestamp,) = _TIMESTAMP.unpack_from(value, text_end)
        group = str(key[_KEY_BEGIN.size : group_end], "utf-8")
        topic = str(key[topic_at:topic_end], "utf-8")
        metadata = str(value[_VALUE_BEGIN.size : text_end], "utf-8")
    except (error, UnicodeDecodeError):
        return None
    return group, topic, partition, offset, leader_epoch, metadata, timestamp
