"""What a collector remembers, in a compacted topic: written in the transaction of the lines, so
that both are there or neither.

    key     ["NAME", "file", "9f2c..."]   value   the fields of `FileProgress`
            ["NAME", "log", "/var/..."]           the fingerprints of files that were passed over
            ["NAME", "instance", ""]              which process has started last

NAME is the collector's: several share the topic.
"""

from __future__ import annotations

import json
from typing import Final

from barnabas.collector.file_progress import FileProgress
from barnabas.collector.fingerprint import Fingerprint
from barnabas.collector.known_files import KnownFiles
from barnabas.errors import CorruptData

POSITIONS_TOPIC: Final = "barnabas-collector-positions"
_FILE: Final = "file"
_LOG: Final = "log"
_INSTANCE: Final = "instance"


class Positions(KnownFiles):
    """Of the collector of this name. What has changed waits until `taken`."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self._changed: dict[bytes, bytes] = {}
        self.instance: str | None = None  # the process that has started last

    def start(self, instance: str) -> None:
        """This process is the one that sends from now on."""
        self.instance = instance
        self._keep(_INSTANCE, "", instance)

    def load(self, key: bytes | None, value: bytes | None) -> None:
        """A record of the topic, in its order. Raises `CorruptData`."""
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
                self._logs[str(what)] = [Fingerprint(*each) for each in found]
        except (ValueError, TypeError) as error:
            raise CorruptData(f"{POSITIONS_TOPIC}: {key!r} is no collector's ({error})") from None

    @property
    def has_changed(self) -> bool:
        return bool(self._changed)

    def taken(self) -> list[tuple[bytes, bytes]]:
        """Keys and values to be written with what was sent."""
        changed, self._changed = self._changed, {}
        return list(changed.items())

    def _keep_file(self, progress: FileProgress) -> None:
        self._keep(_FILE, progress.file_id, progress._asdict())

    def _keep_log(self, log: str) -> None:
        self._keep(_LOG, log, self._logs[log])

    def _keep(self, kind: str, what: str, value: object) -> None:
        self._changed[json.dumps([self._name, kind, what]).encode()] = json.dumps(value).encode()
