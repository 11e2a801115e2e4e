"""The positions of a collector, in a compacted topic: written in the transaction of the lines, so
that both are committed or neither.

    key     ["NAME", "file", "9f2c..."]   value   the fields of `FileProgress`
            ["NAME", "log", "/var/..."]           the fingerprints of ignored rotated files
            ["NAME", "instance", ""]              the process that started last

NAME is the collector's: several collectors share the topic.
"""

from __future__ import annotations

import json
from typing import Final

from barnabas.collector.file_progress import FileProgress
from barnabas.collector.known_files import KnownFiles
from barnabas.collector.passed_over import PassedOver
from barnabas.errors import CorruptData

POSITIONS_TOPIC: Final = "barnabas-collector-positions"
_FILE: Final = "file"
_LOG: Final = "log"
_INSTANCE: Final = "instance"


class Positions(KnownFiles):
    """The positions of the collector of this name. Changes wait until they are `taken`."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self._changed: dict[bytes, bytes] = {}
        self.instance: str | None = None  # the process that started last

    def start(self, instance: str) -> None:
        """Record that this process sends from now on."""
        self.instance = instance
        self._keep(_INSTANCE, "", instance)

    def load(self, key: bytes | None, value: bytes | None) -> None:
        """Load a record of the topic, in order. Raises `CorruptData`."""
        try:
            name, kind, what = json.loads(key or b"")
            if name != self._name or value is None:
                return
            found = json.loads(value)
            if kind == _FILE:
                self._put(FileProgress(**found))
            elif kind == _INSTANCE:
                self.instance = str(found)
            else:
                self._logs[str(what)] = [PassedOver(*each) for each in found]
        except (ValueError, TypeError) as error:
            raise CorruptData(
                f"{POSITIONS_TOPIC}: {key!r} is not a collector's ({error})"
            ) from None

    @property
    def has_changed(self) -> bool:
        return bool(self._changed)

    def taken(self) -> list[tuple[bytes, bytes]]:
        """The changes as keys and values, to write with the lines."""
        changed, self._changed = self._changed, {}
        return list(changed.items())

    def _keep_file(self, progress: FileProgress) -> None:
        self._keep(_FILE, progress.file_id, progress._asdict())

    def _keep_log(self, log: str) -> None:
        self._keep(_LOG, log, self._logs[log])

    def _keep(self, kind: str, what: str, value: object) -> None:
        self._changed[json.dumps([self._name, kind, what]).encode()] = json.dumps(value).encode()
