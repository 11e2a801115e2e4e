"""An explanation decides as the brokers do (SE-4)."""

from __future__ import annotations

from itertools import product

import pytest

from barnabas.security.acl import Operation, ResourceType
from barnabas.security.acl_binding import (
    AclBinding,
    AclEntry,
    Pattern,
    PatternType,
    PermissionType,
)
from barnabas.security.acl_explanation import Access, explain
from barnabas.security.acl_rules import AclRules

ORDERS = Pattern(ResourceType.TOPIC, "orders")
RULES = [
    AclBinding(pattern, AclEntry(principal, host, operation, permission))
    for pattern, principal, host, operation, permission in product(
        (
            ORDERS,
            Pattern(ResourceType.TOPIC, "or", PatternType.PREFIXED),
            ORDERS._replace(name="*"),
        ),
        ("User:alice", "User:*"),
        ("10.0.0.7", "*"),
        (Operation.READ, Operation.DESCRIBE, Operation.ALL),
        (PermissionType.ALLOW, PermissionType.DENY),
    )
]
ELSEWHERE = AclBinding(ORDERS._replace(name="orderly"), RULES[0].entry)


@pytest.mark.parametrize("second", RULES[::7])
def test_se_4_an_explanation_decides_as_brokers_do(second: AclBinding) -> None:
    for first, principal, host, operation in product(
        RULES,
        ("User:alice", "User:bob"),
        ("10.0.0.7", "10.0.0.8"),
        (Operation.READ, Operation.DESCRIBE, Operation.WRITE),
    ):
        rules = [ELSEWHERE, first, second]
        found = explain(Access(principal, operation, ORDERS, host), rules)
        allows = AclRules.of(rules).allows(principal, host, operation, ResourceType.TOPIC, "orders")
        assert found.is_allowed is allows
        assert ELSEWHERE not in found.about
        assert found.rule in (None, first, second)
        assert allows <= (found.rule is not None)


def test_se_4_a_resource_without_rules_is_up_to_the_brokers() -> None:
    found = explain(Access("User:alice", Operation.READ, ORDERS), [ELSEWHERE])
    assert found == (None, None, ())
