"""OAUTHBEARER: the first message of RFC 7628, and Kafka's way to refuse a token."""

from __future__ import annotations

import asyncio
import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.errors import SaslAuthenticationFailed
from barnabas.security.acl import Principal
from barnabas.security.oauthbearer import OAuthBearerClient, OAuthBearerServer, TokenRefused
from barnabas.security.sasl import Identity, InvalidCredentials


async def verify(token: str) -> Identity:
    if token != "good-token":
        raise InvalidCredentials("a bad token")
    return Identity(Principal("User", "alice"))


def respond(server: OAuthBearerServer, message: bytes) -> bytes:
    async def whole() -> bytes:
        answer = server.respond(message)
        return await answer if inspect.isawaitable(answer) else answer

    return asyncio.run(whole())


def test_se_3_a_good_token_gets_in() -> None:
    server, client = OAuthBearerServer(verify), OAuthBearerClient("good-token")
    assert client.respond(respond(server, client.first())) is None
    assert server.identity == Identity(Principal("User", "alice"))


def test_se_3_a_bad_token_is_told_first_and_refused_then() -> None:
    server, client = OAuthBearerServer(verify), OAuthBearerClient("bad")
    challenge = respond(server, client.first())
    assert challenge == b'{"status":"invalid_token"}'
    understood = client.respond(challenge)
    assert understood == b"\x01"
    with pytest.raises(TokenRefused, match="invalid_token") as error:
        respond(server, understood)
    assert error.value.reason == "a bad token"
    with pytest.raises(InvalidCredentials):
        respond(server, client.first())  # no second token
    assert server.identity is None


@pytest.mark.parametrize(
    "first",
    [
        b"n,a=alice,\x01auth=Bearer good-token\x01\x01",
        b"n,,\x01auth=bearer  good-token\x01traceId=7\x01\x01",
    ],
)
def test_se_3_other_forms_of_the_first_message_are_taken(first: bytes) -> None:
    server = OAuthBearerServer(verify)
    respond(server, first)
    assert server.identity is not None


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"n,,",
        b"y,,\x01auth=Bearer good-token\x01\x01",
        b"p=tls-unique,,\x01auth=Bearer good-token\x01\x01",
        b"n,,\x01auth=Bearer good-token\x01",
        b"n,,\x01auth=Basic good-token\x01\x01",
        b"n,,\x01auth=Bearer good token\x01\x01",
        b"n,,\x01traceId=7\x01\x01",
        b"n,,\x01auth=Bearer good-token\x01auth=Bearer good-token\x01\x01",
    ],
)
def test_se_3_a_malformed_first_message_is_refused(first: bytes) -> None:
    with pytest.raises(InvalidCredentials):
        respond(OAuthBearerServer(verify), first)


def test_se_3_nobody_logs_in_for_another() -> None:
    with pytest.raises(SaslAuthenticationFailed, match="principal name"):
        respond(OAuthBearerServer(verify), b"n,a=bob,\x01auth=Bearer good-token\x01\x01")


@given(st.binary(max_size=60))
def test_se_3_no_bytes_do_more_than_fail(message: bytes) -> None:
    with pytest.raises(InvalidCredentials):
        respond(OAuthBearerServer(verify), message)


def test_se_3_extensions_go_with_the_token() -> None:
    first = OAuthBearerClient("good-token", {"traceId": "7"}).first()
    assert first == b"n,,\x01auth=Bearer good-token\x01traceId=7\x01\x01"
