"""Reads container logs: finds the container for a path, and unwraps its lines.

    /var/lib/docker/containers/<id>/<id>-json.log                  Docker: json-file
        {"log":"INFO fine\\n","stream":"stdout","time":"2026-11-27T05:45:12.034Z"}
    /var/log/pods/<namespace>_<pod>_<uid>/<container>/0.log        Kubernetes: CRI, as of containerd
    /var/log/containers/<pod>_<namespace>_<container>-<id>.log
        2026-11-27T05:45:12.034Z stdout F INFO fine

A record's value is the line that the program wrote, so that the program's own format is recognised.
The stream and the time become headers of the record. If a line is too long for the container
runtime, the runtime writes it in parts, which this module joins. A line that no runtime has wrapped
is sent unchanged.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from barnabas.records.record import Headers
from barnabas_collector.headers import (
    CONTAINER_ID,
    CONTAINER_NAME,
    CONTAINER_STREAM,
    CONTAINER_TIME,
    KUBERNETES_NAMESPACE,
    KUBERNETES_POD,
    KUBERNETES_POD_UID,
)
from barnabas_collector.line_cutter import MAX_LINE_BYTES, Line
from barnabas_collector.line_reader import LineReader
from barnabas_collector.record_joiner import IsStart, RecordJoiner

_PATHS: Final = (
    re.compile(r"/(?P<id>[0-9a-f]{64})/(?P=id)-json\.log"),
    re.compile(r"/(?P<id>[0-9a-f]{64})/userdata/ctr\.log"),  # Podman's k8s-file
    re.compile(
        r"/pods/(?P<namespace>[^_/]+)_(?P<pod>[^_/]+)_(?P<uid>[^_/]+)/(?P<name>[^/]+)/\d+\.log"
    ),
    re.compile(
        r"/containers/(?P<pod>[^_/]+)_(?P<namespace>[^_/]+)_(?P<name>[^/]+)-(?P<id>[0-9a-f]{64})"
        r"\.log"
    ),
)
_HEADERS: Final = {
    "id": CONTAINER_ID,
    "name": CONTAINER_NAME,
    "namespace": KUBERNETES_NAMESPACE,
    "pod": KUBERNETES_POD,
    "uid": KUBERNETES_POD_UID,
}
_MOST_LINKS: Final = 8
_DOCKERS_FILE: Final = "config.v2.json"
_MOST_BYTES: Final = 4 << 20  # the maximum size of Docker's description of a container

_CRI: Final = re.compile(
    rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d))"
    rb" (stdout|stderr) ([FP])(?::[^ ]*)?(?: (.*))?",
    re.DOTALL,
)
_JSON: Final = b'{"log":'


def container_of(path: Path) -> Headers | None:
    """Return the headers for a container log, or None if the path does not belong to a container.

    The links in /var/log/containers point to files in /var/log/pods, which may in turn be links
    into Docker's directory. Each of these paths provides some of the headers.
    """
    found: dict[str, str] = {}
    for _ in range(_MOST_LINKS):
        for pattern in _PATHS:
            if (match := pattern.search(str(path))) is not None and match.end() == len(str(path)):
                found = {**match.groupdict(), **found}
                if path.name.endswith("-json.log") and "name" not in found:
                    found |= _dockers_name(path.with_name(_DOCKERS_FILE))
        try:
            path = path.parent / path.readlink()
        except OSError:  # not a link
            break
    if not found:
        return None
    return tuple((header, found[key].encode()) for key, header in _HEADERS.items() if key in found)


def _dockers_name(path: Path) -> dict[str, str]:
    """Return the container's name from Docker's description of the container, if that
    is readable.
    """
    try:
        with path.open("rb") as file:
            name = json.loads(file.read(_MOST_BYTES))["Name"]
        return {"name": str(name).removeprefix("/")}
    except (OSError, ValueError, KeyError, TypeError):  # only root can read it, or it is incomplete
        return {}


class Part(NamedTuple):
    """Represents an unwrapped line of a container log."""

    text: bytes
    more: Headers = ()  # the stream and the time
    is_partial: bool = False  # the program's line continues in the stream's next part

    @property
    def stream(self) -> bytes | None:
        return self.more[0][1] if self.more else None


def unwrap(text: bytes) -> Part:
    """Return the line as the program wrote it. A line that was not wrapped by a runtime is returned
    unchanged."""
    if text.startswith(_JSON):
        try:
            found = json.loads(text)
            log, stream, time = found["log"], found["stream"], found["time"]
            line = log.encode("utf-8", "replace")
            more = ((CONTAINER_STREAM, stream.encode()), (CONTAINER_TIME, time.encode()))
        # A crash truncated the line, or the line is another program's JSON.
        except (ValueError, KeyError, TypeError, AttributeError):
            return Part(text)
        return Part(line.removesuffix(b"\n"), more, not line.endswith(b"\n"))
    if (match := _CRI.fullmatch(text)) is None:
        return Part(text)
    time, stream, tag, line = match.groups()
    return Part(line or b"", ((CONTAINER_STREAM, stream), (CONTAINER_TIME, time)), tag == b"P")


class Place(NamedTuple):
    """Describes where a record begins."""

    position: int
    number: int


class _Waiting:
    """Collects the parts of a record until the record is complete."""

    __slots__ = ("_more", "_passed_bytes", "_texts", "is_whole", "place")

    def __init__(self, line: Line, part: Part) -> None:
        self.place = Place(line.position, line.number)
        self._more = part.more
        self._texts: list[bytes] = []
        self._passed_bytes = 0  # bytes that were cut off
        self.is_whole = False
        self.add(line, part)

    def add(self, line: Line, part: Part) -> None:
        self._texts.append(part.text)
        self._passed_bytes += line.size_bytes - len(line.text)
        self.is_whole = not part.is_partial

    def record(self) -> Line:
        text = b"".join(self._texts)
        size_bytes = len(text) + self._passed_bytes
        return Line(*self.place, text, size_bytes, self._more)


class PartJoiner:
    """Unwraps lines and joins their parts. Each record takes the position of its first part.

    A container's two streams share one file. Because the position in the file is a single number, a
    record is held back until all records that began before it are complete. The amount held back is
    limited, so a longer program line is split into several records. Pure.
    """

    def __init__(self) -> None:
        self._waiting: deque[_Waiting] = deque()
        self._open: dict[bytes | None, _Waiting] = {}  # by stream: the incomplete record
        self._waiting_bytes = 0

    @property
    def first(self) -> Place | None:
        """The start of the first record that is waiting for more parts."""
        return self._waiting[0].place if self._waiting else None

    def join(self, lines: list[Line]) -> list[Line]:
        """Add lines, and return the records that are now complete."""
        records: list[Line] = []
        for line in lines:
            part = unwrap(line.text)
            if not self._waiting and not part.is_partial:  # the usual case
                size_bytes = len(part.text) + line.size_bytes - len(line.text)
                records.append(Line(*line[:2], part.text, size_bytes, part.more))
                continue
            self._add(line, part)
            while self._waiting and self._waiting[0].is_whole:
                records.append(self._waiting.popleft().record())
            if not self._waiting:
                self._waiting_bytes = 0
            elif self._waiting_bytes > MAX_LINE_BYTES:
                records += self.take()
        return records

    def _add(self, line: Line, part: Part) -> None:
        self._waiting_bytes += line.size_bytes + 1
        record = self._open.pop(part.stream, None)
        if record is None:
            record = _Waiting(line, part)
            self._waiting.append(record)
        else:
            record.add(line, part)
        if part.is_partial:
            self._open[part.stream] = record

    def take(self) -> list[Line]:
        """Remove and return all records, including incomplete ones."""
        records = [each.record() for each in self._waiting]
        self._waiting.clear()
        self._open.clear()
        self._waiting_bytes = 0
        return records


class ContainerReader:
    """Reads a container log. Implements `Reader`."""

    def __init__(
        self, file: BinaryIO, position: int, number: int, is_start: IsStart | None
    ) -> None:
        """`is_start` recognises the first line of a record. None means that lines are not
        joined.
        """
        self._reader = LineReader(file, position, number)
        self._parts = PartJoiner()
        self._joiner = None if is_start is None else RecordJoiner(is_start)
        self._more: Headers = ()  # the headers of the record in the joiner

    @property
    def position(self) -> int:
        return self._first.position

    @property
    def number(self) -> int:
        return self._first.number

    @property
    def _first(self) -> Line | Place | LineReader:
        """The first line that has not been returned yet."""
        joined = None if self._joiner is None else self._joiner.first
        return joined or self._parts.first or self._reader

    def portions(self) -> Iterator[list[Line]]:
        for lines in self._reader.portions():
            if records := self._join(self._parts.join(list(lines))):
                yield records

    def take_waiting(self) -> list[Line]:
        """Remove and return the records that are waiting for more parts or lines."""
        return self._join(self._parts.take()) + self._take()

    def last(self) -> list[Line]:
        return self._join(self._parts.join(self._reader.last())) + self.take_waiting()

    def _join(self, lines: list[Line]) -> list[Line]:
        """If there is a rule for first lines, join the lines of each stream into records."""
        if self._joiner is None:
            return lines
        records: list[Line] = []
        for line in lines:
            if self._more[:1] != line.more[:1]:
                records += self._take()
            records += [each._replace(more=self._more) for each in self._joiner.join([line])]
            if self._joiner.first is line:
                self._more = line.more
        return records

    def _take(self) -> list[Line]:
        if self._joiner is None:
            return []
        return [each._replace(more=self._more) for each in self._joiner.take()]

    @property
    def unfinished_bytes(self) -> int:
        # Positions in the file include the lines' wrappers.
        return self._reader.position - self.position + self._reader.unfinished_bytes

    @property
    def ends_in_hole(self) -> bool:
        return self._reader.ends_in_hole
