"""Stores events in a journal, and waits until they are synced to the disk.

    request ─▶ `store` ─▶ known id? ─ no ─▶ next frame ─▶ journal (synced) ─▶ `JournalSender`
       ◀── stored, or NotStored ◀── yes: its frame, or stored already

All requests that arrive while a frame is being synced share the next frame. The journal still knows
the ids of its records after a restart, so repetitions are then recognised as well.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, TypeVar

from barnabas.errors import BarnabasError, KafkaError, UnknownTopicOrPartition
from barnabas.shielded import retrieve_error, shielded
from barnabas_track.journal import Journal
from barnabas_track.outbox import MOST_IDS, NotStored, Outgoing
from barnabas_track.recent_ids import RecentIds

_Result = TypeVar("_Result")
_MOST_WAITING_BYTES: Final = 32 << 20

STUCK_S: Final = 300.0
"""How long nothing may be sent while records are waiting."""


class JournalProgress:
    """Knows whether the records of a journal reach the brokers. `now_s` is a monotonic clock."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._since_s: float | None = None  # of the last progress; None if nothing is waiting
        self._refusal = ""
        self._failure = ""

    @property
    def trouble(self) -> str:
        """The reason why the records will not be sent without help, or an empty string."""
        if self._refusal:
            return f"the brokers refuse the events of the journal: {self._refusal}"
        if self._since_s is None or (waited_s := self._now_s() - self._since_s) < STUCK_S:
            return ""
        why = self._failure or "the brokers have not answered"
        return f"no event of the journal was sent within {int(waited_s)} s: {why}"

    def on_stored(self) -> None:
        """Note that records are waiting."""
        if self._since_s is None:
            self._since_s = self._now_s()

    def on_committed(self) -> None:
        """Note that the brokers have committed records."""
        self._refusal = self._failure = ""
        if self._since_s is not None:
            self._since_s = self._now_s()

    def on_all_sent(self) -> None:
        """Note that no record is waiting, and that the brokers have committed the position."""
        self._refusal = self._failure = ""
        self._since_s = None

    def on_failure(self, error: BarnabasError) -> None:
        """Note why the last transaction failed."""
        self._failure = str(error)
        # The client has already waited for the topic, in case it is new.
        is_refused = isinstance(error, KafkaError) and (
            not error.retriable or isinstance(error, UnknownTopicOrPartition)
        )
        self._refusal = self._failure if is_refused else ""


class _Group:
    """The records of the next frame."""

    def __init__(self) -> None:
        self.records: list[Outgoing] = []
        self.size_bytes = 0
        self.is_stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # Retrieve the error even if no request is waiting for the group.
        self.is_stored.add_done_callback(retrieve_error)


class JournalOutbox:
    """Stores records in a journal. `news` is set when there are records to send."""

    def __init__(self, journal: Journal, *, most_ids: int = MOST_IDS) -> None:
        self.news = asyncio.Event()
        self.progress = JournalProgress()
        if journal.last > journal.sent:
            self.progress.on_stored()
        self._disk_trouble = ""  # why the last records were not stored
        self._journal = journal
        # Use a single thread, because only one thread at a time may use the journal.
        self._thread = ThreadPoolExecutor(1, "journal")
        # Maps each id to its group, or to None once the record is stored.
        self._known: RecentIds[_Group | None] = RecentIds(most_ids)
        self._known.update(dict.fromkeys(journal.known_ids))
        journal.known_ids.clear()
        self._next: _Group | None = None
        self._writing: asyncio.Task[None] | None = None

    @property
    def trouble(self) -> str:
        """The reason why records are not stored or not sent, or an empty string."""
        return self._disk_trouble or self.progress.trouble

    async def close(self) -> None:
        """Wait for the writes in progress, and close the journal."""
        if self._writing is not None:
            await asyncio.gather(self._writing, return_exceptions=True)
        await self.in_thread(self._journal.save_hint)
        self._thread.shutdown()
        self._journal.close()

    async def in_thread(self, function: Callable[[], _Result]) -> _Result:
        """Call a function that uses the journal in the journal's thread, and return its result."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    async def store(self, given: Sequence[Outgoing]) -> int:
        """Store records, and return how many of their ids were already known.

        Raises NotStored.
        """
        groups: set[_Group] = set()
        known = 0
        for each in given:
            if each.id in self._known:
                known += 1
                group = self._known[each.id]
            else:
                group = self._add(each)
            if group is not None:
                groups.add(group)
        for group in groups:
            # Other requests may wait for the same group, so cancelling this one must not cancel the
            # group.
            await shielded(group.is_stored)
        return known

    def _add(self, outgoing: Outgoing) -> _Group:
        if self._next is None:
            self._next = _Group()
            if self._writing is None or self._writing.done():
                self._writing = asyncio.create_task(self._write())
        group = self._next
        if group.size_bytes > _MOST_WAITING_BYTES:
            self._disk_trouble = "the disk is slower than the requests"
            raise NotStored(self._disk_trouble)
        group.records.append(outgoing)
        group.size_bytes += len(outgoing.record.value or b"")
        self._known.remember(outgoing.id, group)
        return group

    async def _write(self) -> None:
        while (group := self._next) is not None:
            self._next = None
            try:
                await self.in_thread(partial(self._journal.append, group.records))
            except (OSError, BarnabasError) as error:
                why = error.strerror or "" if isinstance(error, OSError) else str(error)
                self._disk_trouble = f"cannot write to the journal: {why}"
                self._settle(group, NotStored(self._disk_trouble))
            else:
                self._disk_trouble = ""
                self._settle(group, None)
                self.progress.on_stored()
                self.news.set()

    def _settle(self, group: _Group, error: NotStored | None) -> None:
        for id_, _ in group.records:
            if self._known.get(id_) is not group:
                continue  # forgotten in the meantime
            if error is None:
                self._known[id_] = None
            else:
                del self._known[id_]  # the next attempt stores the record again
        if error is None:
            group.is_stored.set_result(None)
        else:
            group.is_stored.set_exception(error)
