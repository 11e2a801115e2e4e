"""Saves and restores the state of an embedded broker or cluster, as copies of its data.

    with barnabas.Broker() as broker:
        load_the_data(broker)
        snapshot = broker.snapshot()

    with barnabas.Broker(snapshot=snapshot) as broker:
        ...

Each restore makes a separate copy, so tests that change the data do not affect one another.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from barnabas.counted import counted
from barnabas.errors import ConfigError
from barnabas.testing.embedded.data_directory import DataDirectory

_DATA: Final = "data"
_DESCRIPTION: Final = "snapshot.json"
_FORMAT: Final = 1
# Lock files belong to the running process, so do not copy them.
_LEFT_OUT: Final = (".lock",)


class SnapshotKind(NamedTuple):
    """The kind of a snapshot. A snapshot can be restored only into a broker or cluster of the same
    kind.
    """

    noun: str  # "broker" or "cluster"
    brokers: int

    def __str__(self) -> str:
        return (
            self.noun if self.noun == "broker" else f"cluster of {counted(self.brokers, 'broker')}"
        )


class Snapshot:
    """A snapshot that `Broker.snapshot(path)` has saved in the directory `path`.

    Restores do not change it, and it may be kept from one test run to the next. A snapshot without
    a path is temporary: it is removed by `delete`, by the end of its `with` block or, at the
    latest, when the process ends. Raises ConfigError if there is no snapshot.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._directory = DataDirectory(Path(path))
        self.kind = _read_kind(self.path)

    @property
    def path(self) -> Path:
        path = self._directory.path
        if path is None:
            raise ConfigError("snapshot: it was deleted")
        return path

    def __repr__(self) -> str:
        return f"Snapshot({str(self._directory.path)!r})"

    @classmethod
    def take(cls, data_dir: Path, kind: SnapshotKind, path: Path | None) -> Snapshot:
        """Copy a directory that is not in use. `path` must not exist or must be empty."""
        directory = DataDirectory(path)
        into = directory.make()
        # Existing files would become part of the snapshot.
        if into.is_dir() and any(into.iterdir()):
            raise ConfigError(f"path={into} is not empty; a snapshot needs a directory of its own")
        _copy(data_dir, into / _DATA)
        description = {"format": _FORMAT, **kind._asdict()}
        (into / _DESCRIPTION).write_text(json.dumps(description), encoding="utf-8")
        taken = cls(into)
        # The snapshot now owns the temporary directory, which is removed with it.
        taken._directory = directory
        return taken

    def restore_to(self, directory: Path, kind: SnapshotKind) -> None:
        """Replace the contents of `directory` with a copy, completely or not at all. The directory
        must not be in use.
        """
        if kind != self.kind:
            raise ConfigError(f"snapshot: {self.path} is of a {self.kind}, but this is a {kind}")
        # Copy before renaming, so that the old state is kept if the disk is full.
        fresh = directory.with_name(f"{directory.name}.restoring")
        shutil.rmtree(fresh, ignore_errors=True)
        try:
            _copy(self.path / _DATA, fresh)
            if directory.exists():
                shutil.rmtree(directory)
            fresh.rename(directory)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)

    def delete(self) -> None:
        """Remove a temporary snapshot. A snapshot at a given path is kept."""
        self._directory.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.delete()


def open_snapshot(snapshot: Snapshot | str | os.PathLike[str]) -> Snapshot:
    """Return the given snapshot, or the snapshot saved at a path."""
    return snapshot if isinstance(snapshot, Snapshot) else Snapshot(snapshot)


def _copy(source: Path, target: Path) -> None:
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(*_LEFT_OUT))


def _read_kind(path: Path) -> SnapshotKind:
    try:
        described = json.loads((path / _DESCRIPTION).read_text(encoding="utf-8"))
        if described.pop("format") != _FORMAT:
            raise ConfigError(f"snapshot: {path} was written by another version of Barnabas")
        return SnapshotKind(**described)
    except (FileNotFoundError, NotADirectoryError):
        raise ConfigError(f"there is no snapshot in {path}") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ConfigError(f"snapshot: {path / _DESCRIPTION} cannot be read") from None
