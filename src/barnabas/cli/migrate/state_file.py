"""Reads and writes the file in which `barnabas migrate step` keeps its progress.

Without it, an interrupted step would not know what the logs contained before the broker was
stopped.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.cli.migrate.plan import Progress
from barnabas.errors import ConfigError
from barnabas.security.secret_file import write_secret
from barnabas.types import TopicPartition

_VERSION = 1


class State(NamedTuple):
    """The progress in a cluster: the replaced brokers, and the one that is being replaced."""

    cluster_id: str
    target: str
    done: tuple[int, ...] = ()
    current: Progress | None = None


def read_state(path: Path, cluster_id: str, target: str) -> State:
    """Return the progress in a file, or none if there is no such file. Raises ConfigError.

    If the file has an unfinished step to the other kind, the broker returns to this kind.
    """
    if not path.exists():
        return State(cluster_id, target)
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if values["version"] != _VERSION:
            raise ConfigError(f"{path}: version {values['version']} is unknown")
        current = None if values["current"] is None else _progress(values["current"])
        state = State(values["cluster_id"], values["target"], tuple(values["done"]), current)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"{path} is not a state file of barnabas migrate: {error}") from error
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
        raise ConfigError(
            f"{path}: the progress cannot be saved: {(error.strerror or str(error)).lower()}; free "
            "space or name another file with --state, and repeat the command"
        ) from error


def _values(progress: Progress) -> dict[str, Any]:
    return {
        "broker_id": progress.broker_id,
        "ends": {str(name): end for name, end in progress.ends.items()},
        "has_stopped": progress.has_stopped,
        "has_started": progress.has_started,
        "is_verified": progress.is_verified,
    }


def _progress(values: dict[str, Any]) -> Progress:
    return Progress(
        int(values["broker_id"]),
        {_name(text): int(end) for text, end in values["ends"].items()},
        bool(values["has_stopped"]),
        bool(values["has_started"]),
        bool(values["is_verified"]),
    )


def _name(text: str) -> TopicPartition:
    topic, _, number = text.rpartition("-")
    return TopicPartition(topic, int(number))
