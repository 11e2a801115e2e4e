"""Tracks the transactions in progress at the cleaner's position in a log (KIP-98).

The `.txnindex` shows whether a transaction was aborted before the pass reaches its marker. An
aborted transaction's data is removed immediately. Its marker is kept as long as a reader may need
it: until a pass has found no more batches of the transaction, and the delete horizon that it wrote
into the marker has passed.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.records.batch import BatchHeader
from barnabas.records.control_records import ABORT, Marker
from barnabas.storage.transaction_index import Aborted


class Transactions:
    """The transactions at the cleaner's position. Pass the batches in order."""

    __slots__ = ("_ahead", "_committing", "_going", "_met")

    def __init__(self, aborted: Iterable[Aborted]) -> None:
        """Start at the beginning of the log, whose aborted transactions are `aborted`."""
        self._ahead = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        self._going: dict[int, Aborted] = {}  # aborted transactions that have begun, by producer
        self._met: set[int] = set()  # those of them whose data was found
        self._committing: set[int] = set()

    def is_aborted(self, header: BatchHeader) -> bool:
        """Record a data batch, and return whether it belongs to an aborted transaction."""
        self._begin_up_to(header.last_offset)
        # A batch outside a transaction is never aborted.
        if not header.is_transactional:
            return False
        if header.producer_id in self._going:
            self._met.add(header.producer_id)
            return True
        self._committing.add(header.producer_id)
        return False

    def end(self, header: BatchHeader, marker: Marker | None) -> tuple[bool, Aborted | None]:
        """Process a marker, or an emptied control batch (None).

        Returns whether no data of its transaction was found, and the entry that must stay in the
        index if data of an aborted transaction was found.
        """
        self._begin_up_to(header.last_offset)
        producer_id = header.producer_id
        if marker is None:
            return True, None
        # Keep a commit marker while its data exists: on replay, it ends the transaction.
        if marker.type != ABORT:
            was_met = producer_id in self._committing
            self._committing.discard(producer_id)
            return not was_met, None
        aborted = self._going.pop(producer_id, None)
        if aborted is None or producer_id not in self._met:
            return True, None
        self._met.discard(producer_id)
        return False, aborted

    def _begin_up_to(self, offset: int) -> None:
        ahead = self._ahead
        while ahead and ahead[-1].first_offset <= offset:
            aborted = ahead.pop()
            self._going.setdefault(aborted.producer_id, aborted)
