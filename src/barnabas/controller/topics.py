"""What may be created as a topic: its name, its replicas, its settings.

Everything is checked before anything is written, so a refusal leaves no trace.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from barnabas.config import LogConfig
from barnabas.controller.placement import Assignment
from barnabas.errors import ConfigError, InvalidConfig, InvalidReplicaAssignment, InvalidTopic

MAX_NAME_LENGTH = 249  # so that `<topic>-<partition>.<32 hex>-delete` stays a possible file name
_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+\Z")


_NO_CONFIGS: Mapping[str, str] = MappingProxyType({})


class NewTopic(NamedTuple):
    """A topic that somebody wants. `assignment`, where given, takes the place of the numbers."""

    name: str
    partitions: int = 1
    replication_factor: int = 1
    assignment: Assignment | None = None
    configs: Mapping[str, str] = _NO_CONFIGS


def check_topic_name(name: str) -> None:
    """Raises InvalidTopic with what is wrong; a name is a directory's name, too."""
    if not name:
        raise InvalidTopic("a topic needs a name")
    if name in (".", ".."):
        raise InvalidTopic(f"a topic cannot be called {name!r}")
    if len(name) > MAX_NAME_LENGTH:
        raise InvalidTopic(
            f"topic name of {len(name)} characters: at most {MAX_NAME_LENGTH} are possible"
        )
    if not _LEGAL_NAME.match(name):
        raise InvalidTopic(
            f"topic name {name!r}: only ASCII letters, digits, '.', '_' and '-' are possible"
        )


def check_collision(name: str, existing: Iterable[str]) -> None:
    """Raises InvalidTopic if the name differs from an existing one only in `.` against `_`.

    Metric names write both as `_`, so the two topics' metrics would be one.
    """
    key = _metric_name(name)
    for other in existing:
        if other != name and _metric_name(other) == key:
            raise InvalidTopic(
                f"topic name {name!r} collides with {other!r}: they differ in '.' and '_' only"
            )


def check_assignment(assignment: Assignment, live_brokers: Iterable[int]) -> None:
    """A replica assignment that the client made; raises InvalidReplicaAssignment."""
    live = set(live_brokers)
    if sorted(assignment) != list(range(len(assignment))) or not assignment:
        raise InvalidReplicaAssignment("partitions must be numbered from 0 without a gap")
    factors = {len(replicas) for replicas in assignment.values()}
    if factors == {0} or len(factors) > 1:
        raise InvalidReplicaAssignment("each partition needs the same number of replicas, over 0")
    for partition, replicas in sorted(assignment.items()):
        if len(set(replicas)) < len(replicas):
            raise InvalidReplicaAssignment(f"partition {partition} names a broker twice")
        missing = sorted(set(replicas) - live)
        if missing:
            raise InvalidReplicaAssignment(f"partition {partition}: brokers {missing} do not live")


def check_config(configs: Mapping[str, str]) -> None:
    """A new topic's own settings; raises InvalidConfig with the key and what is allowed."""
    try:
        LogConfig().with_overrides(configs)
    except ConfigError as error:
        raise InvalidConfig(str(error)) from None


def _metric_name(name: str) -> str:
    return name.replace(".", "_")
