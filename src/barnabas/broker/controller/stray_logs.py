"""Logs that lie here and that the metadata do not know: no topic is created over one by itself.

Metadata may be lost or restored from an old backup. If the next client that asks had the topic
created, its records would be under another topic's id and the old log out of its way: whoever
restores the metadata afterwards finds the name taken. An administrator may create the topic all the
same: then the log is set aside, and kept.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from barnabas.errors import KafkaStorageError
from barnabas.types import TopicPartition

_log = logging.getLogger(__name__)


class StrayLogs:
    """Those of one broker that is alone; in a cluster, the metadata are not this broker's."""

    __slots__ = ("_logged", "_logs", "_names")

    def __init__(self, logs: Mapping[TopicPartition, object]) -> None:
        """`logs`: what lies here at any time; what is set aside is no longer among them."""
        self._logs = logs
        self._names: dict[str, list[TopicPartition]] = {}
        self._logged: set[str] = set()

    def found(self, names: Iterable[TopicPartition]) -> None:
        """These were unknown at the start."""
        for name in names:
            self._names.setdefault(name.topic, []).append(name)

    def refusal(self, topic: str) -> KafkaStorageError | None:
        """Why the topic is not created automatically; logged once."""
        partitions = [each for each in self._names.get(topic, ()) if each in self._logs]
        if not partitions:
            return None
        text = (
            f"topic {topic} is not created automatically: the metadata do not know it, but there "
            f"are logs of it here ({', '.join(map(str, partitions[:3]))}"
            f"{' ...' if len(partitions) > 3 else ''}). Restore the metadata that they belong to; "
            "or, if they are not needed, move them elsewhere while the broker is stopped, or "
            "create the topic with `barnabas topics create`, which sets them aside"
        )
        if topic not in self._logged:
            self._logged.add(topic)
            _log.error("%s", text)
        return KafkaStorageError(text)
