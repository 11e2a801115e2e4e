"""Rules for the matrix of requests: who the clients are, and what each set of rules gives them.

All clients are User:ANONYMOUS, so a client is known by the loopback address from which it comes.
The sets are about resources of their own, and all rules are there from the beginning: only the
cluster, of which there is one, is given to addresses.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.security.acl import CLUSTER_NAME, Operation, ResourceType
from barnabas.security.acl_binding import (
    AclBinding,
    AclEntry,
    Pattern,
    PatternType,
    PermissionType,
)

ADMIN = "127.0.0.1"
"""May do everything."""
STRANGER = "127.0.0.2"
"""Has no rights on the cluster, nor on resources that no set is about."""

ME, EVERYBODY = "User:ANONYMOUS", "User:*"
ALLOW, DENY = PermissionType.ALLOW, PermissionType.DENY
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
_CLUSTER = Pattern(ResourceType.CLUSTER, CLUSTER_NAME)

_CLUSTER_OPERATIONS = (
    Operation.ALL,
    Operation.CREATE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.CLUSTER_ACTION,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
    Operation.IDEMPOTENT_WRITE,
)
CLUSTER_CLIENTS = {
    each.name: f"127.0.0.{10 + number}" for number, each in enumerate(_CLUSTER_OPERATIONS)
}
"""Addresses by what they may do to the cluster, and nothing else."""
ALL_BUT = {
    each.name: f"127.0.0.{30 + number}" for number, each in enumerate(_CLUSTER_OPERATIONS[1:])
}
"""Addresses that may do all to the cluster but this."""

WILD = "127.0.0.50"
"""May do everything with all topics, groups and transactional ids, by wildcards."""
WILD_BUT_DESCRIBE = "127.0.0.51"
"""The same, and may describe none of them."""

WRITERS = {
    "literal": "127.0.0.60",
    "prefixed": "127.0.0.61",
    "wildcard": "127.0.0.62",
    "by-all": "127.0.0.63",
    "denied-literal": "127.0.0.64",
    "denied-prefixed": "127.0.0.65",
    "denied-wildcard": "127.0.0.66",
    "denied-other": "127.0.0.67",
    "reader": "127.0.0.68",
    "denied-longer": "127.0.0.69",
}
"""Addresses that may write to some topic, or not: idempotent producers (KIP-679)."""

_TOPIC_OPERATIONS = (
    Operation.ALL,
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
_GROUP_OPERATIONS = (Operation.ALL, Operation.READ, Operation.DELETE, Operation.DESCRIBE)
_ID_OPERATIONS = (Operation.ALL, Operation.WRITE, Operation.DESCRIBE)

_SPECIAL = (
    "none",
    "prefixed",
    "short-prefix",
    "denied-by-prefix",
    "everybody",
    "others",
    "nowhere",
)


def _sets(operations: tuple[Operation, ...]) -> tuple[str, ...]:
    allowed = tuple(each.name.lower() for each in operations)
    return (*_SPECIAL, *allowed, *(f"not-{each}" for each in allowed))


TOPIC_SETS = _sets(_TOPIC_OPERATIONS)
GROUP_SETS = _sets(_GROUP_OPERATIONS)
ID_SETS = _sets(_ID_OPERATIONS)

TOPIC_KINDS = ("t", "n", "d", "i", "a")
"""Of topics: there are those of t, d and i; n is never made, a when it is asked for."""
EXISTING_KINDS = ("t", "d", "i")


def name(kind: str, rule_set: str) -> str:
    """A topic, a group (kinds `g`, `k`) or a transactional id (kind `x`) of a set of rules."""
    return f"{kind}.{rule_set}"


def unruled_rules() -> Iterator[AclBinding]:
    """Those for a broker on which everybody may use resources without rules: wildcards would be
    rules for all of them, so the administrator is named with each resource."""
    named = [each for each in all_rules() if each.pattern.name != "*"]
    yield from named
    for pattern in dict.fromkeys(each.pattern for each in named):
        yield _rule(pattern, Operation.ALL, host=ADMIN)


def all_rules() -> list[AclBinding]:
    return [
        *_of_clients(),
        *(
            each
            for kind in TOPIC_KINDS
            for each in _of_sets(ResourceType.TOPIC, kind, _TOPIC_OPERATIONS)
        ),
        *(
            each
            for kind in ("g", "k")
            for each in _of_sets(ResourceType.GROUP, kind, _GROUP_OPERATIONS)
        ),
        *_of_sets(ResourceType.TRANSACTIONAL_ID, "x", _ID_OPERATIONS),
    ]


def _of_clients() -> Iterator[AclBinding]:
    wild = [
        Pattern(each, "*")
        for each in (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
    ]
    for pattern in (_CLUSTER, *wild):
        yield _rule(pattern, Operation.ALL, host=ADMIN)
    for operation, host in CLUSTER_CLIENTS.items():
        yield _rule(_CLUSTER, Operation[operation], host=host)
    for operation, host in ALL_BUT.items():
        yield _rule(_CLUSTER, Operation.ALL, host=host)
        yield _rule(_CLUSTER, Operation[operation], DENY, host=host)
    for pattern in wild:
        for host in (WILD, WILD_BUT_DESCRIBE):
            yield _rule(pattern, Operation.ALL, host=host)
        yield _rule(pattern, Operation.DESCRIBE, DENY, host=WILD_BUT_DESCRIBE)
    yield from _of_writers()


def _of_writers() -> Iterator[AclBinding]:
    def topic(text: str, kind: PatternType = LITERAL) -> Pattern:
        return Pattern(ResourceType.TOPIC, text, kind)

    write, hosts = Operation.WRITE, WRITERS
    yield _rule(topic("w.one"), write, host=hosts["literal"])
    yield _rule(topic("w.", PREFIXED), write, host=hosts["prefixed"])
    yield _rule(topic("*"), write, host=hosts["wildcard"])
    yield _rule(topic("w.one"), Operation.ALL, host=hosts["by-all"])
    for kind in ("denied-literal", "denied-prefixed", "denied-wildcard", "denied-other"):
        yield _rule(topic("w.one"), write, host=hosts[kind])
    yield _rule(topic("w.one"), write, DENY, host=hosts["denied-literal"])
    yield _rule(topic("w.", PREFIXED), write, DENY, host=hosts["denied-prefixed"])
    yield _rule(topic("*"), write, DENY, host=hosts["denied-wildcard"])
    yield _rule(topic("w.other"), write, DENY, host=hosts["denied-other"])
    yield _rule(topic("w.one"), Operation.READ, host=hosts["reader"])
    yield _rule(topic("w.", PREFIXED), write, host=hosts["denied-longer"])
    yield _rule(topic("w.longer", PREFIXED), write, DENY, host=hosts["denied-longer"])


def _of_sets(
    kind: ResourceType, first: str, operations: tuple[Operation, ...]
) -> Iterator[AclBinding]:
    def pattern(rule_set: str, length: int | None = None) -> Pattern:
        text = name(first, rule_set)
        return Pattern(kind, text) if length is None else Pattern(kind, text[:length], PREFIXED)

    everything = Operation.ALL
    yield _rule(pattern("prefixed", 100), everything, host=STRANGER)
    yield _rule(pattern("short-prefix", 4), everything, host=STRANGER)
    yield _rule(pattern("denied-by-prefix"), everything, host=STRANGER)
    yield _rule(pattern("denied-by-prefix", 8), everything, DENY, host=STRANGER)
    yield AclBinding(pattern("everybody"), AclEntry(EVERYBODY, "*", everything, ALLOW))
    yield AclBinding(pattern("others"), AclEntry("User:somebody", "*", everything, ALLOW))
    yield _rule(pattern("nowhere"), everything, host="127.0.0.99")
    for operation in operations:
        given = operation.name.lower()
        yield _rule(pattern(given), operation, host=STRANGER)
        yield _rule(pattern(f"not-{given}"), everything, host=STRANGER)
        yield _rule(pattern(f"not-{given}"), operation, DENY, host=STRANGER)


def _rule(
    pattern: Pattern, operation: Operation, permission: PermissionType = ALLOW, *, host: str
) -> AclBinding:
    return AclBinding(pattern, AclEntry(ME, host, operation, permission))
