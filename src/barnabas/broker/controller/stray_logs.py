"""Stray logs, which the metadata does not know: no topic is created automatically over one.

Metadata may be lost or restored from an old backup. If the next client's request created the topic,
its records would be under another topic id and the old log would be set aside, so that metadata
restored afterwards would find the name taken. An administrator may still create the topic: then the
log is set aside and kept.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from barnabas.errors import KafkaStorageError
from barnabas.types import TopicPartition

_log = logging.getLogger(__name__)


class StrayLogs:
    """Tracks the stray logs of a broker without a cluster; in a cluster, the metadata is shared."""

    __slots__ = ("_logged", "_logs", "_names")

    def __init__(self, logs: Mapping[TopicPartition, object]) -> None:
        """`logs` always holds the broker's current logs; a log that is set aside leaves it."""
        self._logs = logs
        self._names: dict[str, list[TopicPartition]] = {}
        self._logged: set[str] = set()

    def add(self, names: Iterable[TopicPartition]) -> None:
        """Remember partitions that the metadata did not know at the start."""
        for name in names:
            self._names.setdefault(name.topic, []).append(name)

    def refusal(self, topic: str) -> KafkaStorageError | None:
        """Return why the topic is not created automatically, or None; the reason is logged once."""
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
