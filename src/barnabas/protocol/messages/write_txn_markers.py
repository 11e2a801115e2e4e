"""WriteTxnMarkers (key 27): a coordinator writes markers to partitions that other brokers lead.

Admin clients also send it in order to abort a hanging transaction (KIP-664). Version 1 is flexible.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import BOOLEAN, INT16, INT32, INT64, STRING, Array


class WritableTxnMarkerTopic(Message):
    name: str = field(STRING)
    partition_indexes: list[int] = field(Array(INT32))


class WritableTxnMarker(Message):
    producer_id: int = field(INT64)
    producer_epoch: int = field(INT16)
    # If False, the transaction is aborted.
    transaction_result: bool = field(BOOLEAN)  # True commits
    topics: list[WritableTxnMarkerTopic] = field(Array(WritableTxnMarkerTopic))
    coordinator_epoch: int = field(INT32)


class WriteTxnMarkersRequest(Message, flexible="1+"):
    markers: list[WritableTxnMarker] = field(Array(WritableTxnMarker))


class WritableTxnMarkerPartitionResult(Message):
    partition_index: int = field(INT32)
    error_code: int = field(INT16)


class WritableTxnMarkerTopicResult(Message):
    name: str = field(STRING)
    partitions: list[WritableTxnMarkerPartitionResult] = field(
        Array(WritableTxnMarkerPartitionResult)
    )


class WritableTxnMarkerResult(Message):
    producer_id: int = field(INT64)
    topics: list[WritableTxnMarkerTopicResult] = field(Array(WritableTxnMarkerTopicResult))


class WriteTxnMarkersResponse(Message, flexible="1+"):
    markers: list[WritableTxnMarkerResult] = field(Array(WritableTxnMarkerResult))
