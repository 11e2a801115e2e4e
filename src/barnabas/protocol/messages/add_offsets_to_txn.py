"""AddOffsetsToTxn (key 25): adds a group's offsets to a transaction.

Version 2 can return PRODUCER_FENCED, version 3 is flexible, and version 4 can return
TRANSACTION_ABORTABLE.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import INT16, INT32, INT64, STRING


class AddOffsetsToTxnRequest(Message, flexible="3+"):
    transactional_id: str = field(STRING)
    producer_id: int = field(INT64)
    producer_epoch: int = field(INT16)
    group_id: str = field(STRING)


class AddOffsetsToTxnResponse(Message, flexible="3+"):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
