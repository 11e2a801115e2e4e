"""ListTransactions (key 66): returns the transactional ids that this broker coordinates.

Version 1 can filter by the minimum duration in ms (KIP-994).
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import INT16, INT32, INT64, STRING, Array


class ListTransactionsRequest(Message, flexible="0+"):
    state_filters: list[str] = field(Array(STRING))
    producer_id_filters: list[int] = field(Array(INT64))
    # KIP-994: only transactions that have been open for longer than this are returned.
    duration_filter: int = field(INT64, versions="1+", default=-1)


class ListedTransactionState(Message):
    transactional_id: str = field(STRING)
    producer_id: int = field(INT64)
    transaction_state: str = field(STRING)


class ListTransactionsResponse(Message, flexible="0+"):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    unknown_state_filters: list[str] = field(Array(STRING))
    transaction_states: list[ListedTransactionState] = field(Array(ListedTransactionState))
