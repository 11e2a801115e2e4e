"""SaslAuthenticate (key 36): carries a SASL message and the server's response (KIP-152).

Version 1 returns the lifetime of the session (KIP-368), and version 2 is flexible.
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
    # KIP-368: how long the client has until it must authenticate again. 0 means that it never has
    # to.
    session_lifetime_ms: int = field(INT64, versions="1+", ignorable=True)
