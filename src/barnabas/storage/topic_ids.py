"""Stores the topic ids of new partitions in one `.barnabas_topic_ids` file per log directory.

    t 0 AAECAwQFBgcICQoLDA0ODw        <topic> <partition> <topic id as in partition.metadata>

The `partition.metadata` file of a partition (KIP-516) is written when the partition is created, but
it is not synced, because a thousand new partitions would have to wait for the disk a thousand
times. Instead, a line for each partition is appended to this file, and one sync covers all of them.
Only then may anything be written to the logs. If a power failure leaves a partition's own file
empty or missing, the topic id is taken from the partition's last line in this file.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from binascii import Error
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from barnabas.storage.checkpoint import replace_file
from barnabas.storage.files import Files
from barnabas.types import TopicPartition, uuid_text

FILE_NAME = ".barnabas_topic_ids"

_ID_BYTES = 16
_MANY_LINES = 1_000


class TopicIds:
    """The file that contains the topic ids of one log directory. Only one thread at a time may use
    it.
    """

    __slots__ = ("_files", "_lines", "_path")

    def __init__(self, files: Files, directory: Path) -> None:
        self._files = files
        self._path = directory / FILE_NAME
        self._lines = 0

    def read(self) -> dict[TopicPartition, bytes]:
        """Return the ids in the file. Lines that are truncated or damaged are ignored."""
        try:
            text = self._files.read(self._path).decode("utf-8", "replace")
        except FileNotFoundError:
            return {}
        found = {}
        # Text after the last newline was left by an append that was interrupted by a power failure.
        for line in text.split("\n")[:-1]:
            topic, _, rest = line.partition(" ")
            partition, _, encoded = rest.partition(" ")
            try:
                topic_id = urlsafe_b64decode(encoded + "==")
                if len(topic_id) == _ID_BYTES:
                    found[TopicPartition(topic, int(partition))] = topic_id
            except (Error, ValueError):
                continue
        return found

    def begin(self, known: Mapping[TopicPartition, bytes]) -> None:
        """Replace the content of the file durably. If there are no ids, remove the file."""
        if known:
            replace_file(self._files, self._path, _encode(known.items()))
        else:
            with suppress(FileNotFoundError):
                self._files.remove(self._path)
        self._lines = len(known)

    def add(
        self, made: Mapping[TopicPartition, bytes], known: Mapping[TopicPartition, bytes]
    ) -> None:
        """Append these ids to the file durably.

        `known` contains all ids that are already known, in case the file has to be rewritten.
        """
        is_there = self._lines > 0
        self._lines += len(made)
        # The lines of deleted partitions are kept until they make up most of the file.
        if not is_there or self._lines > 2 * len(known) + _MANY_LINES:
            self.begin({**known, **made})
            return
        file = self._files.open(self._path, create=True)
        try:
            file.write(file.size(), _encode(made.items()))
        finally:
            file.release()
        self._files.sync(self._path)


def _encode(entries: Iterable[tuple[TopicPartition, bytes]]) -> bytes:
    lines = [f"{name.topic} {name.partition} {uuid_text(topic_id)}\n" for name, topic_id in entries]
    return "".join(lines).encode()
