"""Keeps records in a directory until they are sent, and sent records to recognise repeated ids.

    lock                       held by the process that uses the directory
    name                       identifies the journal in the topic of positions
    sent                       a hint: frames up to this sequence number have been committed
    00000000000000000001.log   frames (`journal_frames`); the first one has this sequence number

A frame is synced before `append` returns. A file whose frames have all been sent is deleted when
its space is needed, or when the files after it contain enough ids.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import uuid
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from barnabas.errors import BarnabasError, ConfigError
from barnabas_track.journal_frames import DamagedFrame, decode_frame, encode_frame, frames_in
from barnabas_track.outbox import MOST_IDS, Outgoing

MOST_BYTES: Final = 256 << 20
_SUFFIX: Final = ".log"


class JournalFull(BarnabasError):
    """Raised if the journal has no room for a frame."""


class _Place(NamedTuple):
    """The location of an unsent frame."""

    sequence: int
    path: Path
    start: int
    end: int


class _Segment:
    """A file of the journal."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size_bytes = 0
        self.ids = 0
        self.last = 0  # the sequence number of the last frame


class Journal:
    """A journal in a directory, which stays locked until `close`.

    Raises ConfigError if another process uses the directory or a frame is damaged. Only one thread
    may use the journal at a time.
    """

    def __init__(
        self, directory: Path, *, most_bytes: int = MOST_BYTES, most_ids: int = MOST_IDS
    ) -> None:
        self.directory = directory
        self.last = 0  # the sequence number of the last frame
        self.sent = 0
        self.known_ids: deque[str] = deque(maxlen=most_ids)
        self._most_bytes = most_bytes
        self._segment_bytes = min(16 << 20, most_bytes // 4)
        self._most_ids = most_ids
        self._segments: deque[_Segment] = deque()
        self._unsent: deque[_Place] = deque()
        self._fd = -1
        self._broken = ""
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ConfigError(f"cannot use the journal {directory}: {error.strerror}") from None
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the files and release the lock."""
        for fd in (self._fd, self._lock):
            if fd >= 0:
                os.close(fd)
        self._fd = self._lock = -1

    def append(self, records: Sequence[Outgoing]) -> None:
        """Write and sync a frame. Raises JournalFull if there is no room, or OSError if the disk
        fails.
        """
        if self._broken:
            raise OSError(0, self._broken)
        frame = encode_frame(self.last + 1, records)
        self._make_room(len(frame))
        if self._fd < 0 or self._segments[-1].size_bytes >= self._segment_bytes:
            self._start_segment()
        segment = self._segments[-1]
        start = segment.size_bytes
        try:
            _write(self._fd, frame)
        except OSError:
            self._cut(start)
            raise
        try:
            os.fdatasync(self._fd)
        except OSError as error:
            # It is unknown what the disk contains now, and only a restart reads it again.
            self._broken = f"the journal cannot be synced ({error.strerror}); restart the server"
            raise
        self.last += 1
        segment.size_bytes += len(frame)
        segment.ids += len(records)
        segment.last = self.last
        self._unsent.append(_Place(self.last, segment.path, start, segment.size_bytes))

    def unsent(self, most_bytes: int) -> tuple[list[Outgoing], int]:
        """Return the oldest unsent records, from at least one frame, and the sequence number of
        their last frame. The number is 0 if there are no unsent records.
        """
        found: list[Outgoing] = []
        size_bytes = last = 0
        for place in self._unsent:
            size_bytes += place.end - place.start
            if found and size_bytes > most_bytes:
                break
            with place.path.open("rb") as file:
                file.seek(place.start)
                found += decode_frame(file.read(place.end - place.start))
            last = place.sequence
        return found, last

    def mark_sent(self, sequence: int) -> None:
        """Record that the frames up to this one have been committed."""
        if sequence <= self.sent:
            return
        self.sent = sequence
        while self._unsent and self._unsent[0].sequence <= sequence:
            self._unsent.popleft()

    def save_hint(self) -> None:
        """Save the number of the last sent frame, in case the topic of positions is deleted."""
        with contextlib.suppress(OSError):
            new = self.directory / "sent.new"
            new.write_text(f"{self.sent}\n")
            new.replace(self.directory / "sent")

    def _open(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConfigError(
                f"another process uses the journal {self.directory}; give each server its own"
                " directory"
            ) from None
        try:
            self.name = self._read_name()
            with contextlib.suppress(FileNotFoundError, ValueError):
                self.sent = int((self.directory / "sent").read_text())
            paths = sorted(self.directory.glob(f"*{_SUFFIX}"))
            for path in paths:
                self._load(path, is_last=path == paths[-1])
        except OSError as error:
            raise ConfigError(
                f"cannot use the journal {self.directory}: {error.strerror}"
            ) from None

    def _read_name(self) -> str:
        path = self.directory / "name"
        with contextlib.suppress(FileNotFoundError):
            if name := path.read_text().strip():
                return name
        new = self.directory / "name.new"
        with new.open("w") as file:
            file.write(f"{uuid.uuid4().hex}\n")
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
        self._sync_directory()
        return path.read_text().strip()

    def _load(self, path: Path, *, is_last: bool) -> None:
        data = path.read_bytes()
        segment = _Segment(path)
        for frame, records in self._frames(path, data):
            if self.last and frame.sequence != self.last + 1:
                raise ConfigError(f"{path}: frames are missing before {frame.sequence}{_ADVICE}")
            self.last = segment.last = frame.sequence
            segment.size_bytes = frame.end
            segment.ids += len(records)
            self.known_ids.extend(each.id for each in records)
            if frame.sequence > self.sent:
                self._unsent.append(_Place(frame.sequence, path, frame.start, frame.end))
        if segment.size_bytes < len(data):
            if not is_last:
                raise ConfigError(f"{path}: the last frame is incomplete{_ADVICE}")
            # This frame was not synced, so no request with its records was answered with 200.
            os.truncate(path, segment.size_bytes)
        if is_last and not segment.size_bytes:
            path.unlink()
            return
        self._segments.append(segment)
        if is_last:
            self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            # The frames may have been written by a process that was killed before it synced them.
            os.fsync(self._fd)

    def _frames(self, path: Path, data: bytes) -> Iterator[tuple[_Place, list[Outgoing]]]:
        try:
            for sequence, start, end in frames_in(data):
                yield _Place(sequence, path, start, end), decode_frame(data[start:end])
        except DamagedFrame as error:
            raise ConfigError(f"{path}: {error}{_ADVICE}") from None

    def _make_room(self, size_bytes: int) -> None:
        """Delete sent files whose space is needed or whose ids are no longer needed. Raises
        JournalFull.
        """
        total = sum(each.size_bytes for each in self._segments) + size_bytes
        ids = sum(each.ids for each in self._segments)
        while len(self._segments) > 1 and self._segments[0].last <= self.sent:
            first = self._segments[0]
            if total <= self._most_bytes and ids - first.ids < self._most_ids:
                return
            first.path.unlink(missing_ok=True)
            self._segments.popleft()
            total -= first.size_bytes
            ids -= first.ids
        if total > self._most_bytes:
            raise JournalFull(
                f"the journal has reached its limit of {self._most_bytes:,} bytes: its events"
                " have not been sent to the brokers"
            )

    def _start_segment(self) -> None:
        path = self.directory / f"{self.last + 1:020}{_SUFFIX}"
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            self._sync_directory()
        except OSError:
            os.close(fd)
            raise
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = fd
        self._segments.append(_Segment(path))

    def _cut(self, size_bytes: int) -> None:
        """Remove the beginning of a frame that did not fit on the disk."""
        try:
            os.ftruncate(self._fd, size_bytes)
        except OSError as error:
            self._broken = f"the journal cannot be cut ({error.strerror}); restart the server"

    def _sync_directory(self) -> None:
        fd = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


_ADVICE: Final = "; move the directory away to start a new journal, and keep it to save its events"


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
