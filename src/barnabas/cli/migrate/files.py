"""Finds in the files of a log directory what cannot come along (MX-4). Only reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from struct import Struct

from barnabas.cli.migrate.findings import Finding
from barnabas.counted import counted

_START = Struct(">qi4xb")  # base offset, length, leader epoch, magic
_BEFORE_LENGTH = 12
_OLD = (0, 1)


def directory_findings(directory: Path) -> Iterator[Finding]:
    """Yield what was found in a log directory of a broker. Raises OSError."""
    where = str(directory)
    if (directory / "__cluster_metadata-0").is_dir() or _is_formatted_for_kraft(directory):
        yield Finding(
            True,
            where,
            "Kafka formatted it for KRaft, which keeps the metadata in a log of its own",
            "copy its topics with `barnabas copy` instead (see docs/coming-from-kafka)",
        )
        return
    if (directory / "remote-log-index-cache").is_dir():
        yield Finding(
            True,
            where,
            "it has an index cache of tiered storage, so segments may be remote",
            "set remote.storage.enable=false for each topic, and wait until all segments are local",
        )
    yield from _moving(directory, where)
    yield from _old_messages(directory, where)


def _is_formatted_for_kraft(directory: Path) -> bool:
    path = directory / "meta.properties"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    # ZooKeeper mode writes version 0 with `broker.id`, KRaft writes version 1 with `node.id`.
    return any(line.replace(" ", "").startswith(("version=1", "node.id=")) for line in lines)


def _moving(directory: Path, where: str) -> Iterator[Finding]:
    future = sorted(path.name for path in directory.glob("*-future"))
    if future:
        yield Finding(
            False,
            where,
            f"{counted(len(future), 'replica')} {'is' if len(future) == 1 else 'are'} being moved "
            f"here ({future[0]})",
            "wait until the move is complete, or it starts again on the new broker",
        )


def _old_messages(directory: Path, where: str) -> Iterator[Finding]:
    old = [path for path in sorted(directory.glob("*/*.log")) if _has_old_message(path)]
    if old:
        yield Finding(
            False,
            where,
            f"{counted(len(old), 'segment')} with messages of format 0 or 1 "
            f"({old[0].relative_to(directory)})",
            "they are served as they are, but clients older than Kafka 0.11 cannot read anything",
        )


def _has_old_message(path: Path) -> bool:
    """Return whether any batch of a segment has an old format, reading only the headers."""
    with path.open("rb") as file:
        position = 0
        while len(head := file.read(_START.size)) == _START.size:
            _, length, magic = _START.unpack(head)
            if magic in _OLD and length > 0:
                return True
            if length <= 0:  # the rest was preallocated
                return False
            position += _BEFORE_LENGTH + length
            file.seek(position)
    return False
