"""A listener with SASL, as raw frames meet it: nothing passes before the log-in."""

from __future__ import annotations

import logging
import struct
import time
from collections.abc import Iterator

import pytest

from barnabas import Broker
from barnabas.errors import IllegalSaslState, SaslAuthenticationFailed
from barnabas.protocol.api import (
    API_VERSIONS,
    APIS,
    METADATA,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    Api,
)
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.kit.raw_client import RawClient

JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'user_alice="a-secret" user_bob="b-secret";'
)
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS,
    "connection.failed.authentication.delay.ms": "0",
    "sasl.server.max.receive.size": "4096",
}
ALICE = SaslAuthenticateRequest(auth_bytes=b"\0alice\0a-secret")


@pytest.fixture(scope="module")
def secured() -> Iterator[Broker]:
    with Broker(config=SETTINGS) as broker:
        yield broker


@pytest.fixture
def raw(secured: Broker) -> Iterator[RawClient]:
    with RawClient(secured.bootstrap_servers) as client:
        yield client


def shake_hands(client: RawClient, mechanism: str = "PLAIN", version: int = 1) -> None:
    answer = client.call(SASL_HANDSHAKE, version, SaslHandshakeRequest(mechanism=mechanism))
    assert (answer.error_code, answer.mechanisms) == (0, ["PLAIN", "SCRAM-SHA-256"])


def serves(client: RawClient) -> bool:
    """Whether it answers a request of somebody who has logged in."""
    return bool(client.call(METADATA, 12, MetadataRequest(topics=[])).brokers)


@pytest.mark.parametrize("version", range(SASL_AUTHENTICATE.max_version + 1))
def test_se_3_a_client_that_logs_in_is_served(raw: RawClient, version: int) -> None:
    assert raw.call(API_VERSIONS, 0, ApiVersionsRequest()).error_code == 0
    shake_hands(raw)
    assert raw.call(SASL_AUTHENTICATE, version, ALICE).error_code == 0
    assert serves(raw)
    assert raw.call(API_VERSIONS, 0, ApiVersionsRequest()).error_code == 0


def test_se_3_messages_without_a_header_log_in_too(raw: RawClient) -> None:
    shake_hands(raw, version=0)
    raw.send_bytes(struct.pack(">i", 15) + b"\0alice\0a-secret")
    assert raw.receive_frame() == b""
    assert serves(raw)


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
@pytest.mark.parametrize("before", ["nothing", "handshake"])
def test_se_3_no_request_passes_before_the_log_in(
    secured: Broker, raw: RawClient, api: Api, before: str
) -> None:
    if api in (SASL_HANDSHAKE, SASL_AUTHENTICATE, API_VERSIONS):
        return
    if before == "handshake":
        shake_hands(raw)
    body = struct.pack(">hhih", api.key, api.max_version, 1, -1) + bytes(40)
    raw.send_bytes(struct.pack(">i", len(body)) + body)
    assert raw.is_closed_by_peer()


@pytest.mark.parametrize("body", [b"", b"\0", b"\0\x11", bytes(7), b"\xff" * 40])
def test_se_3_what_is_no_request_closes_the_connection(raw: RawClient, body: bytes) -> None:
    raw.send_bytes(struct.pack(">i", len(body)) + body)
    assert raw.is_closed_by_peer()


def test_se_3_a_message_that_is_too_long_is_not_read(raw: RawClient) -> None:
    """`sasl.server.max.receive.size` holds until the log-in, and no longer."""
    raw.send_bytes(struct.pack(">i", 4097))
    assert raw.is_closed_by_peer()


def test_se_3_who_has_logged_in_may_send_long_requests(raw: RawClient) -> None:
    shake_hands(raw)
    raw.call(SASL_AUTHENTICATE, 2, ALICE)
    raw.send_bytes(struct.pack(">i", 100_000))
    assert not raw.is_closed_by_peer(0.2)


def test_se_3_a_second_log_in_is_an_error(raw: RawClient) -> None:
    shake_hands(raw)
    raw.call(SASL_AUTHENTICATE, 2, ALICE)
    hello = raw.call(SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism="PLAIN"))
    assert (hello.error_code, hello.mechanisms) == (IllegalSaslState.code, [])
    assert raw.call(SASL_AUTHENTICATE, 2, ALICE).error_code == IllegalSaslState.code
    assert serves(raw)


def test_se_3_a_refused_client_is_told_and_cut_off(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "barnabas.broker")
    with Broker(config=SETTINGS) as broker, RawClient(broker.bootstrap_servers) as raw:
        shake_hands(raw)
        wrong = SaslAuthenticateRequest(auth_bytes=b"\0alice\0planted-secret-9")
        answer = raw.call(SASL_AUTHENTICATE, 2, wrong)
        assert answer.error_code == SaslAuthenticationFailed.code
        assert answer.error_message == "Authentication failed: Invalid username or password"
        assert raw.is_closed_by_peer()
    assert "failed authentication from 127.0.0.1" in caplog.text
    assert "planted-secret-9" not in caplog.text


