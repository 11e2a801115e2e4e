"""Keeps a collector's positions in a compacted topic. They are written in the same transaction as
the lines, so either both are committed or neither.

    key     ["NAME", "file", "9f2c..."]   value   the fields of `FileProgress`
            ["NAME", "log", "/var/..."]           the fingerprints of ignored rotated files
            ["NAME", "instance", ""]              the process that started last
            ["NAME", "journal", ""]               the cursor of the last entry sent

NAME is the collector's name, because several collectors share the topic. A tombstone removes a file
or a log.
"""

from __future__ import annotations

import json
from typing import Final

from barnabas.errors import CorruptData
from barnabas_collector.file_progress import FileProgress
from barnabas_collector.known_files import KnownFiles
from barnabas_collector.passed_over import PassedOver

POSITIONS_TOPIC: Final = "barnabas-collector-positions"
_FILE: Final = "file"
_LOG: Final = "log"
_INSTANCE: Final = "instance"
_JOURNAL: Final = "journal"


class Positions(KnownFiles):
    """Holds the positions of the collector with this name. Changes are kept until
    `take_changes`."""

    is_forgetful = True

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self._changed: dict[bytes, bytes | None] = {}
        self.instance: str | None = None  # the process that started last
        self.cursor: str | None = None  # the position in systemd's journal

    def start(self, instance: str) -> None:
        """Record that this process is now the sender."""
        self.instance = instance
        self._keep(_INSTANCE, "", instance)

    def save_cursor(self, cursor: str) -> None:
        """Save the position in systemd's journal."""
        if cursor != self.cursor:
            self.cursor = cursor
            self._keep(_JOURNAL, "", cursor)

    def load(self, key: bytes | None, value: bytes | None) -> None:
        """Load the next record of the topic. Raises `CorruptData`."""
        try:
            name, kind, what = json.loads(key or b"")
            # This record belongs to another collector.
            if name != self._name:
                return
            if value is None:
                self._drop(kind, str(what))
                return
            found = json.loads(value)
            if kind == _FILE:
                self._put(FileProgress(**found))
            elif kind == _INSTANCE:
                self.instance = str(found)
            elif kind == _JOURNAL:
                self.cursor = str(found)
            elif kind == _LOG:  # kinds that a later version adds are ignored
                self._logs[str(what)] = [PassedOver(*each) for each in found]
        except (ValueError, TypeError) as error:
            raise CorruptData(
                f"{POSITIONS_TOPIC}: the record with key {key!r} is not a position of a "
                f"collector ({error})"
            ) from None

    @property
    def has_changed(self) -> bool:
        return bool(self._changed)

    def forget(self, file_id: str) -> None:
        """Remove a file's position."""
        self._drop(_FILE, file_id)
        self._changed[self._key(_FILE, file_id)] = None

    def forget_log(self, log: str) -> None:
        """Remove the record of the first look at a log."""
        self._drop(_LOG, log)
        self._changed[self._key(_LOG, log)] = None

    def take_changes(self) -> list[tuple[bytes, bytes | None]]:
        """Remove and return the changes, which are written together with the lines. None is a
        tombstone.
        """
        changed, self._changed = self._changed, {}
        return list(changed.items())

    def _keep_file(self, progress: FileProgress) -> None:
        self._keep(_FILE, progress.file_id, progress._asdict())

    def _keep_log(self, log: str) -> None:
        self._keep(_LOG, log, self._logs[log])

    def _keep(self, kind: str, what: str, value: object) -> None:
        self._changed[self._key(kind, what)] = json.dumps(value).encode()

    def _key(self, kind: str, what: str) -> bytes:
        return json.dumps([self._name, kind, what]).encode()

    def _drop(self, kind: str, what: str) -> None:
        if kind == _FILE:
            self._remove(what)
        elif kind == _LOG:
            self._logs.pop(what, None)
