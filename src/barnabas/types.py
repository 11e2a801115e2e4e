"""Small value types shared by every layer.

Nothing here knows a wire format or a file layout; offsets count records, positions count bytes.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable
from typing import Protocol

from barnabas.named_tuple import NamedTuple

_TO_URL = str.maketrans("+/", "-_")
_FROM_URL = str.maketrans("-_", "+/")


class TopicPartition(NamedTuple):
    """One partition of one topic; also the name of its directory (`<topic>-<partition>`)."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Return partition numbers by topic, as in most messages; topics and numbers keep the given
    order.
    """
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return topics


def uuid_text(uuid: bytes) -> str:
    """Return sixteen bytes as Kafka writes an id: base64 for URLs without padding, 22
    characters.
    """
    return b2a_base64(uuid, newline=False).decode().rstrip("=").translate(_TO_URL)


def uuid_from_text(text: str) -> bytes:
    """Return the sixteen bytes of such a text. Raises ValueError for anything else."""
    uuid = a2b_base64(text.translate(_FROM_URL) + "==", strict_mode=True)
    if len(uuid) != 16:
        raise ValueError(f"{text!r} is not an id of 22 characters")
    return uuid


class SharedFile(Protocol):
    """A reference-counted file, which stays open as long as it is referenced.

    A closed descriptor's number is reused by the next open, so a slice still waiting for a socket
    would send another file's bytes. Creating a `FileSlice` acquires the file; sending or dropping
    the slice releases it.
    """

    def acquire(self) -> None: ...

    def release(self) -> None: ...

    def fileno(self) -> int: ...

    def pread(self, size: int, position: int) -> bytes: ...


class FileSlice:
    """`size` bytes of a file from `position` on, to be sent without passing through Python.

    Creating a slice acquires the file; calling `release()` once gives it back.
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
        """Return the bytes; shorter than `size` only if the file ends early."""
        return self.file.pread(self.size, self.position)

    def release(self) -> None:
        self.file.release()

    def __repr__(self) -> str:
        return f"FileSlice(position={self.position}, size={self.size})"


Part = bytes | bytearray | memoryview | FileSlice
"""A part of a message: an encoder returns a list of these, and a connection writes them."""
