"""Splits a stream of syslog over TCP (RFC 6587), in pieces of any size, into messages. Pure.

    57 <34>1 2026-11-24T...    octet counting (3.4.1): a count, a blank, that many bytes
    <34>Nov 24 22:14:15 ...\\n  a trailer (3.4.2): a line feed, or the NUL of some senders

The framing is detected for each frame. A message should begin with `<`. A count followed by `<`
therefore means octet counting. A count that is not followed by `<` means octet counting only if the
connection has used this framing before. An incomplete frame at the end of the connection still
counts as a message. Empty frames are ignored.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

MOST_BYTES: Final = 65_536
"""The maximum size of an untruncated message. It equals the size of the largest datagram and is
eight times the limit of the senders."""

_COUNT: Final = re.compile(rb"([1-9][0-9]{0,8}) ")
_BEGINS_A_COUNT: Final = re.compile(rb"[1-9][0-9]{0,8}\Z")
_TRAILER: Final = re.compile(rb"[\n\0]")


class Frame(NamedTuple):
    text: bytes
    size_bytes: int  # of the whole message; larger if `text` was cut


class SyslogFraming:
    """Detects the framing of one connection. It holds at most `most_bytes`."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._has_counted = False
        self._undecided = b""  # the beginning of a frame whose kind is not yet known
        self._text = b""  # the text of the incomplete frame
        self._size_bytes = 0  # the received size of that frame
        self._counted: int | None = None  # the count of that frame, if it has one
        self._is_within = False  # whether a frame is incomplete

    def cut(self, more: bytes) -> list[Frame]:
        """Return the messages that end in the next bytes."""
        data, self._undecided = self._undecided + more, b""
        found: list[Frame] = []
        at = 0
        while at < len(data):
            if not self._is_within:
                begins_at = self._begin(data, at)
                if begins_at is None:
                    self._undecided = data[at:]
                    break
                at = begins_at
            if self._counted is None:
                at = self._go_on_with_line(data, at, found)
            else:
                at = self._go_on_with_counted(self._counted, data, at, found)
        return found

    def last(self) -> list[Frame]:
        """Return the incomplete message at the end of the connection."""
        found: list[Frame] = []
        if self._undecided:
            self._keep(self._undecided)
            self._undecided = b""
        if self._text:
            self._end(found)
        return found

    def _begin(self, data: bytes, at: int) -> int | None:
        """Return where the text of the next frame starts, or None if more bytes are needed to
        determine this.
        """
        match = _COUNT.match(data, at)
        if match is not None:
            # A line may also begin with a number, so the next byte decides.
            if match.end() == len(data) and not self._has_counted:
                return None
            if self._has_counted or data[match.end()] == ord("<"):
                self._has_counted = self._is_within = True
                self._counted = int(match[1])
                return match.end()
        # Only digits have arrived, so the bytes after them decide.
        elif _BEGINS_A_COUNT.match(data, at):
            return None
        self._is_within = True
        return at

    def _go_on_with_line(self, data: bytes, at: int, found: list[Frame]) -> int:
        match = _TRAILER.search(data, at)
        self._keep(data[at : len(data) if match is None else match.start()])
        if match is None:
            return len(data)
        self._end(found)
        return match.end()

    def _go_on_with_counted(self, count: int, data: bytes, at: int, found: list[Frame]) -> int:
        piece = data[at : at + count - self._size_bytes]
        self._keep(piece)
        if self._size_bytes == count:
            self._end(found)
        return at + len(piece)

    def _keep(self, piece: bytes) -> None:
        self._text += piece[: self._most_bytes - len(self._text)]
        self._size_bytes += len(piece)

    def _end(self, found: list[Frame]) -> None:
        # If the connection ends within a counted message, use the announced size, which marks the
        # message as cut.
        size_bytes = self._size_bytes if self._counted is None else self._counted
        if size_bytes:
            found.append(Frame(self._text, size_bytes))
        self._text, self._size_bytes, self._counted = b"", 0, None
        self._is_within = False


def datagram(data: bytes) -> list[Frame]:
    """Return the message in a datagram. Some senders add a trailer even to a datagram. The trailer
    is removed.
    """
    text = data[:-1] if data[-1:] in (b"\n", b"\0") else data
    return [Frame(text[:MOST_BYTES], len(text))] if text else []
