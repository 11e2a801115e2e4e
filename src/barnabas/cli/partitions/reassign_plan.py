"""Reads and writes `reassign` plans as Kafka's JSON files, and words their state as Kafka does.
Pure.

    {"version":1,"partitions":[
      {"topic":"t","partition":0,"replicas":[1,2],"log_dirs":["any","any"]}]}

A partition's first replica is its preferred leader. Without `log_dirs` (see `reassign_log_dirs`),
the broker chooses among its directories.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from barnabas.cli.partitions.reassign_log_dirs import LogDirs, Replica
from barnabas.client.admin.admin import TopicDescription
from barnabas.client.admin.partition_admin import Reassignment
from barnabas.controller.placement import place
from barnabas.errors import BarnabasError
from barnabas.types import TopicPartition

Replicas = dict[TopicPartition, tuple[int, ...]]

_VERSION = 1
_ANY = "any"


class BadPlan(BarnabasError):
    """Raised if the file is invalid; the message gives the reason."""


def read_plan(text: str) -> Replicas:
    """Return the replicas in a reassignment file. Raises BadPlan."""
    wanted: Replicas = {}
    for entry in _entries(text, "partitions"):
        name = _name(entry)
        replicas = entry.get("replicas")
        # JSON's true is also an int in Python.
        if not isinstance(replicas, list) or not all(type(each) is int for each in replicas):
            raise BadPlan(f'partition {name}: "replicas" is not a list of broker ids')
        if not replicas:
            raise BadPlan(f"partition {name} would have no replica")
        if len(set(replicas)) < len(replicas):
            raise BadPlan(f"partition {name} names a broker twice: {_ids(replicas)}")
        _log_dirs(name, entry)
        if name in wanted:
            raise BadPlan(f"partition {name} is named twice")
        wanted[name] = tuple(replicas)
    if not wanted:
        raise BadPlan("no partition is named")
    return wanted


def read_log_dirs(text: str) -> LogDirs:
    """Return the log directories that a reassignment file specifies. Raises BadPlan."""
    wanted: LogDirs = {}
    for entry in _entries(text, "partitions"):
        name = _name(entry)
        for broker_id, path in zip(entry["replicas"], _log_dirs(name, entry), strict=False):
            if path != _ANY:
                wanted[Replica(broker_id, name)] = path
    return wanted


def _log_dirs(name: TopicPartition, entry: Mapping[str, Any]) -> list[str]:
    """Return the directory of each replica, or an empty list if the entry has none. Raises
    BadPlan.
    """
    found = entry.get("log_dirs") or []
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise BadPlan(f'partition {name}: "log_dirs" is not a list of paths')
    count = len(entry["replicas"])
    if found and len(found) != count:
        raise BadPlan(f'partition {name} has {count} "replicas", but {len(found)} "log_dirs"')
    wrong = [each for each in found if each != _ANY and not each.startswith("/")]
    if wrong:
        raise BadPlan(
            f'partition {name}: {wrong[0]!r} in "log_dirs" is neither "any" nor an absolute path'
        )
    return found


def read_names(text: str) -> list[TopicPartition]:
    """Return the partitions in an election file, `{"partitions":[{"topic":"t","partition":0}]}`."""
    names = [_name(entry) for entry in _entries(text, "partitions")]
    if not names:
        raise BadPlan("no partition is named")
    return list(dict.fromkeys(names))


def read_topics(text: str) -> list[str]:
    """Return the topics in `{"version":1,"topics":[{"topic":"t"}]}`. Raises BadPlan."""
    topics = [entry.get("topic") for entry in _entries(text, "topics")]
    wrong = [topic for topic in topics if not isinstance(topic, str)]
    if wrong or not topics:
        raise BadPlan("no topic is named" if not topics else f"{wrong[0]!r} is not a topic's name")
    return list(dict.fromkeys(topic for topic in topics if isinstance(topic, str)))


def plan_text(replicas: Mapping[TopicPartition, Sequence[int]]) -> str:
    """Return the file that describes these replicas, as one line."""
    partitions = [
        {
            "topic": name.topic,
            "partition": name.partition,
            "replicas": list(brokers),
            "log_dirs": [_ANY] * len(brokers),
        }
        for name, brokers in sorted(replicas.items())
    ]
    stored = {"version": _VERSION, "partitions": partitions}
    return json.dumps(stored, separators=(",", ":"))


def current(topics: Iterable[TopicDescription]) -> Replicas:
    """Return the replicas of every partition of these topics."""
    return {
        TopicPartition(topic.name, partition.partition): partition.replicas
        for topic in topics
        for partition in topic.partitions
    }


def propose(
    topics: Iterable[TopicDescription],
    racks: Mapping[int, str | None],
    start: int,
    moving: Mapping[TopicPartition, Reassignment] | None = None,
) -> Replicas:
    """Assign each topic to these brokers as if it were new, with its current replication factor.

    `moving`: the reassignments in progress. Raises InvalidReplicationFactor if there are too few
    brokers.
    """
    # Place replicas as the controller does for a new topic, to distribute them just as evenly.
    return {
        TopicPartition(topic.name, number): tuple(brokers)
        for topic in topics
        for number, brokers in place(
            racks, len(topic.partitions), _replication_factor(topic, moving or {}), start, start
        ).items()
    }


def _replication_factor(
    topic: TopicDescription, moving: Mapping[TopicPartition, Reassignment]
) -> int:
    """Return the number of replicas that most partitions have once their reassignments end."""
    counts: Counter[int] = Counter()
    for each in topic.partitions:
        move = moving.get(TopicPartition(topic.name, each.partition))
        counts[len(each.replicas) if move is None else len(move.replicas) - len(move.removing)] += 1
    return counts.most_common(1)[0][0]


def status_lines(
    wanted: Replicas, actual: Replicas, moving: Mapping[TopicPartition, Reassignment]
) -> list[str]:
    """Return the state of a reassignment, as lines. A nonexistent partition has no replicas."""
    lines = ["Status of partition reassignment:"]
    for name, replicas in sorted(wanted.items()):
        is_at = actual.get(name, ())
        if name in moving:
            lines.append(f"Reassignment of partition {name} is still in progress.")
        elif is_at == replicas:
            lines.append(f"Reassignment of partition {name} is completed.")
        else:
            lines.append(
                f"There is no active reassignment of partition {name}, "
                f"but replica set is {_ids(is_at)} rather than {_ids(replicas)}."
            )
    return lines


def moving_lines(moving: Mapping[TopicPartition, Reassignment]) -> list[str]:
    """Return the partitions being reassigned, as lines."""
    if not moving:
        return ["No partition reassignments found."]
    lines = ["Current partition reassignments:"]
    for name, (replicas, adding, removing) in sorted(moving.items()):
        line = f"{name}: replicas: {_ids(replicas)}."
        if adding:
            line += f" adding: {_ids(adding)}."
        if removing:
            line += f" removing: {_ids(removing)}."
        lines.append(line)
    return lines


def _entries(text: str, key: str) -> list[dict[str, Any]]:
    try:
        stored = json.loads(text)
    except ValueError as error:
        raise BadPlan(f"not JSON: {error}") from error
    version = stored.get("version", _VERSION) if isinstance(stored, dict) else None
    entries = stored.get(key) if isinstance(stored, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise BadPlan(f'"{key}" is not a list of objects')
    if version != _VERSION:
        raise BadPlan(f"version {version} is not known, only {_VERSION}")
    return entries


def _name(entry: Mapping[str, Any]) -> TopicPartition:
    topic, partition = entry.get("topic"), entry.get("partition")
    if not isinstance(topic, str) or type(partition) is not int:
        raise BadPlan(f'{json.dumps(entry)}: no "topic", or no "partition" number')
    return TopicPartition(topic, partition)


def _ids(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))
