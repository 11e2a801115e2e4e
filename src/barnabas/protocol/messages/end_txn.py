"""EndTxn (key 26): a producer commits or aborts its transaction.

Version 2 can return PRODUCER_FENCED, version 3 is flexible, and version 4 can return
TRANSACTION_ABORTABLE. Version 5 is used with transaction version 2 (KIP-890), a feature that
Barnabas does not offer.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import BOOLEAN, INT16, INT32, INT64, STRING


class EndTxnRequest(Message, flexible="3+"):
    transactional_id: str = field(STRING)
    producer_id: int = field(INT64)
    producer_epoch: int = field(INT16)
    # If False, the transaction is aborted.
    committed: bool = field(BOOLEAN)


class EndTxnResponse(Message, flexible="3+"):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
