"""CreateAcls: rules that are in force at once, and rules that cannot be."""

from __future__ import annotations

from collections.abc import Iterator

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
    SyncProducer,
)
from barnabas.errors import (
    ClusterAuthorizationFailed,
    InvalidRequest,
    SecurityDisabled,
    TopicAuthorizationFailed,
)
from tests.kit.broker.acl_brokers import ADMIN, AUTHORIZER, rule


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(config=ADMIN) as running:
        yield running


@pytest.fixture
def admin(broker: Broker) -> Iterator[SyncAdmin]:
    with SyncAdmin(broker.bootstrap_servers) as one:
        yield one


def test_se_4_rules_are_there_once_they_are_created(admin: SyncAdmin) -> None:
    created = [rule("a"), rule("a", Operation.WRITE), rule("pre", Operation.ALL)]
    prefixed = AclBinding(
        Pattern(ResourceType.GROUP, "g-", PatternType.PREFIXED),
        AclEntry("User:*", "10.0.0.1", Operation.READ, PermissionType.DENY),
    )
    admin.create_acls([*created, prefixed])
    admin.create_acls(created[0])  # again
    assert set(admin.describe_acls()) == {*created, prefixed}
    deleted = admin.delete_acls(AclFilter())
    assert set(deleted) == {*created, prefixed} and admin.describe_acls() == []


def test_se_4_a_rule_that_cannot_be_is_refused(admin: SyncAdmin) -> None:
    wrong = rule("other", kind=ResourceType.CLUSTER)
    with pytest.raises(InvalidRequest):
        admin.create_acls([wrong, rule("b")])
    assert admin.delete_acls(AclFilter()) == [rule("b")], "the others are created"


def test_arguments_of_another_kind_are_refused(admin: SyncAdmin) -> None:
    with pytest.raises(TypeError, match="each must be an AclBinding, not str"):
        admin.create_acls(["User:alice"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match=r"User:name"):
        admin.create_acls(rule("t")._replace(entry=rule("t").entry._replace(principal="alice")))


def test_se_4_without_an_authorizer_there_are_no_rules() -> None:
    with Broker() as plain, plain.admin() as admin:
        for ask in (
            lambda: admin.create_acls(rule("a")),
            lambda: admin.describe_acls(),
            lambda: admin.delete_acls(AclFilter()),
        ):
            with pytest.raises(SecurityDisabled, match="No Authorizer is configured"):
                ask()


def test_se_4_who_may_not_alter_the_cluster_creates_none() -> None:
    """And nobody may do anything without a rule."""
    with Broker(config=AUTHORIZER) as closed:
        with closed.admin() as admin:
            for ask in (
                lambda: admin.create_acls(rule("a")),
                lambda: admin.describe_acls(),
                lambda: admin.delete_acls(AclFilter()),
            ):
                with pytest.raises(ClusterAuthorizationFailed):
                    ask()
        with (
            SyncProducer(closed.bootstrap_servers, enable_idempotence=False) as producer,
            pytest.raises(TopicAuthorizationFailed),
        ):
            producer.send("orders", b"one").result(20)
