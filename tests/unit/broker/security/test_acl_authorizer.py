"""The authorizer by ACLs: its words in the log, its kept decisions, and hosts as Java has them."""

from __future__ import annotations

import logging

import pytest

from barnabas import Broker
from barnabas.broker.security.acl_authorizer import AUDIT_LOG, java_host, super_users
from barnabas.client import (
    AclBinding,
    AclEntry,
    AclFilter,
    Operation,
    Pattern,
    PermissionType,
    ResourceType,
    SyncAdmin,
    SyncProducer,
)
from barnabas.errors import ConfigError, TopicAuthorizationFailed

CONFIG = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:nobody",
    "allow.everyone.if.no.acl.found": True,
}


@pytest.mark.parametrize(
    ("address", "java"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
    ],
)
def test_se_4_a_host_is_written_as_kafka_compares_it(address: str, java: str) -> None:
    assert java_host(address) == java


def test_super_users_are_principals() -> None:
    assert super_users("User:a; User:CN=b,O=c ;") == ["User:a", "User:CN=b,O=c"]
    with pytest.raises(ConfigError, match=r"super\.users: 'a' is not a principal"):
        super_users("a")


def test_se_4_a_decision_holds_until_a_rule_changes(caplog: pytest.LogCaptureFixture) -> None:
    """And the log has each denial in Kafka's words."""
    caplog.set_level(logging.INFO, AUDIT_LOG)
    rule = AclBinding(
        Pattern(ResourceType.TOPIC, "orders"),
        AclEntry("User:ANONYMOUS", "127.0.0.1", Operation.WRITE, PermissionType.DENY),
    )
    with (
        Broker(config=CONFIG, production_defaults=True) as broker,
        SyncAdmin(broker.bootstrap_servers) as admin,
        SyncProducer(broker.bootstrap_servers) as producer,
    ):
        producer.send("orders", b"one").result(20)
        admin.create_acls(rule)
        with pytest.raises(TopicAuthorizationFailed):
            producer.send("orders", b"two").result(20)
        assert (
            "Principal = User:ANONYMOUS is Denied Operation = Write from host = 127.0.0.1 on "
            "resource = Topic:LITERAL:orders for request = Produce" in caplog.text
        )
        admin.delete_acls(AclFilter())
        producer.send("orders", b"three").result(20)
