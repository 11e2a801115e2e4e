"""SaslAuthenticate (key 36): carries one SASL message and its response (KIP-152).

Version 1 returns the session's lifetime (KIP-368), 2 is flexible.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import BYTES, INT16, INT64, STRING


class SaslAuthenticateRequest(Message, flexible="2+"):
    auth_bytes: bytes = field(BYTES)


class SaslAuthenticateResponse(Message, flexible="2+"):
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")
    auth_bytes: bytes = field(BYTES)
    # KIP-368: the time within which the client must reauthenticate; 0 means never.
    session_lifetime_ms: int = field(INT64, versions="1+", ignorable=True)
