"""AddPartitionsToTxn (key 24): adds partitions to a transaction before the producer writes to them.

Producers send versions 0 to 3, which contain one transaction. Brokers send version 4 and above,
which contain many transactions, usually only to check whether the partitions are part of them
(KIP-890). Version 3 is flexible. Version 5 has the same format as version 4 and can return
TRANSACTION_ABORTABLE.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import BOOLEAN, INT16, INT32, INT64, STRING, Array


class AddPartitionsToTxnTopic(Message):
    name: str = field(STRING)
    partitions: list[int] = field(Array(INT32))


class AddPartitionsToTxnTransaction(Message):
    transactional_id: str = field(STRING, versions="4+")
    producer_id: int = field(INT64, versions="4+")
    producer_epoch: int = field(INT16, versions="4+")
    # KIP-890: whether the broker only asks if the partitions are part of the transaction.
    verify_only: bool = field(BOOLEAN, versions="4+", default=False)
    topics: list[AddPartitionsToTxnTopic] = field(Array(AddPartitionsToTxnTopic), versions="4+")


class AddPartitionsToTxnRequest(Message, flexible="3+"):
    # KIP-890: version 4 and above are sent only by brokers, and contain several transactions.
    transactions: list[AddPartitionsToTxnTransaction] = field(
        Array(AddPartitionsToTxnTransaction), versions="4+"
    )
    v3_and_below_transactional_id: str = field(STRING, versions="0-3")
    v3_and_below_producer_id: int = field(INT64, versions="0-3")
    v3_and_below_producer_epoch: int = field(INT16, versions="0-3")
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = field(
        Array(AddPartitionsToTxnTopic), versions="0-3"
    )


class AddPartitionsToTxnPartitionResult(Message):
    partition_index: int = field(INT32)
    partition_error_code: int = field(INT16)


class AddPartitionsToTxnTopicResult(Message):
    name: str = field(STRING)
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = field(
        Array(AddPartitionsToTxnPartitionResult)
    )


class AddPartitionsToTxnResult(Message):
    transactional_id: str = field(STRING, versions="4+")
    topic_results: list[AddPartitionsToTxnTopicResult] = field(
        Array(AddPartitionsToTxnTopicResult), versions="4+"
    )


class AddPartitionsToTxnResponse(Message, flexible="3+"):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16, versions="4+", ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = field(
        Array(AddPartitionsToTxnResult), versions="4+"
    )
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = field(
        Array(AddPartitionsToTxnTopicResult), versions="0-3"
    )
