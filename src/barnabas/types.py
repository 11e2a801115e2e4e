"""Defines small value types that are shared by all layers.

This module knows nothing about wire formats or file layouts. Offsets count records, and positions
count bytes.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable
from typing import Final, Protocol

from barnabas.named_tuple import NamedTuple

NO_TOPIC_ID: Final = bytes(16)
"""The id of a topic that has none yet, because it was created below IBP 2.8 (KIP-516)."""

_TO_URL = str.maketrans("+/", "-_")
_FROM_URL = str.maketrans("-_", "+/")


class TopicPartition(NamedTuple):
    """Identifies one partition of one topic; as text, it is the name of the partition's directory
    (`<topic>-<partition>`).
    """

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def may_be_same_topic(one_id: bytes, other_id: bytes) -> bool:
    """Return whether two ids of topics with the same name may belong to the same topic."""
    return one_id == other_id or NO_TOPIC_ID in (one_id, other_id)


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Group partition numbers by topic, as in most messages. Topics and numbers keep the given
    order.
    """
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return topics


def uuid_text(uuid: bytes) -> str:
    """Return the text that Kafka uses for an id of sixteen bytes: URL-safe base64 without padding,
    22 characters.
    """
    return b2a_base64(uuid, newline=False).decode().rstrip("=").translate(_TO_URL)


def uuid_from_text(text: str) -> bytes:
    """Return the sixteen bytes encoded in an id's text. Raises ValueError for any other text."""
    uuid = a2b_base64(text.translate(_FROM_URL) + "==", strict_mode=True)
    if len(uuid) != 16:
        raise ValueError(f"{text!r} is not an id of 22 characters")
    return uuid


class SharedFile(Protocol):
    """A reference-counted file, which stays open as long as there are references to it.

    The number of a closed descriptor is reused by the next open. A slice that is still waiting for
    a socket would then send bytes of another file. Creating a `FileSlice` acquires a reference to
    the file, and sending or dropping the slice releases it.
    """

    def acquire(self) -> None: ...

    def release(self) -> None: ...

    def fileno(self) -> int: ...

    def pread(self, size: int, position: int) -> bytes: ...


class FileSlice:
    """Represents `size` bytes of a file starting at `position`, which are sent without passing
    through Python.

    Creating a slice acquires a reference to the file, which must be released by calling `release()`
    once.
    """

    __slots__ = ("file", "position", "size")

    def __init__(self, file: SharedFile, position: int, size: int) -> None:
        file.acquire()
        self.file = file
        self.position = position
        self.size = size

    def __len__(self) -> int:
        return self.size

    def read(self) -> bytes:
        """Return the bytes of the slice.

        There are fewer than `size` only if the file ends early.
        """
        return self.file.pread(self.size, self.position)

    def release(self) -> None:
        self.file.release()

    def __repr__(self) -> str:
        return f"FileSlice(position={self.position}, size={self.size})"


Part = bytes | bytearray | memoryview | FileSlice
"""A part of a message. An encoder returns a list of parts, which a connection then writes."""
