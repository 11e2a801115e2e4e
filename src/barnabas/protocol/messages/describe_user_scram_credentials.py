"""DescribeUserScramCredentials (key 50): returns the SCRAM mechanisms of users, but no secrets.

It was added by KIP-554.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import INT8, INT16, INT32, STRING, Array


class UserName(Message):
    name: str = field(STRING)


class DescribeUserScramCredentialsRequest(Message, flexible="0+"):
    users: list[UserName] | None = field(Array(UserName), nullable="0+")


class CredentialInfo(Message):
    mechanism: int = field(INT8)  # 1: SCRAM-SHA-256, 2: SCRAM-SHA-512
    iterations: int = field(INT32)


class DescribeUserScramCredentialsResult(Message):
    user: str = field(STRING)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")
    credential_infos: list[CredentialInfo] = field(Array(CredentialInfo))


class DescribeUserScramCredentialsResponse(Message, flexible="0+"):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")
    results: list[DescribeUserScramCredentialsResult] = field(
        Array(DescribeUserScramCredentialsResult)
    )
