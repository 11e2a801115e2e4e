"""Reads and writes checkpoints, which are small text files that are always replaced as a whole.

    0                       version
    2                       number of entries
    test 0 4711             <topic> <partition> <offset>, in `leader-epoch-checkpoint`
    test 1 815              <epoch> <start offset>

The new text is written to a second file, which is synced and then renamed over the old file. A
reader therefore sees either the old text or the new text, never a mixture. An empty or missing file
is read as a file without entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from barnabas.errors import CorruptData
from barnabas.storage.files import Files
from barnabas.types import TopicPartition

_VERSION = "0"


def replace_file(files: Files, path: Path, data: bytes, *, sync: bool = True) -> None:
    """Write `data` to `path` atomically. Without `sync`, a power failure may bring back the old
    file or leave an empty one.
    """
    temporary = path.with_name(path.name + ".tmp")
    files.write(temporary, data, sync=sync)
    files.replace(temporary, path)
    if sync:
        files.sync(path.parent)


def encode_entries(entries: Iterable[tuple[object, ...]]) -> bytes:
    """Encode a checkpoint that has one line for each entry."""
    lines = [" ".join(map(str, entry)) for entry in entries]
    return "\n".join([_VERSION, str(len(lines)), *lines, ""]).encode()


def read_entries(files: Files, path: Path) -> list[list[str]]:
    """Return each line as a list of words. Raises CorruptData with a description if the file is
    malformed.
    """
    try:
        text = files.read(path).decode()
    except FileNotFoundError:
        return []
    except UnicodeDecodeError as cause:
        raise CorruptData(f"{path} is not text") from cause
    # If the write was not synced, a power failure may leave an empty file under the final name.
    if not text:
        return []
    version, *rest = text.rstrip("\n").split("\n")
    if version.strip() != _VERSION:
        raise CorruptData(f"{path} has unknown version {version!r}")
    count, *lines = rest or [""]
    # A torn file contains fewer lines than its second line says.
    if not count.strip().isdecimal() or int(count) != len(lines):
        raise CorruptData(f"{path} declares {count!r} entries but has {len(lines)}")
    return [line.split() for line in lines]


def read_offsets(files: Files, path: Path) -> dict[TopicPartition, int]:
    """Read a checkpoint that contains one offset for each partition."""
    offsets = {}
    for words in read_entries(files, path):
        try:
            topic, partition, offset = words
            offsets[TopicPartition(topic, int(partition))] = int(offset)
        except ValueError as cause:
            raise CorruptData(f"{path}: malformed line {' '.join(words)!r}") from cause
    return offsets


def write_offsets(files: Files, path: Path, offsets: Mapping[TopicPartition, int]) -> None:
    entries = [(name.topic, name.partition, offset) for name, offset in offsets.items()]
    replace_file(files, path, encode_entries(entries))
