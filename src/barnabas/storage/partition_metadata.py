"""Reads and writes `partition.metadata`, which stores the topic id of a partition (KIP-516).

    version: 0
    topic_id: AAECAwQFBgcICQoLDA0ODw        base64url without padding; no line end after it

A recreated topic has the same directory names as the deleted one, but another id.
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
    """Return the topic id; None if there is no file, as in Kafka before 2.8.

    Raises CorruptData if the file is malformed.
    """
    path = directory / FILE_NAME
    try:
        # Damaged octets are replaced; the checks below then reject the file.
        text = files.read(path).decode("ascii", "replace")
    except FileNotFoundError:
        return None
    fields = dict(line.partition(":")[::2] for line in text.splitlines())
    if not fields.get("version", "").strip().isdecimal():
        raise CorruptData(f"{path} has an unknown version")
    encoded = fields.get("topic_id", "").strip()
    try:
        # Kafka writes base64 without padding, but Python's decoder requires it.
        topic_id = urlsafe_b64decode(encoded + "==")
    except ValueError as cause:
        raise CorruptData(f"{path} has a malformed topic id {encoded!r}") from cause
    if len(topic_id) != _ID_BYTES:
        raise CorruptData(f"{path} has a malformed topic id {encoded!r}")
    return topic_id


def settle_topic_id(
    files: Files, directory: Path, noted: bytes | None, *, is_empty: bool
) -> bytes | None:
    """Read the topic id, and repair the file if a power failure damaged it.

    `noted` is the id from `topic_ids`. A log without an id that `is_empty` was not created
    completely, and may belong to any topic.
    """
    try:
        found = read_topic_id(files, directory)
    except CorruptData:
        if noted is None and not is_empty:
            raise
        found = None
    # Use the id stored when the log was created: the file was never durable, or is torn.
    if found is None and noted is not None:
        write_topic_id(files, directory, noted)
        return noted
    return found


def write_topic_id(files: Files, directory: Path, topic_id: bytes, *, sync: bool = True) -> None:
    text = f"version: 0\ntopic_id: {uuid_text(topic_id)}"
    replace_file(files, directory / FILE_NAME, text.encode(), sync=sync)
