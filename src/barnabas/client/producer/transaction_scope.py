"""Provides a transaction as a block. It is committed at the end, or aborted if the block raises.

If a commit or abort gets no response within `max.block.ms`, it is repeated when the next block is
entered, because the coordinator may have completed it.
"""

from __future__ import annotations

from types import TracebackType

from barnabas.client.producer.transactions import State, Transactions
from barnabas.errors import BarnabasError


class TransactionScope:
    """Begins a transaction, and commits or aborts it at the end of an `async with` block."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    async def __aenter__(self) -> None:
        state = self._transactions.state
        # Finish the previous block first. The coordinator may have decided an unanswered commit or
        # abort, so only the same call may be repeated.
        if state is State.UNINITIALIZED:
            await self._transactions.init()
        elif state is State.COMMITTING:
            await self._transactions.commit()
        elif state in (State.ABORTING, State.FAILED):
            await self._transactions.abort()
        self._transactions.begin()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            await self._abort_after(error)
            return
        try:
            await self._transactions.commit()
        except BarnabasError as failure:
            if self._transactions.state is State.FAILED:
                await self._abort_after(failure)
            if self._transactions.state is State.COMMITTING:
                # The transaction's outcome is unknown, so resent records could be stored twice.
                failure.add_note(
                    "the commit is not finished: the next transaction block, or a call of "
                    "commit_transaction, finishes it first; do not send these records again"
                )
            raise
        except BaseException as failure:  # cancelled with records in flight
            await self._abort_after(failure)
            raise

    async def _abort_after(self, error: BaseException) -> None:
        """Abort any open transaction. If this fails, only add a note to `error`."""
        if self._transactions.state not in (State.OPEN, State.FAILED):
            return
        try:
            await self._transactions.abort()
        except BarnabasError as failure:
            error.add_note(f"and the transaction could not be aborted: {failure}")
