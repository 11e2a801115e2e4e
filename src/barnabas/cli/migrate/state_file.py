"""Reads and writes the file in which `barnabas migrate step` keeps its progress.

Without it, an interrupted step would not know what the logs contained before the broker was
stopped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.cli.migrate.plan import Progress
from barnabas.errors import BarnabasError, ConfigError
from barnabas.security.secret_file import write_secret
from barnabas.storage.files import OsFiles
from barnabas.types import TopicPartition

_VERSION = 1


class State(NamedTuple):
    """The progress in a cluster: the replaced brokers, and the one that is being replaced."""

    cluster_id: str
    target: str
    done: tuple[int, ...] = ()
    current: Progress | None = None


@contextmanager
def lock_state(path: Path) -> Iterator[None]:
    """Exclude other commands that use the same state file. The end of the process ends the lock.

    Raises ConfigError if another command has the lock, or if there cannot be a lock.
    """
    # The state file itself is replaced, and a lock on it would not last. The lock's file remains:
    # if it were removed, two commands could lock different files of this name.
    lock_path = path.absolute().with_name(f".{path.name}.lock")
    try:
        lock = OsFiles().lock(lock_path)
    except BlockingIOError as error:
        raise ConfigError(
            f"{path} is in use by another `barnabas migrate step` or `back`; wait until it ends"
        ) from error
    except OSError as error:
        raise _not_saved(path, error) from error
    try:
        yield
    finally:
        lock.release()


def read_state(path: Path, cluster_id: str, target: str) -> State:
    """Return the progress in a file, or none if there is no such file. Raises ConfigError.

    If the file has an unfinished step to the other kind, the broker returns to this kind.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return State(cluster_id, target)
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {(error.strerror or str(error)).lower()}; name another file "
            "with --state"
        ) from error
    except UnicodeDecodeError as error:
        raise _unusable(path, error) from error
    try:
        values = json.loads(text)
        if values["version"] != _VERSION:
            raise ConfigError(f"{path}: version {values['version']} is unknown")
        current = None if values["current"] is None else _progress(values["current"])
        state = State(values["cluster_id"], values["target"], tuple(values["done"]), current)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _unusable(path, error) from error
    if state.cluster_id != cluster_id:
        raise ConfigError(
            f"{path} belongs to cluster {state.cluster_id}, not to {cluster_id}; use --state"
        )
    if state.target == target:
        return state
    # The direction has changed: what has begun is undone, with the ends of before.
    current = state.current and state.current._replace(has_started=False, is_verified=False)
    return State(cluster_id, target, current=current)


def write_state(path: Path, state: State) -> None:
    """Replace the file. Raises ConfigError if it cannot be written."""
    values = {
        "version": _VERSION,
        "cluster_id": state.cluster_id,
        "target": state.target,
        "done": list(state.done),
        "current": None if state.current is None else _values(state.current),
    }
    try:
        write_secret(path.absolute(), json.dumps(values, indent=1).encode() + b"\n")
    except OSError as error:  # which names a temporary file
        raise _not_saved(path, error) from error


def _not_saved(path: Path, error: OSError) -> BarnabasError:
    return ConfigError(
        f"{path}: the progress cannot be saved: {(error.strerror or str(error)).lower()}; free "
        "space or make the directory writable, and repeat the command (if you move the file, name "
        "it with --state)"
    )


def _unusable(path: Path, error: Exception) -> BarnabasError:
    return ConfigError(
        f"{path} is not a state file of barnabas migrate, or is damaged: {error}; name the right "
        "one with --state, or move it away and give --without-state"
    )


def _values(progress: Progress) -> dict[str, Any]:
    return {
        "broker_id": progress.broker_id,
        "ends": {str(name): end for name, end in progress.ends.items()},
        "tails": {str(name): checksum for name, checksum in progress.tails.items()},
        "directories": list(progress.directories),
        "has_stopped": progress.has_stopped,
        "has_started": progress.has_started,
        "is_verified": progress.is_verified,
    }


def _progress(values: dict[str, Any]) -> Progress:
    return Progress(
        int(values["broker_id"]),
        {_name(text): int(end) for text, end in values["ends"].items()},
        # A step that began before these were recorded can be continued.
        {_name(text): int(checksum) for text, checksum in values.get("tails", {}).items()},
        tuple(map(str, values.get("directories", ()))),
        bool(values["has_stopped"]),
        bool(values["has_started"]),
        bool(values["is_verified"]),
    )


def _name(text: str) -> TopicPartition:
    topic, _, number = text.rpartition("-")
    return TopicPartition(topic, int(number))
