"""AllocateProducerIds (key 67): a broker requests a block of producer ids from the controller.

It was added by KIP-730.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import INT16, INT32, INT64


class AllocateProducerIdsRequest(Message, flexible="0+"):
    broker_id: int = field(INT32)
    broker_epoch: int = field(INT64, default=-1)


class AllocateProducerIdsResponse(Message, flexible="0+"):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    producer_id_start: int = field(INT64)
    producer_id_len: int = field(INT32)
