"""Answers whether a run disturbed certain brokers at a certain time, as causes of events say."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from simulation.whole.deeds import Deed, Deeds
from simulation.whole.plan import (
    ADD_PARTITIONS,
    CLOCK,
    DELETE_RECORDS,
    DESCRIPTORS,
    DISK_SLOW,
    EMPTIED,
    FLIP,
    FLIP_AT_A_CRASH,
    HUNG,
    MOVE_LOG_DIR,
    PIPELINED,
    REPLACED,
    TOPIC_CONFIG,
    UNREAD,
)

_OPERATIONS = (ADD_PARTITIONS, DELETE_RECORDS, MOVE_LOG_DIR, "preferred", "reassign", TOPIC_CONFIG)
_HARMLESS = (*_OPERATIONS, CLOCK, "cut clients", PIPELINED, UNREAD)
"""Faults and operations that disturb neither replication between brokers nor their sessions."""
_OF_LINKS = ("cut", "isolate", "reset", "slow")
_OF_STORE = ("store away",)
_OF_SESSIONS = ("store cut", "expire")
_OF_DISKS = (
    "disk full",
    "disk broken",
    DESCRIPTORS,
    DISK_SLOW,
    EMPTIED,
    FLIP,
    FLIP_AT_A_CRASH,
    HUNG,
    REPLACED,
)
_SETTLES_MS = 1_500
"""How long the effects of a fault may last after its end, while connections are made again and a
restarted broker catches up."""


class Disturbances:
    def __init__(self, deeds: Deeds) -> None:
        self._deeds = deeds

    def between(self, brokers: Collection[int] | None, from_ms: int, to_ms: int) -> bool:
        """Return whether any of these brokers, or a link between them, was disturbed then; None
        stands for all brokers."""
        return any(
            each.kind not in _HARMLESS and _concerns(each, brokers)
            for each in self._in_effect(from_ms - _SETTLES_MS, to_ms)
        ) or self._was_down(brokers, from_ms, to_ms)

    def any_between(self, from_ms: int, to_ms: int) -> bool:
        """Return whether anything disturbed any broker then, or cut it off from clients."""
        return any(
            each.kind not in _OPERATIONS for each in self._in_effect(from_ms - _SETTLES_MS, to_ms)
        ) or self._was_down(None, from_ms, to_ms)

    def of_session(self, broker_id: int, from_ms: int, to_ms: int) -> bool:
        """Return whether the session of the broker may have ended then: because the process ended,
        could not run, or did not reach the metadata store."""
        return any(
            each.kind not in (*_HARMLESS, *_OF_LINKS)
            and (each.first == broker_id or each.kind in _OF_STORE)
            for each in self._in_effect(from_ms, to_ms)
        ) or self._was_down((broker_id,), from_ms, to_ms)

    def of_disk(self, broker_id: int, at_ms: int) -> bool:
        """Return whether the disk of the broker failed before this time: damage may be found much
        later."""
        return any(
            each.first == broker_id and each.at_ms <= at_ms and each.kind in _OF_DISKS
            for each in self._deeds.deeds
        )

    def of_power(self, broker_id: int, at_ms: int) -> bool:
        """Return whether a process of the broker ended before this time without a clean stop, or
        its disk was replaced, so that it may have lost records."""
        return any(
            each.broker_id == broker_id
            and each.ended_ms <= at_ms
            and not any(
                who == broker_id and each.begun_ms <= stop_ms <= each.ended_ms
                for who, stop_ms in self._deeds.stops
            )
            for each in self._deeds.spans
        ) or self.of_disk(broker_id, at_ms)

    def _in_effect(self, from_ms: int, to_ms: int) -> Iterator[Deed]:
        """Yield the faults and operations that were in effect at any time of this period."""
        for each in self._deeds.deeds:
            if each.at_ms <= to_ms and each.until_ms >= from_ms:
                yield each

    def _was_down(self, brokers: Collection[int] | None, from_ms: int, to_ms: int) -> bool:
        """Return whether a process of these brokers ended or began then."""
        return any(
            (brokers is None or each.broker_id in brokers)
            and (
                from_ms <= each.ended_ms <= to_ms
                or (from_ms <= each.begun_ms + _SETTLES_MS and each.begun_ms <= to_ms)
            )
            for each in self._deeds.spans
        )


def _concerns(deed: Deed, brokers: Collection[int] | None) -> bool:
    if brokers is None or deed.kind in _OF_STORE:
        return True
    if deed.kind == "cut":
        return deed.first in brokers and deed.second in brokers
    return deed.first in brokers
