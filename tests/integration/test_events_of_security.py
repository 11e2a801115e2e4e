"""Denied access at a broker with an authorizer, and the causes reported (IN-1)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.client import (
    AclBinding,
    AclEntry,
    NewTopic,
    Operation,
    Pattern,
    PermissionType,
    ResourceType,
    SyncAdmin,
    SyncProducer,
)
from barnabas.errors import TopicAuthorizationFailed
from barnabas.events import Event
from tests.kit.broker.secured import SECRET, USER, Secured, secured_broker
from tests.kit.processes.reported_events import the_event

pytestmark = pytest.mark.secured

AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
LOGIN: dict[str, Any] = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "PLAIN",
    "sasl_plain_username": USER,
    "sasl_plain_password": SECRET,
}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_broker(
        tmp_path_factory.mktemp("events"),
        authorizer_class_name=AUTHORIZER,
        super_users="User:ANONYMOUS",
    ) as secured:
        yield secured


@pytest.fixture
def admin(secured: Secured) -> Iterator[SyncAdmin]:
    with SyncAdmin(secured.open_servers) as admin:
        yield admin


def _rule(name: str, permission: PermissionType, operation: Operation) -> AclBinding:
    return AclBinding(
        Pattern(ResourceType.TOPIC, name), AclEntry(f"User:{USER}", "*", operation, permission)
    )


def _denied(secured: Secured, topic: str) -> None:
    with (
        SyncProducer(secured.servers, enable_idempotence=False, **LOGIN) as producer,
        pytest.raises(TopicAuthorizationFailed),
    ):
        producer.send(topic, b"secret value").result(60)


def test_in_1_a_denial_says_which_rule_decided(
    secured: Secured, admin: SyncAdmin, caplog: pytest.LogCaptureFixture
) -> None:
    """IN-1: a rule that denies, rules that do not allow, and no rule at all."""
    caplog.set_level(logging.INFO, "barnabas.broker.security")
    admin.create_topics([NewTopic("forbidden"), NewTopic("read-only"), NewTopic("unruled")])
    admin.create_acls(
        [
            _rule("forbidden", PermissionType.ALLOW, Operation.DESCRIBE),
            _rule("forbidden", PermissionType.DENY, Operation.WRITE),
            _rule("read-only", PermissionType.ALLOW, Operation.READ),
        ]
    )
    for topic, operation, api, cause in (
        ("forbidden", "Write", "Produce", "rule: deny User:alice Write on topic forbidden"),
        ("read-only", "Write", "Produce", "the only rule about topic read-only does not allow it"),
        ("unruled", "Describe", "Metadata", "no rule is about topic unruled"),
    ):
        _denied(secured, topic)

        def is_meant(event: Event) -> bool:
            return event.kind == "access-denied" and event.topic == topic  # noqa: B023

        event = the_event(admin, is_meant)
        assert event.cause.startswith(cause)
        assert event.text == (
            f"User:{USER} is denied {operation} on topic {topic} from host 127.0.0.1 for {api}: "
            f"{event.cause}"
        )
        assert event.text in caplog.messages
    _denied(secured, "forbidden")
    reported = [
        each
        for each in admin.events()[0].events
        if each.kind == "access-denied" and each.topic == "forbidden"
    ]
    assert len(reported) == 1
    for each in admin.events()[0].events:
        assert SECRET not in each.text + each.cause
