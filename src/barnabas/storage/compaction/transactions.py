"""Tracks which transactions are in progress at the cleaner's position in a log (KIP-98).

From the `.txnindex` file, the cleaner knows that a transaction was aborted even before it reaches
the marker. The data of an aborted transaction is removed immediately. Its marker is kept for as
long as a reader may need it. A pass that finds no more batches of the transaction writes a delete
horizon into the marker. The marker is removed only when this horizon has passed.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.records.batch import BatchHeader
from barnabas.records.control_records import ABORT, Marker
from barnabas.storage.transaction_index import Aborted


class Transactions:
    """Tracks the transactions at the cleaner's position. The batches must be passed in order."""

    __slots__ = ("_ahead", "_committing", "_going", "_met")

    def __init__(self, aborted: Iterable[Aborted]) -> None:
        """Start at the beginning of a log in which the `aborted` transactions were aborted."""
        self._ahead = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        self._going: dict[int, Aborted] = {}  # aborted transactions that have begun, by producer
        self._met: set[int] = set()  # the ones whose data was found
        self._committing: set[int] = set()

    def is_aborted(self, header: BatchHeader) -> bool:
        """Track a data batch, and return whether it is part of an aborted transaction."""
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
        """End a transaction at its marker. If `marker` is None, the control batch has no records.

        Returns whether no data of the transaction was found, and the index entry of an aborted
        transaction whose data was found. This entry must stay in the index.
        """
        self._begin_up_to(header.last_offset)
        producer_id = header.producer_id
        if marker is None:
            return True, None
        # Keep a commit marker while data of its transaction is left, because a replay needs it to
        # end the transaction.
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
