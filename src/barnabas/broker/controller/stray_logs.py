"""Tracks stray logs, whose partitions are missing from the metadata, and prevents their topics from
being created automatically.

Metadata can be lost or restored from an old backup. If a client's request then created the topic,
the topic would get a new id and its old log would be set aside. If the metadata were restored
later, the name would already be taken. An administrator can still create the topic. In that case,
the log is set aside and kept.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from barnabas.errors import KafkaStorageError
from barnabas.types import TopicPartition

_log = logging.getLogger(__name__)


class StrayLogs:
    """Keeps track of the stray logs on a standalone broker."""

    __slots__ = ("_logged", "_logs", "_names")

    def __init__(self, logs: Mapping[TopicPartition, object]) -> None:
        """`logs` is a live view of the broker's logs. Logs that have been set aside are not
        included.
        """
        self._logs = logs
        self._names: dict[str, list[TopicPartition]] = {}
        self._logged: set[str] = set()

    def add(self, names: Iterable[TopicPartition]) -> None:
        """Add the partitions that were missing from the metadata at startup."""
        for name in names:
            self._names.setdefault(name.topic, []).append(name)

    def refusal(self, topic: str) -> KafkaStorageError | None:
        """Return why the topic must not be created automatically, or None if it may be created.
        Each reason is logged once.
        """
        partitions = [each for each in self._names.get(topic, ()) if each in self._logs]
        if not partitions:
            return None
        text = (
            f"topic {topic} was not created automatically: it is not in the metadata, but its "
            "logs are on this broker "
            f"({', '.join(map(str, partitions[:3]))}{' ...' if len(partitions) > 3 else ''}). "
            "Restore the metadata that they belong to; or, if they are not needed, stop the "
            "broker and move them elsewhere, or create the topic with `barnabas topics create`, "
            "which sets them aside"
        )
        if topic not in self._logged:
            self._logged.add(topic)
            _log.error("%s", text)
        return KafkaStorageError(text)
