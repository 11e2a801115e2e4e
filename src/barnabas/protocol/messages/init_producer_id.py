"""InitProducerId (key 22): assigns a producer id and epoch, for idempotence and transactions.

Version 2 is flexible, and version 3 lets a producer increment its own epoch (KIP-360). Versions 4
and 5 have the same format as version 3; version 4 can return PRODUCER_FENCED, and version 5 can
return TRANSACTION_ABORTABLE.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import INT16, INT32, INT64, STRING


class InitProducerIdRequest(Message, flexible="2+"):
    transactional_id: str | None = field(STRING, nullable="0+")
    transaction_timeout_ms: int = field(INT32)
    # KIP-360: to continue after an error, a producer sends its id and epoch, and the response
    # contains its next epoch.
    producer_id: int = field(INT64, versions="3+", default=-1)
    producer_epoch: int = field(INT16, versions="3+", default=-1)


class InitProducerIdResponse(Message, flexible="2+"):
    throttle_time_ms: int = field(INT32, ignorable=True)
    error_code: int = field(INT16)
    producer_id: int = field(INT64, default=-1)
    producer_epoch: int = field(INT16)
