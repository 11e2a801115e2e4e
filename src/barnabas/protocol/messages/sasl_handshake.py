"""SaslHandshake (key 17): the client chooses the SASL mechanism.

After version 0, the mechanism's messages are sent as frames without a header. After version 1, they
are sent in SaslAuthenticate requests (KIP-152).
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import INT16, STRING, Array


# KIP-152: after version 1, the mechanism's messages are sent in SaslAuthenticate. After version 0,
# they have no header.
class SaslHandshakeRequest(Message):
    mechanism: str = field(STRING)


class SaslHandshakeResponse(Message):
    error_code: int = field(INT16)
    mechanisms: list[str] = field(Array(STRING))
