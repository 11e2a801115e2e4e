"""Denied access and failed logins at a broker, and the causes reported (IN-1)."""

from __future__ import annotations

import logging
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from barnabas import Broker
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
from barnabas.errors import BarnabasError, SaslAuthenticationFailed, TopicAuthorizationFailed
from barnabas.events import Event
from barnabas.protocol.api import METADATA
from barnabas.protocol.messages.metadata import MetadataRequest
from tests.kit.broker.metric_pages import samples_of
from tests.kit.broker.secured import SECRET, USER, Secured, secured_broker
from tests.kit.broker.tls_broker import options, tls_address
from tests.kit.broker.tls_broker import secured as secured_settings
from tests.kit.certificates import Authority, PemFiles
from tests.kit.processes.reported_events import the_event
from tests.kit.raw_client import RawClient
from tests.kit.waiting import wait_until

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


WRONG_SECRET = "planted-secret-1"
NOBODY = "planted-name-2"


def _fails(secured: Secured, user: str, mechanism: str) -> None:
    """Log in with a wrong password by librdkafka, and then by our own client."""
    said: list[str] = []
    producer = Producer(
        {
            "bootstrap.servers": secured.servers,
            "client.id": "c-client",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": WRONG_SECRET,
            "error_cb": lambda error: said.append(error.name()),
        }
    )
    wait_until(lambda: producer.poll(0.1) >= 0 and "_AUTHENTICATION" in said)
    wrong = {
        "sasl_mechanism": mechanism,
        "sasl_plain_username": user,
        "sasl_plain_password": WRONG_SECRET,
    }
    with pytest.raises(SaslAuthenticationFailed):
        SyncAdmin(secured.servers, client_id="own-client", **{**LOGIN, **wrong}).close()


@pytest.mark.parametrize(
    ("mechanism", "cause"),
    [
        ("PLAIN", "Authentication failed: Invalid username or password"),
        ("SCRAM-SHA-256", "Invalid client credentials"),
    ],
)
def test_in_1_a_failed_login_says_who_failed_and_why(
    secured: Secured,
    admin: SyncAdmin,
    caplog: pytest.LogCaptureFixture,
    mechanism: str,
    cause: str,
) -> None:
    """IN-1: the cause is the same for an unknown user, whose name may be a mistyped password."""
    caplog.set_level(logging.INFO, "barnabas.broker.network")
    for user, shown in ((USER, f"user {USER}, "), (NOBODY, "")):
        _fails(secured, user, mechanism)

        def is_meant(event: Event) -> bool:
            words = f"mechanism {mechanism}, {shown}client-id"  # noqa: B023
            return event.kind == "authentication-failed" and words in event.text

        event = the_event(admin, is_meant)
        assert event.cause == cause
        assert re.fullmatch(
            rf"failed authentication from 127\.0\.0\.1:\d+: {cause} "
            rf"\[listener IN, mechanism {mechanism}, {shown}client-id c-client\]",
            event.text,
        )
        assert event.text in caplog.messages
    counted = samples_of(secured.broker)
    name = "kafka_server_socket_server_metrics_failed_authentication_total"
    assert counted[f'{name}{{listener="IN",networkProcessor="0"}}'] >= 4
    assert counted[f'{name}{{listener="OPEN",networkProcessor="0"}}'] == 0
    said = [caplog.text, *(each.text + each.cause for each in admin.events()[0].events)]
    assert not any(word in text for text in said for word in (WRONG_SECRET, NOBODY))


def test_in_1_a_client_without_sasl_has_failed_to_authenticate(
    secured: Secured, admin: SyncAdmin
) -> None:
    with RawClient(secured.servers) as raw:
        raw.send(METADATA, 9, MetadataRequest())
        assert raw.is_closed_by_peer()
    cause = "request Metadata before the client has authenticated"
    event = the_event(admin, lambda event: event.cause == cause)
    assert event.kind == "authentication-failed" and "[listener IN" in event.text


def test_in_1_a_failed_tls_handshake_says_why(tmp_path: Path) -> None:
    """IN-1: no certificate, an unknown authority, an expired one; a lost connection is none."""
    (tmp_path / "other").mkdir()
    authority = Authority.make(tmp_path)
    strange = Authority.make(tmp_path / "other", "Other CA").client("alice")
    stranger = PemFiles(strange.key, strange.chain, authority.truststore)
    expired = authority.client("alice", expired=True)
    settings = secured_settings(authority.server(), ssl_client_auth="required")
    with Broker(config=settings) as broker, SyncAdmin(broker.bootstrap_servers) as admin:
        address = tls_address(broker)
        socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))).close()
        for given, cause in (
            (options(expired, has_certificate=False), "it presented no certificate, but "),
            (options(stranger), "its certificate was not issued by a trusted authority"),
            (options(expired), "its certificate has expired: renew it"),
        ):
            with pytest.raises(BarnabasError):
                SyncAdmin(address, **given).close()

            def is_meant(event: Event) -> bool:
                return event.cause.startswith(cause)  # noqa: B023

            event = the_event(admin, is_meant)
            assert (event.kind, event.severity) == ("authentication-failed", "WARNING")
            assert re.fullmatch(
                rf"TLS handshake failed from 127\.0\.0\.1:\d+: {re.escape(event.cause)} "
                r"\[listener SSL\]",
                event.text,
            )
        assert all("closed" not in event.cause for event in admin.events()[0].events)