def test_se_3_an_unknown_mechanism_is_refused_and_the_connection_closed(raw: RawClient) -> None:
    answer = raw.call(SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism="GSSAPI"))
    assert (answer.error_code, answer.mechanisms) == (33, ["PLAIN", "SCRAM-SHA-256"])
    assert raw.is_closed_by_peer()


def test_se_3_an_unknown_scram_user_gets_a_challenge_and_the_same_refusal(raw: RawClient) -> None:
    shake_hands(raw, "SCRAM-SHA-256")
    first = SaslAuthenticateRequest(auth_bytes=b"n,,n=mallory,r=abc")
    challenge = bytes(raw.call(SASL_AUTHENTICATE, 2, first).auth_bytes)
    assert challenge.startswith(b"r=abc")
    nonce = challenge.split(b",")[0]
    proof = b"A" * 43 + b"="
    final = SaslAuthenticateRequest(auth_bytes=b"c=biws," + nonce + b",p=" + proof)
    answer = raw.call(SASL_AUTHENTICATE, 2, final)
    assert answer.error_message == (
        "Authentication failed during authentication due to invalid credentials with SASL "
        "mechanism SCRAM-SHA-256"
    )
    assert raw.is_closed_by_peer()


def test_se_3_a_refusal_waits_and_nobody_else_does() -> None:
    delayed = {**SETTINGS, "connection.failed.authentication.delay.ms": "700"}
    with (
        Broker(config=delayed) as broker,
        RawClient(broker.bootstrap_servers) as bad,
        RawClient(broker.bootstrap_servers) as good,
    ):
        shake_hands(bad)
        began = time.monotonic()
        bad.send(SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong"))
        bad.send(METADATA, 12, MetadataRequest(topics=[]))  # is not read any more
        shake_hands(good)
        assert good.call(SASL_AUTHENTICATE, 2, ALICE).error_code == 0
        assert serves(good)
        assert bad.receive(SASL_AUTHENTICATE, 2)[1].error_code == SaslAuthenticationFailed.code
        assert time.monotonic() - began >= 0.7
        assert bad.is_closed_by_peer()


@pytest.fixture(scope="module")
def renewing() -> Iterator[Broker]:
    with Broker(config={**SETTINGS, "connections.max.reauth.ms": "1500"}) as broker:
        yield broker


def test_se_3_a_session_ends_at_its_next_request(renewing: Broker) -> None:
    with RawClient(renewing.bootstrap_servers) as raw:
        shake_hands(raw)
        assert raw.call(SASL_AUTHENTICATE, 2, ALICE).session_lifetime_ms == 1500
        assert serves(raw)
        time.sleep(1.6)
        assert not raw.is_closed_by_peer(0.05)
        raw.send(METADATA, 12, MetadataRequest(topics=[]))
        assert raw.is_closed_by_peer()


def test_se_3_a_session_that_is_renewed_goes_on(renewing: Broker) -> None:
    """Even when it has expired, and as often as the client likes, but for a second's pause."""
    with RawClient(renewing.bootstrap_servers) as raw:
        shake_hands(raw)
        raw.call(SASL_AUTHENTICATE, 2, ALICE)
        time.sleep(1.6)
        shake_hands(raw)
        raw.send(SASL_AUTHENTICATE, 2, ALICE)
        raw.send(METADATA, 12, MetadataRequest(topics=[]))
        assert raw.receive(SASL_AUTHENTICATE, 2)[1].session_lifetime_ms == 1500
        assert raw.receive(METADATA, 12)[1].brokers
        hello = raw.call(SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism="PLAIN"))
        assert hello.error_code == IllegalSaslState.code  # too soon
        assert serves(raw)


def test_se_3_nothing_else_may_come_while_a_session_is_renewed(renewing: Broker) -> None:
    with RawClient(renewing.bootstrap_servers) as raw:
        shake_hands(raw)
        raw.call(SASL_AUTHENTICATE, 2, ALICE)
        shake_hands(raw)
        raw.send(METADATA, 12, MetadataRequest(topics=[]))
        assert raw.is_closed_by_peer()


def test_se_3_the_user_must_not_change(renewing: Broker) -> None:
    with RawClient(renewing.bootstrap_servers) as raw:
        shake_hands(raw)
        raw.call(SASL_AUTHENTICATE, 2, ALICE)
        shake_hands(raw)
        bob = SaslAuthenticateRequest(auth_bytes=b"\0bob\0b-secret")
        answer = raw.call(SASL_AUTHENTICATE, 2, bob)
        assert "Cannot change principals" in answer.error_message
        assert raw.is_closed_by_peer()
