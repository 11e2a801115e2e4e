"""CreateDelegationToken (key 38): creates a token for authenticating as its owner (KIP-48).

Version 2 is flexible. Version 3 can create a token for another owner (KIP-373).
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import BYTES, INT16, INT32, INT64, STRING, Array


class CreatableRenewers(Message):
    principal_type: str = field(STRING)
    principal_name: str = field(STRING)


class CreateDelegationTokenRequest(Message, flexible="2+"):
    # KIP-373: the owner may be a user other than the requester.
    owner_principal_type: str | None = field(STRING, versions="3+", nullable="3+", ignorable=True)
    owner_principal_name: str | None = field(STRING, versions="3+", nullable="3+", ignorable=True)
    renewers: list[CreatableRenewers] = field(Array(CreatableRenewers))
    max_lifetime_ms: int = field(INT64)


class CreateDelegationTokenResponse(Message, flexible="2+"):
    error_code: int = field(INT16)
    principal_type: str = field(STRING)
    principal_name: str = field(STRING)
    token_requester_principal_type: str = field(STRING, versions="3+", ignorable=True)
    token_requester_principal_name: str = field(STRING, versions="3+", ignorable=True)
    issue_timestamp_ms: int = field(INT64)
    expiry_timestamp_ms: int = field(INT64)
    max_timestamp_ms: int = field(INT64)
    token_id: str = field(STRING)
    hmac: bytes = field(BYTES)
    throttle_time_ms: int = field(INT32)
