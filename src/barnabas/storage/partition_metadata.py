"""Reads and writes `partition.metadata`, the file that contains the topic id of a partition
(KIP-516).

    version: 0
    topic_id: AAECAwQFBgcICQoLDA0ODw        base64url without padding; no line end after it

If a topic is deleted and created again, the directory names are the same, but the topic id differs.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from pathlib import Path

from barnabas.errors import CorruptData
from barnabas.storage.checkpoint import replace_file
from barnabas.storage.files import Files
from barnabas.types import uuid_text

FILE_NAME = "partition.metadata"

_ID_BYTES = 16


def read_topic_id(files: Files, directory: Path) -> bytes | None:
    """Return the topic id, or None if the file does not exist because Kafka before version 2.8
    created the directory.

    Raises CorruptData if the file is malformed.
    """
    path = directory / FILE_NAME
    try:
        # Bytes that are not ASCII are replaced, so that the checks below reject the file.
        text = files.read(path).decode("ascii", "replace")
    except FileNotFoundError:
        return None
    fields = dict(line.partition(":")[::2] for line in text.splitlines())
    if not fields.get("version", "").strip().isdecimal():
        raise CorruptData(f"{path} has an unknown version")
    encoded = fields.get("topic_id", "").strip()
    try:
        # Kafka omits the padding of base64, but Python's decoder requires it.
        topic_id = urlsafe_b64decode(encoded + "==")
    except ValueError as cause:
        raise CorruptData(f"{path} has a malformed topic id {encoded!r}") from cause
    if len(topic_id) != _ID_BYTES:
        raise CorruptData(f"{path} has a malformed topic id {encoded!r}")
    return topic_id


def settle_topic_id(
    files: Files, directory: Path, noted: bytes | None, *, is_empty: bool
) -> bytes | None:
    """Read the topic id, and repair the file if a power failure has damaged it.

    `noted` is the id that `topic_ids` has stored. If the log `is_empty` and has no id, its creation
    was not completed, and it may belong to any topic with that name.
    """
    try:
        found = read_topic_id(files, directory)
    except CorruptData:
        if noted is None and not is_empty:
            raise
        found = None
    # The file is torn or was never durable, so use the id that was stored when the log was created.
    if found is None and noted is not None:
        write_topic_id(files, directory, noted)
        return noted
    return found


def write_topic_id(files: Files, directory: Path, topic_id: bytes, *, sync: bool = True) -> None:
    text = f"version: 0\ntopic_id: {uuid_text(topic_id)}"
    replace_file(files, directory / FILE_NAME, text.encode(), sync=sync)
