"""Describes transactions for `/api/transactions`. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from barnabas.client.admin.transaction_admin import TransactionDescription, TransactionListing
from barnabas.console.shapes import TransactionRow
from barnabas.console.snapshot import TransactionLook

OPEN: Final = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"})
"""The states of a transaction in which read_committed consumers cannot read past it."""
MOST_ROWS: Final = 1_000


def hanging(look: TransactionLook, now_ms: int) -> Iterator[TransactionDescription]:
    """Yield the transactions that have been open for longer than their timeout."""
    return (each for each in look.open.values() if hangs(each, now_ms))


def transaction_rows(look: TransactionLook, now_ms: int) -> list[TransactionRow]:
    """Return at most 1,000 transactions, sorted by id, with the open ones first."""
    rows = [_row(each, look.open.get(each.transactional_id), now_ms) for each in look.listings]
    return sorted(rows, key=lambda row: (row["state"] not in OPEN, row["id"]))[:MOST_ROWS]


def _row(
    listing: TransactionListing, details: TransactionDescription | None, now_ms: int
) -> TransactionRow:
    row = TransactionRow(
        id=listing.transactional_id,
        state=listing.state,
        coordinator=listing.coordinator_id,
        producer_id=listing.producer_id,
        producer_epoch=None,
        started=None,
        timeout=None,
        partitions=[],
        hangs=False,
    )
    if details is not None:
        row["state"] = details.state
        row["producer_epoch"] = details.producer_epoch
        row["started"] = None if details.started_at_ms < 0 else details.started_at_ms
        row["timeout"] = details.timeout_ms
        row["partitions"] = [str(name) for name in details.partitions]
        row["hangs"] = hangs(details, now_ms)
    return row


def hangs(each: TransactionDescription, now_ms: int) -> bool:
    """Return whether a transaction has been open for longer than its timeout."""
    return each.started_at_ms >= 0 and now_ms - each.started_at_ms > each.timeout_ms
