"""Requests of the matrix about users, tokens, quotas and logging in, on an open listener."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from barnabas.protocol import api as apis
from barnabas.protocol.api import Api

Values = dict[str, Any]

NO_SUCH_USER = "nobody"


ALL_USERS: tuple[Api, int, Values] = (apis.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, {"users": None})
"""For those who may ask: Kafka 3.9 answers the others never."""


def security_requests() -> Iterator[tuple[Api, int, Values]]:
    yield apis.CONTROLLED_SHUTDOWN, 3, {"broker_id": 1, "broker_epoch": 0}
    entity = {"entity_type": "client-id", "entity_name": "unused"}
    change = {"entity": [entity], "ops": [{"key": "request_percentage", "value": 50.0}]}
    for version in (0, 1):
        yield apis.ALTER_CLIENT_QUOTAS, version, {"entries": [change], "validate_only": True}
    yield from _users()
    yield from _tokens()
    for version in (0, 3, 4):
        software = {"client_software_name": "matrix", "client_software_version": "1"}
        yield apis.API_VERSIONS, version, software if version > 2 else {}
    yield apis.SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"}
    for version in (0, 2):
        yield apis.SASL_AUTHENTICATE, version, {"auth_bytes": b"\0somebody\0something"}


def _users() -> Iterator[tuple[Api, int, Values]]:
    users = [{"name": NO_SUCH_USER}, {"name": "another"}]
    yield apis.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, {"users": users}
    gone = {"name": NO_SUCH_USER, "mechanism": 1}
    new = {
        "name": NO_SUCH_USER,
        "mechanism": 1,
        "iterations": 1,  # too few
        "salt": b"salt",
        "salted_password": b"password",
    }
    yield apis.ALTER_USER_SCRAM_CREDENTIALS, 0, {"deletions": [gone], "upsertions": []}
    yield apis.ALTER_USER_SCRAM_CREDENTIALS, 0, {"deletions": [], "upsertions": [new]}


def _tokens() -> Iterator[tuple[Api, int, Values]]:
    """Which are for those that have logged in."""
    for version in (1, 3):
        yield apis.CREATE_DELEGATION_TOKEN, version, {"max_lifetime_ms": -1}
        yield apis.DESCRIBE_DELEGATION_TOKEN, version, {"owners": None}
    yield apis.RENEW_DELEGATION_TOKEN, 2, {"hmac": b"unknown", "renew_period_ms": 1000}
    yield apis.EXPIRE_DELEGATION_TOKEN, 2, {"hmac": b"unknown", "expiry_time_period_ms": 1000}
