"""SE-4: an address means the same however it is written."""

from __future__ import annotations

import pytest

from barnabas.security.acl import Operation, ResourceType
from barnabas.security.acl_binding import (
    AclBinding,
    AclEntry,
    AclFilter,
    Pattern,
    PermissionType,
)
from barnabas.security.acl_explanation import Access, explain
from barnabas.security.acl_host import java_host, matches_no_client
from barnabas.security.acl_rules import AclRules

LOCAL = "0:0:0:0:0:0:0:1"
WAYS = ("::1", LOCAL, "[::1]", "0000::0001", "0:0:0:0:0:0:0.0.0.1")
ORDERS = Pattern(ResourceType.TOPIC, "orders")


def rule(host: str, permission: PermissionType = PermissionType.ALLOW) -> AclBinding:
    return AclBinding(ORDERS, AclEntry("User:alice", host, Operation.READ, permission))


@pytest.mark.parametrize(
    ("address", "java"),
    [
        ("127.0.0.1", "127.0.0.1"),
        *((way, LOCAL) for way in WAYS),
        ("2001:DB8::A", "2001:db8:0:0:0:0:0:a"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("*", "*"),
        ("no:address", "no:address"),
    ],
)
def test_se_4_a_host_is_written_as_kafka_compares_it(address: str, java: str) -> None:
    assert java_host(address) == java


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("permission", [PermissionType.ALLOW, PermissionType.DENY])
def test_se_4_rules_filters_and_explanations_know_every_way(
    way: str, permission: PermissionType
) -> None:
    given = rule(way, permission)
    everyone = rule("*")
    others = [everyone] if permission is PermissionType.DENY else []
    rules = AclRules.of([given, *others])
    is_allowed = permission is PermissionType.ALLOW
    topic = (Operation.READ, ResourceType.TOPIC)
    assert rules.allows("User:alice", LOCAL, *topic, "orders") is is_allowed
    assert rules.allows_somewhere("User:alice", LOCAL, *topic) is is_allowed
    for asked in WAYS:
        found = explain(Access("User:alice", Operation.READ, ORDERS, asked), [given, *others])
        assert (found.is_allowed, found.rule) == (is_allowed, given)
        assert list(rules.bindings(AclFilter(host=asked))) == [given]  # as it was written
    assert explain(Access("User:alice", Operation.READ, ORDERS, "::2"), [given]).is_allowed is False


def test_se_4_of_two_ways_to_write_a_rule_the_other_stays_in_force() -> None:
    rules = AclRules.of([rule("::1"), rule(LOCAL)])
    assert len(rules) == 2
    rules.replace(ORDERS, [rule(LOCAL).entry])
    assert rules.allows_somewhere("User:alice", LOCAL, Operation.READ, ResourceType.TOPIC)
    assert rules.allows("User:alice", LOCAL, Operation.READ, ResourceType.TOPIC, "orders")
    rules.replace(ORDERS, [])
    assert not rules.allows_somewhere("User:alice", LOCAL, Operation.READ, ResourceType.TOPIC)


@pytest.mark.parametrize(
    ("hosts", "is_nobody"),
    [
        ("* 10.0.0.7 ::1 [::1] 0:0::1 fe80::1%eth0 ::ffff:10.0.0.7", False),
        ("10.0.0.0/8 10.0.0.* localhost 10.0.0 10.0.0.256 ::1/64 example.com **", True),
    ],
)
def test_se_4_a_host_that_is_no_address_matches_nobody(hosts: str, is_nobody: bool) -> None:
    assert {host: matches_no_client(host) for host in hosts.split()} == dict.fromkeys(
        hosts.split(), is_nobody
    )
