"""Describes a rotated file that existed before the first look at its log and must not be sent.
Pure."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from barnabas_collector.fingerprint import Fingerprint
from barnabas_collector.text_extent import Text


class Present(Protocol):
    """Represents a found file, for comparison."""

    @property
    def inode(self) -> int: ...
    @property
    def born_ns(self) -> int: ...
    @property
    def size_bytes(self) -> int | None: ...
    @property
    def beginning(self) -> bytes: ...
    @property
    def text(self) -> Text | None: ...


class PassedOver(NamedTuple):
    """Records the file's former state: its beginning, its inode and, if it was not compressed, its
    whole extent.
    """

    beginning_bytes: int
    beginning: str
    inode: int = 0  # 0 if saved by a version that recorded only the beginning
    born_ns: int = 0
    text_bytes: int | None = None  # None if it was compressed
    tail: str = ""

    @classmethod
    def of(cls, file: Present) -> PassedOver:
        head = Fingerprint.of(file.beginning)
        if file.size_bytes is None or file.text is None:
            return cls(*head, file.inode, file.born_ns)
        whole = file.text.whole()
        return cls(*head, file.inode, file.born_ns, whole.size_bytes, whole.tail)

    def is_of(self, file: Present) -> bool:
        """Return whether the found file is this file, perhaps renamed or compressed."""
        head = Fingerprint(self.beginning_bytes, self.beginning)
        # This was recorded by an older version. The whole beginning must be the same and must not
        # have grown.
        if not self.inode:
            return head.is_of(file.beginning)
        if not head.begins(file.beginning):
            return False
        if self.inode == file.inode:
            # A new file may have reused the inode of a removed one. If so, the birth times differ.
            return not (self.born_ns and file.born_ns) or self.born_ns == file.born_ns
        # The file was compressed before the first look. It will not be compressed again, so its
        # inode does not change.
        if self.text_bytes is None or file.text is None:
            return False
        whole = file.text.whole()
        return (whole.size_bytes, whole.tail) == (self.text_bytes, self.tail)
