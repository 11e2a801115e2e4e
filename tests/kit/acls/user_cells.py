"""The part of the matrix about users that have logged in: rules by principal, and tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from barnabas.protocol import api as apis
from barnabas.security.acl import Operation, ResourceType
from barnabas.security.acl_binding import (
    AclBinding,
    AclEntry,
    Pattern,
    PatternType,
    PermissionType,
)
from tests.kit.acls.cells import Cell, Known
from tests.kit.acls.rules import ADMIN, STRANGER
from tests.kit.raw_client import batch

ROOT = "root"
"""A super user."""
USERS = (ROOT, "alice", "bob", "CN=c,O=d e")
PASSWORD = "planted-secret-of-the-matrix"
_ALICE, _BOB, _ODD = (f"User:{user}" for user in USERS[1:])
_ALLOW, _DENY = PermissionType.ALLOW, PermissionType.DENY

USER_TOPICS = {
    "u.alice": [(_ALICE, "*", Operation.ALL, _ALLOW)],
    "u.odd": [(_ODD, "*", Operation.WRITE, _ALLOW)],
    "u.all-but-bob": [
        ("User:*", "*", Operation.ALL, _ALLOW),
        (_BOB, "*", Operation.ALL, _DENY),
    ],
    "u.elsewhere": [
        (_ALICE, STRANGER, Operation.READ, _ALLOW),
        (_BOB, ADMIN, Operation.READ, _ALLOW),
    ],
    "u.not-from-there": [
        (_ALICE, "*", Operation.ALL, _ALLOW),
        (_ALICE, STRANGER, Operation.WRITE, _DENY),
        ("User:*", STRANGER, Operation.DESCRIBE, _ALLOW),
    ],
    "u.denied-to-everybody": [
        (_ALICE, "*", Operation.ALL, _ALLOW),
        ("User:*", "*", Operation.WRITE, _DENY),
    ],
    "u.another-kind": [("Group:alice", "*", Operation.ALL, _ALLOW)],
    "u.another-case": [("User:Alice", "*", Operation.ALL, _ALLOW)],
    "u.none": [],
}


def user_rules() -> Iterator[AclBinding]:
    for topic, entries in USER_TOPICS.items():
        for entry in entries:
            yield AclBinding(Pattern(ResourceType.TOPIC, topic), AclEntry(*entry))
    of_bob = Pattern(ResourceType.USER, _BOB)
    yield _given(of_bob, _ALICE, Operation.CREATE_TOKENS)
    yield _given(of_bob, _ODD, Operation.DESCRIBE_TOKENS)
    tokens = Pattern(ResourceType.DELEGATION_TOKEN, "*")
    yield _given(tokens, _BOB, Operation.DESCRIBE)
    group = Pattern(ResourceType.GROUP, "u.", PatternType.PREFIXED)
    yield _given(group, _ALICE, Operation.READ)


def _given(pattern: Pattern, principal: str, operation: Operation) -> AclBinding:
    return AclBinding(pattern, AclEntry(principal, "*", operation, _ALLOW))


def user_cells(known: Known) -> Iterator[Cell]:
    for user in USERS:
        for host in (ADMIN, STRANGER):
            for topic in USER_TOPICS:
                yield from _about_topic(user, host, topic)
            group = {"group_id": "u.g", "generation_id": 1, "member_id": "nobody"}
            yield Cell(host, apis.HEARTBEAT, 4, group, f"group of {user}", user)
        yield from _about_tokens(user, known)


def shown_operations(topics: Iterable[str]) -> Iterator[Cell]:
    """What each user may do with topics, which need not exist."""
    for user in USERS:
        for host in (ADMIN, STRANGER):
            values = {
                "topics": [{"name": topic} for topic in topics],
                "allow_auto_topic_creation": False,
                "include_topic_authorized_operations": True,
            }
            yield Cell(host, apis.METADATA, 12, values, f"operations of {user}", user)


def _about_topic(user: str, host: str, topic: str) -> Iterator[Cell]:
    what = f"topic {topic} of {user}"
    by_name = {"topics": [{"name": topic}], "include_topic_authorized_operations": True}
    yield Cell(host, apis.METADATA, 12, by_name, what, user)
    records = {"index": 0, "records": batch(b"x")}
    data = [{"name": topic, "partition_data": [records]}]
    values = {"acks": 1, "timeout_ms": 60_000, "topic_data": data}
    yield Cell(host, apis.PRODUCE, 9, values, what, user)
    wanted = {"partition": 0, "partition_max_bytes": 1000}
    values = {"topics": [{"topic": topic, "partitions": [wanted]}]}
    yield Cell(host, apis.FETCH, 12, values, what, user)


def _about_tokens(user: str, known: Known) -> Iterator[Cell]:
    for owner in USERS:
        what = f"token of {owner}, asked by {user}"
        values = {
            "owner_principal_type": "User",
            "owner_principal_name": owner,
            "max_lifetime_ms": 1_000_000,
        }
        yield Cell(ADMIN, apis.CREATE_DELEGATION_TOKEN, 3, values, what, user)
        renewer = {"principal_type": "Group", "principal_name": "all"}
        values = {**values, "renewers": [renewer]}
        yield Cell(ADMIN, apis.CREATE_DELEGATION_TOKEN, 3, values, what, user)
        owners = [{"principal_type": "User", "principal_name": owner}]
        yield Cell(ADMIN, apis.DESCRIBE_DELEGATION_TOKEN, 3, {"owners": owners}, what, user)
        hmac = known.tokens[owner]
        renewed = {"hmac": hmac, "renew_period_ms": 500_000}
        yield Cell(ADMIN, apis.RENEW_DELEGATION_TOKEN, 2, renewed, what, user)
        later = {"hmac": hmac, "expiry_time_period_ms": 600_000}
        yield Cell(ADMIN, apis.EXPIRE_DELEGATION_TOKEN, 2, later, what, user)
    for version in (1, 3):
        yield Cell(
            ADMIN, apis.DESCRIBE_DELEGATION_TOKEN, version, {"owners": None}, "all tokens", user
        )
    unknown = {"hmac": b"unknown", "renew_period_ms": 1}
    yield Cell(ADMIN, apis.RENEW_DELEGATION_TOKEN, 1, unknown, "no token", user)
