"""Stores the collector's registry: its files, and the sent part of each.

    {"files": [{"file_id": "9f2c...", "path": "/var/log/access.log", "first_line": "5be1...",
                "device": 64769, "inode": 1311, "generation": 0, "position": 81920, "line": 431,
                "beginning_bytes": 4096, "beginning": "77ad...", "is_complete": false}],
     "logs": [{"path": "/var/log/access.log", "passed_over": [[4096, "c0de..."]]}],
     "partition_counts": {"9f2c...": 4}}

Files without a fingerprint (`beginning`), and a registry without `logs`, were written by an older
version. In this case, the first line identifies a file until the file is seen again.

A file's lines are distributed over as many partitions as the topic had when the first line was sent
(`partition_counts`, by `file_id`), even if it has more now, because the pipeline recognises
duplicates only within a partition.

The registry is written atomically and is on disk before a call returns, so a power cut leaves
either the old or the new one. It is written before the first line of a file is sent, so that no
other file can get its `file_id`, and after each portion that the broker has acknowledged. After a
crash, the last portion is therefore sent again, and the pipeline recognises it by its file and
positions.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from barnabas.disk_sync import sync_descriptor
from barnabas.errors import ConfigError
from barnabas_collector.file_progress import FileProgress
from barnabas_collector.known_files import KnownFiles
from barnabas_collector.passed_over import PassedOver


class Registry(KnownFiles):
    """Stores the known files in a file that only one process at a time may use."""

    def __init__(self, path: Path) -> None:
        """Raises `ConfigError` if the file is not a registry."""
        super().__init__()
        self._path = path
        self._partition_counts: dict[str, int] = {}
        if path.exists():
            try:
                self._load(json.loads(path.read_text("utf-8")))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise ConfigError(
                    f"{path} is not a valid registry of sent files ({error}): remove it; "
                    "everything is then sent again, and recognised as duplicates"
                ) from None

    def _load(self, stored: dict[str, Any]) -> None:
        for entry in stored["files"]:
            self._put(FileProgress(**entry))
        for log in stored.get("logs", []):
            self._logs[str(log["path"])] = [PassedOver(*each) for each in log["passed_over"]]
        for file_id, count in stored.get("partition_counts", {}).items():
            self._partition_counts[file_id] = int(count)

    def partition_count(self, file_id: str) -> int | None:
        """Return the number of partitions for the file's lines, or None if it has not been set."""
        return self._partition_counts.get(file_id)

    def keep_partition_count(self, file_id: str, count: int) -> None:
        """Save the number of partitions for the file's lines.

        Call this before the first line is sent.
        """
        self._partition_counts[file_id] = count
        self._store()

    def _keep_file(self, progress: FileProgress) -> None:
        self._store()

    def _keep_log(self, log: str) -> None:
        self._store()

    def _store(self) -> None:
        content = {
            "files": [file._asdict() for file in self._files.values()],
            "logs": [{"path": path, "passed_over": files} for path, files in self._logs.items()],
            "partition_counts": self._partition_counts,
        }
        temporary = self._path.with_suffix(".new")
        with temporary.open("w", encoding="utf-8") as file:
            json.dump(content, file, indent=1)
            file.flush()
            # Otherwise, the name may reach the disk before the content and leave an empty registry.
            sync_descriptor(file.fileno())
        temporary.replace(self._path)
        _sync_names(self._path.parent)


def _sync_names(directory: Path) -> None:
    """Force the names in a directory onto the disk."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        sync_descriptor(descriptor)
    finally:
        os.close(descriptor)
