"""RenewDelegationToken (key 39): extends the lifetime of a token, up to its maximum (KIP-48)."""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import BYTES, INT16, INT32, INT64


class RenewDelegationTokenRequest(Message, flexible="2+"):
    hmac: bytes = field(BYTES)
    renew_period_ms: int = field(INT64)


class RenewDelegationTokenResponse(Message, flexible="2+"):
    error_code: int = field(INT16)
    expiry_timestamp_ms: int = field(INT64)
    throttle_time_ms: int = field(INT32)
