"""SASL PLAIN: who gets in, and the texts of Kafka for those who do not."""

from __future__ import annotations

import pytest

from barnabas.errors import SaslAuthenticationFailed
from barnabas.security.acl import Principal
from barnabas.security.plain import PlainClient, PlainServer
from barnabas.security.sasl import InvalidCredentials

USERS = {"alice": "a-secret", "\N{GREEK SMALL LETTER ALPHA}": "\N{EURO SIGN}", "empty": ""}


@pytest.mark.parametrize("user", ["alice", "\N{GREEK SMALL LETTER ALPHA}"])
def test_se_3_a_user_with_the_right_password_gets_in(user: str) -> None:
    server = PlainServer(USERS)
    client = PlainClient(user, USERS[user])
    answer = server.respond(client.first())
    assert client.respond(answer) is None
    assert server.identity is not None
    assert server.identity.principal == Principal("User", user)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0mallory\0a-secret", "Authentication failed: Invalid username or password"),
        (b"\0\0a-secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"\0empty\0", "Authentication failed: password not specified"),
        (b"\0empty\0x", "Authentication failed: Invalid username or password"),
        (
            b"bob\0alice\0a-secret",
            "Authentication failed: Client requested an authorization id that is different from "
            "username",
        ),
    ],
)
def test_se_3_others_are_refused_in_the_words_of_kafka(message: bytes, text: str) -> None:
    server = PlainServer(USERS)
    with pytest.raises(SaslAuthenticationFailed) as error:
        server.respond(message)
    assert str(error.value) == text
    assert server.identity is None


@pytest.mark.parametrize("message", [b"", b"alice", b"\0alice\0a-secret\0", b"\0\xff\0x"])
def test_se_3_a_malformed_message_has_a_reason_for_the_log_alone(message: bytes) -> None:
    with pytest.raises(InvalidCredentials):
        PlainServer(USERS).respond(message)


def test_se_3_an_authorization_id_may_repeat_the_user() -> None:
    server = PlainServer(USERS)
    server.respond(b"alice\0alice\0a-secret")
    assert server.identity is not None


def test_se_3_a_client_takes_no_challenge() -> None:
    with pytest.raises(InvalidCredentials):
        PlainClient("alice", "a-secret").respond(b"more?")
