"""AlterUserScramCredentials (key 51): sets and deletes users' SCRAM credentials (KIP-554).

The client sends the salted password, so no broker learns the password itself.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import BYTES, INT8, INT16, INT32, STRING, Array


class ScramCredentialDeletion(Message):
    name: str = field(STRING)
    mechanism: int = field(INT8)  # 1: SCRAM-SHA-256, 2: SCRAM-SHA-512


class ScramCredentialUpsertion(Message):
    name: str = field(STRING)
    mechanism: int = field(INT8)
    iterations: int = field(INT32)
    salt: bytes = field(BYTES)
    salted_password: bytes = field(BYTES)


class AlterUserScramCredentialsRequest(Message, flexible="0+"):
    deletions: list[ScramCredentialDeletion] = field(Array(ScramCredentialDeletion))
    upsertions: list[ScramCredentialUpsertion] = field(Array(ScramCredentialUpsertion))


class AlterUserScramCredentialsResult(Message):
    user: str = field(STRING)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")


class AlterUserScramCredentialsResponse(Message, flexible="0+"):
    throttle_time_ms: int = field(INT32)
    results: list[AlterUserScramCredentialsResult] = field(Array(AlterUserScramCredentialsResult))
