"""A transaction as a block: committed at its end, aborted if it raises."""

from __future__ import annotations

from types import TracebackType

from barnabas.client.producer.transactions import State, Transactions
from barnabas.errors import BarnabasError


class TransactionScope:
    """What `Producer.transaction()` returns, for `async with`."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    async def __aenter__(self) -> None:
        if self._transactions.state is State.UNINITIALIZED:
            await self._transactions.init()
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
            raise

    async def _abort_after(self, error: BaseException) -> None:
        """Abort, unless nothing is left to abort; `error` is what the caller is to see."""
        if self._transactions.state not in (State.OPEN, State.FAILED):
            return
        try:
            await self._transactions.abort()
        except BarnabasError as failure:
            error.add_note(f"and the transaction could not be aborted: {failure}")
