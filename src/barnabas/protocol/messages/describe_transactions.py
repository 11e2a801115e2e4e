"""DescribeTransactions (key 65): returns the state of transactional ids.

The request is sent to their coordinator.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import INT16, INT32, INT64, STRING, Array


class DescribeTransactionsRequest(Message, flexible="0+"):
    transactional_ids: list[str] = field(Array(STRING))


class TopicData(Message):
    topic: str = field(STRING)
    partitions: list[int] = field(Array(INT32))


class TransactionState(Message):
    error_code: int = field(INT16)
    transactional_id: str = field(STRING)
    transaction_state: str = field(STRING)
    transaction_timeout_ms: int = field(INT32)
    transaction_start_time_ms: int = field(INT64)
    producer_id: int = field(INT64)
    producer_epoch: int = field(INT16)
    topics: list[TopicData] = field(Array(TopicData))


class DescribeTransactionsResponse(Message, flexible="0+"):
    throttle_time_ms: int = field(INT32)
    transaction_states: list[TransactionState] = field(Array(TransactionState))
