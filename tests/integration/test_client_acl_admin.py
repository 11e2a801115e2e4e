"""The rules of access control through the admin client (SE-4), at a broker that obeys them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from barnabas import Broker
from barnabas.client import (
    AclBinding,
    AclEntry,
    AclFilter,
    Operation,
    Pattern,
    PatternType,
    PermissionType,
    ResourceType,
    SyncAdmin,
)
from barnabas.errors import InvalidRequest, SecurityDisabled

pytestmark = pytest.mark.secured

ALICE = AclEntry("User:alice", "*", Operation.READ, PermissionType.ALLOW)
ORDERS = Pattern(ResourceType.TOPIC, "orders")
PREFIX = Pattern(ResourceType.TOPIC, "ord", PatternType.PREFIXED)
READS = AclBinding(ORDERS, ALICE)
WRITES = AclBinding(PREFIX, ALICE._replace(operation=Operation.WRITE))


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    config = {
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with Broker(config=config) as running:
        yield running


@pytest.fixture
def admin(broker: Broker) -> Iterator[SyncAdmin]:
    with SyncAdmin(broker.bootstrap_servers) as one:
        yield one
        one.delete_acls(AclFilter())


def test_se_4_rules_are_created_described_and_deleted(admin: SyncAdmin) -> None:
    assert admin.describe_acls() == []
    admin.create_acls([READS, WRITES])
    admin.create_acls(READS)  # again
    assert set(admin.describe_acls()) == {READS, WRITES}
    about = AclFilter(ResourceType.TOPIC, "orders")
    assert admin.describe_acls(about) == [READS]
    about = about._replace(pattern_type=PatternType.MATCH)
    assert set(admin.describe_acls(about)) == {READS, WRITES}
    assert admin.delete_acls([AclFilter(operation=Operation.WRITE), about]) in (
        [WRITES, READS],
        [READS, WRITES],
    )
    assert admin.describe_acls() == admin.delete_acls(about) == []
    admin.create_acls([])
    assert admin.delete_acls([]) == []


def test_se_4_a_rule_that_cannot_be_is_refused_and_the_others_are_added(admin: SyncAdmin) -> None:
    impossible = AclBinding(Pattern(ResourceType.CLUSTER, "another"), ALICE)
    with pytest.raises(InvalidRequest, match="kafka-cluster"):
        admin.create_acls([impossible, READS])
    assert admin.describe_acls() == [READS]


def test_se_4_without_an_authorizer_there_are_no_rules() -> None:
    with Broker() as open_broker, SyncAdmin(open_broker.bootstrap_servers) as admin:
        for call in (
            lambda: admin.create_acls(READS),
            admin.describe_acls,
            lambda: admin.delete_acls(AclFilter()),
        ):
            with pytest.raises(SecurityDisabled, match="No Authorizer is configured"):
                call()


@pytest.mark.parametrize(
    ("method", "given", "said"),
    [
        ("create_acls", "User:alice", "bindings: must be a sequence, not str"),
        ("create_acls", [ALICE], "bindings: each must be an AclBinding, not AclEntry"),
        ("create_acls", AclBinding("orders", ALICE), "an AclBinding must have a Pattern"),  # type: ignore[arg-type]
        (
            "create_acls",
            AclBinding(ORDERS, ALICE._replace(operation=3)),  # type: ignore[arg-type]
            "bindings: 3 must be one of Operation",
        ),
        (
            "create_acls",
            AclBinding(ORDERS, ALICE._replace(operation=Operation.ANY)),
            "Operation.ANY is for filters, not for rules",
        ),
        (
            "create_acls",
            AclBinding(ORDERS._replace(pattern_type=PatternType.MATCH), ALICE),
            "PatternType.MATCH is for filters",
        ),
        (
            "create_acls",
            AclBinding(ORDERS, ALICE._replace(principal="alice")),
            "'alice' is not a principal: write it as User:name",
        ),
        ("create_acls", AclBinding(ORDERS, ALICE._replace(host="")), "must name its resource"),
        ("describe_acls", READS, "wanted: must be an AclFilter, not AclBinding"),
        ("describe_acls", AclFilter(name=3), "wanted: must be text, not int"),  # type: ignore[arg-type]
        ("delete_acls", [READS], "filters: must be an AclFilter, not AclBinding"),
        (
            "delete_acls",
            AclFilter(permission=Operation.ALL),  # type: ignore[arg-type]
            "must be one of PermissionType",
        ),
    ],
)
def test_se_4_arguments_of_another_type_are_refused(
    method: str, given: Any, said: str, admin: SyncAdmin
) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        getattr(admin, method)(given)
