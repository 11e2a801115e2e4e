"""The authorizer by ACLs: its words in the log, its kept decisions, and hosts as Java has them."""

from __future__ import annotations

import logging

import pytest

from barnabas import Broker
from barnabas.broker.security.acl_authorizer import AUDIT_LOG, super_users
from barnabas.client import (
    AclBinding,
    AclEntry,
    AclFilter,
    NewTopic,
    Operation,
    Pattern,
    PermissionType,
    ResourceType,
    SyncAdmin,
    SyncProducer,
)
from barnabas.errors import ConfigError, TopicAuthorizationFailed
from barnabas.protocol.api import FETCH, METADATA
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.kit.broker.produces import produce
from tests.kit.raw_client import RawClient, batch

CONFIG = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:nobody",
    "allow.everyone.if.no.acl.found": True,
}


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
            "resource = Topic:LITERAL:orders for request = Produce with resourceRefCount = 1"
            in caplog.text
        )
        admin.delete_acls(AclFilter())
        producer.send("orders", b"three").result(20)


def test_se_4_what_a_client_did_not_ask_for_is_no_denial_to_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A list without what may not be seen, and operations that are shown: nothing was refused."""
    caplog.set_level(logging.INFO, AUDIT_LOG)
    rules = [
        AclBinding(
            Pattern(ResourceType.TOPIC, name),
            AclEntry("User:ANONYMOUS", "*", operation, permission),
        )
        for name, operation, permission in (
            ("shown", Operation.DESCRIBE, PermissionType.ALLOW),
            ("hidden", Operation.READ, PermissionType.DENY),
        )
    ]
    with (
        Broker(config=CONFIG) as broker,
        SyncAdmin(broker.bootstrap_servers) as admin,
        RawClient(broker.bootstrap_servers) as client,
    ):
        admin.create_topics([NewTopic("shown", 1), NewTopic("hidden", 1)])
        admin.create_acls(rules)
        wanted = MetadataRequest(topics=None, include_topic_authorized_operations=True)
        (topic,) = client.call(METADATA, 12, wanted).topics
        assert (topic.name, topic.topic_authorized_operations) == ("shown", 1 << Operation.DESCRIBE)
        assert "Denied" not in caplog.text
        named = [MetadataRequestTopic(name="hidden")]
        client.call(METADATA, 12, MetadataRequest(topics=named))
        assert caplog.text.count("Denied") == 1


def test_se_4_a_line_of_a_fetch_counts_the_partitions(caplog: pytest.LogCaptureFixture) -> None:
    """One decision, and one line, for all partitions of a topic."""
    caplog.set_level(logging.INFO, AUDIT_LOG)
    rule = AclBinding(
        Pattern(ResourceType.TOPIC, "orders"),
        AclEntry("User:bob", "*", Operation.READ, PermissionType.ALLOW),
    )
    with (
        Broker(config=CONFIG) as broker,
        SyncAdmin(broker.bootstrap_servers) as admin,
        RawClient(broker.bootstrap_servers) as client,
    ):
        admin.create_acls(rule)
        partitions = [FetchPartition(partition=number) for number in range(3)]
        wanted = FetchRequest(topics=[FetchTopic(topic="orders", partitions=partitions)])
        client.call(FETCH, 12, wanted)
    (line,) = (line for line in caplog.text.splitlines() if "Denied" in line)
    assert line.endswith("for request = Fetch with resourceRefCount = 3")


def test_se_4_a_repeated_request_is_denied_as_soon_as_a_rule_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A connection keeps what it was granted, until a rule changes or grants are logged."""
    caplog.set_level(logging.INFO, AUDIT_LOG)
    rule = AclBinding(
        Pattern(ResourceType.TOPIC, "orders"),
        AclEntry("User:ANONYMOUS", "*", Operation.WRITE, PermissionType.DENY),
    )
    with (
        Broker(config=CONFIG) as broker,
        SyncAdmin(broker.bootstrap_servers) as admin,
        RawClient(broker.bootstrap_servers) as client,
    ):
        admin.create_topics([NewTopic("orders", 1)])

        def codes() -> set[int]:
            return {produce(client, "orders", batch(b"x")).error_code for _ in range(4)}

        assert codes() == {0}
        admin.create_acls(rule)
        assert codes() == {TopicAuthorizationFailed.code}
        admin.delete_acls(AclFilter())
        assert codes() == {0}
        caplog.set_level(logging.DEBUG, AUDIT_LOG)
        caplog.clear()
        admin.list_topics()
        assert codes() == {0}
        assert caplog.text.count("is Allowed Operation = Write") == 4


def test_se_4_a_fetch_session_hears_that_it_may_not_read_any_more() -> None:
    """Though nothing was written since: it does not look as if there were just nothing new."""
    rule = AclBinding(
        Pattern(ResourceType.TOPIC, "orders"),
        AclEntry("User:ANONYMOUS", "*", Operation.READ, PermissionType.DENY),
    )
    with (
        Broker(config=CONFIG) as broker,
        SyncAdmin(broker.bootstrap_servers) as admin,
        RawClient(broker.bootstrap_servers) as client,
    ):
        admin.create_topics([NewTopic("orders", 1)])
        wanted = FetchTopic(topic="orders", partitions=[FetchPartition(partition_max_bytes=1000)])
        begin = FetchRequest(session_epoch=0, topics=[wanted])
        session = client.call(FETCH, 12, begin).session_id

        def codes(epoch: int) -> list[int]:
            request = FetchRequest(session_id=session, session_epoch=epoch, topics=[])
            answer = client.call(FETCH, 12, request)
            assert answer.error_code == 0
            return [row.error_code for topic in answer.responses for row in topic.partitions]

        assert codes(1) == []
        admin.create_acls(rule)
        assert codes(2) == codes(3) == [TopicAuthorizationFailed.code]
        admin.delete_acls(AclFilter())
        assert codes(4) == [0]
        assert codes(5) == []
