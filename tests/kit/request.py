"""What the broker makes of a request's frame, for tests that play a broker or read a recording."""

from __future__ import annotations

from barnabas.protocol.api import APIS
from barnabas.protocol.codec import Message, decode_prefix
from barnabas.protocol.frame import RequestHeader


def decode_request(header: RequestHeader) -> Message:
    """The request itself; bytes behind it are ignored, as the broker does. Raises CorruptData."""
    return decode_prefix(APIS[header.api_key].request, header.body, header.api_version)
