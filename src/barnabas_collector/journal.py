"""Reads systemd's journal with `journalctl`, starting at a cursor.

    journalctl --output=json --all --follow --no-tail --after-cursor=...
        └▶ entries, one JSON object per line ─▶ `take`, with their cursors

Like the position in a file, the cursor is committed in the same transaction as the entries, so each
entry is sent once. While nobody takes the entries, `journalctl` is not read and blocks.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from barnabas.errors import ConfigError
from barnabas_collector.line_cutter import Line, LineCutter

_log = logging.getLogger(__name__)

_COMMAND: Final = ("journalctl", "--output=json", "--all", "--no-pager")
_READ_BYTES: Final = 262_144
_MOST_BYTES: Final = 8 << 20
_MOST_ERROR_BYTES: Final = 4_096
_AGAIN_AFTER_S: Final = 1.0
_CURSOR: Final = re.compile(rb'"__CURSOR"\s*:\s*"([^"\\]+)"')
_ARRAY: Final = re.compile(rb'"\s*:\s*\[')
_FIELD: Final = re.compile(rb'"([A-Za-z_][A-Za-z0-9_]*)"\s*:\s*("(?:[^"\\]|\\.)*")')
_KEPT_BYTES: Final = 4_096


class Entry(NamedTuple):
    """Represents a journal entry as a JSON object without a line feed."""

    value: bytes
    cursor: str | None  # None if the entry was cut before its cursor
    size_bytes: int  # larger than the value if the value was cut


class Journal:
    """Reads the entries after a cursor, from `start` until `close`."""

    def __init__(self, cursor: str | None, *, from_end: bool = False, follow: bool = True) -> None:
        """If there is no cursor, reading starts at the first entry or, with `from_end`, after the
        last one. With `follow`, it continues after all existing entries have been read.
        """
        self.cursor = cursor  # of the last entry that was read
        self.news = asyncio.Event()
        self._from_end = from_end
        self._follow = follow
        self._waiting: list[Entry] = []
        self._waiting_bytes = 0
        self._room = asyncio.Event()
        self._room.set()
        self._reading: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start reading. Raises `ConfigError` if `journalctl` is not installed."""
        if self.cursor is None and self._from_end:
            await self._read(["--lines=1"])
            self._waiting.clear()
            self._waiting_bytes = 0
        self._reading = asyncio.create_task(self._run())
        self._reading.add_done_callback(lambda _: self.news.set())

    async def close(self) -> None:
        """Stop reading and end the process."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    def take(self) -> list[Entry]:
        """Remove and return the entries that were read. Raises `ConfigError` if the journal cannot
        be read."""
        self.news.clear()
        taken, self._waiting = self._waiting, []
        self._waiting_bytes = 0
        self._room.set()
        # First send the entries that were read before a failure, and only then raise the error.
        if not taken:
            self.is_at_end()
        return taken

    def is_at_end(self) -> bool:
        """Return whether all existing entries were read and taken, if the journal is not followed.
        Raises `ConfigError` if it cannot be read."""
        if self._reading is None or not self._reading.done() or self._waiting:
            return False
        self._reading.result()
        return True

    async def _run(self) -> None:
        while True:
            after = [] if self.cursor is None else [f"--after-cursor={self.cursor}"]
            follow = ["--follow", "--no-tail"] if self._follow else []
            why = await self._read([*follow, *after])
            if not self._follow:
                return
            _log.warning("journalctl exited; restarting it%s", why and f": {why}")
            await asyncio.sleep(_AGAIN_AFTER_S)

    async def _read(self, options: Sequence[str]) -> str:
        """Run `journalctl` until it exits, and return its standard error. Raises `ConfigError` if
        it fails before the first entry."""
        process = await _started(options)
        assert process.stdout is not None and process.stderr is not None
        complaining = asyncio.create_task(_complaints(process.stderr))
        cutter = LineCutter()
        count = 0
        try:
            while read := await process.stdout.read(_READ_BYTES):
                count += self._add(cutter.cut(read))
                await self._room.wait()
            code, why = await process.wait(), await complaining
        finally:
            complaining.cancel()
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        # A retry would fail in the same way. If some entries had been read, the failure would have
        # another cause, such as a signal.
        if code and not count:
            raise ConfigError(f"cannot read the journal: journalctl failed ({code}): {why}")
        return why

    def _add(self, lines: Sequence[Line]) -> int:
        entries = [_entry(line) for line in lines if line.text.startswith(b"{")]
        for entry in entries:
            self._waiting_bytes += len(entry.value)
            self.cursor = entry.cursor or self.cursor
        self._waiting += entries
        if entries:
            self.news.set()
        if self._waiting_bytes >= _MOST_BYTES:
            self._room.clear()
        return len(entries)


async def _started(options: Sequence[str]) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            *_COMMAND,
            *options,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            # Ctrl-C must not end `journalctl` before its entries are sent.
            start_new_session=True,
        )
    except OSError as error:
        raise ConfigError(
            f"cannot read the journal: cannot run journalctl ({error.strerror}); it is part of"
            " systemd"
        ) from None


async def _complaints(errors: asyncio.StreamReader) -> str:
    """Return the beginning of a process's output. The rest is read and discarded, so that the
    process never blocks."""
    kept = b""
    while read := await errors.read(_MOST_ERROR_BYTES):
        kept += read[: _MOST_ERROR_BYTES - len(kept)]
    return "; ".join(kept.decode("utf-8", "replace").split("\n")).strip("; ")


def _entry(line: Line) -> Entry:
    found = _CURSOR.search(line.text)
    cursor = None if found is None else found[1].decode()
    value = line.text
    if line.is_cut:
        value = _shortened(value, line.size_bytes)
    elif _ARRAY.search(value):
        value = _with_texts(value)
    return Entry(value, cursor, line.size_bytes if line.is_cut else len(value))


def _with_texts(value: bytes) -> bytes:
    """Return an entry with all its fields as text.

    `journalctl` writes a field with colours or with bytes that are not UTF-8 as an array of
    numbers, and a field that occurs several times as an array of its values.
    """
    try:
        fields = json.loads(value)
    except ValueError:
        return value
    return json.dumps({name: _text(each) for name, each in fields.items()}).encode()


def _text(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    try:
        return bytes(value).decode("utf-8", "backslashreplace")
    except (TypeError, ValueError):  # an array of several values, not of bytes
        return [_text(each) for each in value]


def _shortened(beginning: bytes, size_bytes: int) -> bytes:
    """Return an object with those short fields that are at the start of an overlong entry."""
    found = {
        name.decode(): json.loads(value, strict=False)
        for name, value in _FIELD.findall(beginning)
        if len(value) <= _KEPT_BYTES
    }
    found.setdefault("MESSAGE", f"(an entry of {size_bytes} bytes, too long to be sent)")
    return json.dumps(found).encode()
