"""What may come when, in Kafka's words: SaslServerAuthenticator's states without a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from functools import partial
from typing import Any

import pytest

from barnabas.broker.runtime.watched_clock import WatchedClock
from barnabas.broker.security.sasl_session import EnabledMechanism, Reply, SaslSession, Stage
from barnabas.errors import IllegalSaslState, SaslAuthenticationFailed, UnsupportedSaslMechanism
from barnabas.security.acl import Principal
from barnabas.security.plain import PlainServer
from barnabas.security.sasl import Identity
from tests.kit.set_clock import SetClock

USERS = {"alice": "a", "bob": "b"}
ALICE, BOB = b"\0alice\0a", b"\0bob\0b"


class OneToken:
    """A mechanism whose only message is a user's name; its credentials end."""

    def __init__(self, expires_at_ms: int) -> None:
        self._expires_at_ms = expires_at_ms
        self.identity: Identity | None = None
        self.known_user = ""

    def respond(self, message: bytes) -> Awaitable[bytes]:
        async def answer() -> bytes:
            if message == b"mallory":
                raise SaslAuthenticationFailed("not you")
            self.identity = Identity(Principal("User", message.decode()), self._expires_at_ms)
            return b""

        return answer()


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


def session(clock: SetClock, max_reauth_ms: int = 0) -> SaslSession:
    plain = EnabledMechanism(partial(PlainServer, USERS), max_reauth_ms)
    expires_at_ms = clock.wall_ms() + 9_000
    token = EnabledMechanism(partial(OneToken, expires_at_ms), max_reauth_ms)
    return SaslSession({"PLAIN": plain, "TOKEN": token}, WatchedClock(clock))


def said(reply: Reply | Awaitable[Reply]) -> Any:
    """The reply's answer."""
    assert isinstance(reply, Reply)
    return reply.answer


def opened(clock: SetClock, max_reauth_ms: int = 0) -> SaslSession:
    one = session(clock, max_reauth_ms)
    one.handshake("PLAIN", 1)
    assert said(one.authenticate(ALICE)).error_code == 0
    return one


def test_se_3_versions_handshake_and_log_in(clock: SetClock) -> None:
    one = session(clock)
    one.on_api_versions()
    hello = said(one.handshake("PLAIN", 1))
    assert (hello.error_code, hello.mechanisms) == (0, ["PLAIN", "TOKEN"])
    answer = said(one.authenticate(ALICE))
    assert (answer.error_code, answer.session_lifetime_ms) == (0, 0)
    assert one.stage is Stage.OPEN
    assert one.identity == Identity(Principal("User", "alice"))
    assert one.expires_at_ms is None


def test_se_3_after_handshake_0_messages_come_without_a_header(clock: SetClock) -> None:
    one = session(clock)
    one.handshake("PLAIN", 0)
    assert one.takes_raw_messages
    assert said(one.authenticate(ALICE)) == b""
    assert one.stage is Stage.OPEN
    refused = session(clock)
    refused.handshake("PLAIN", 0)
    reply = refused.authenticate(b"\0alice\0wrong")
    assert isinstance(reply, Reply)
    assert (reply.answer, bool(reply.refusal)) == (b"", True)


def test_se_3_versions_may_be_asked_for_once_and_before_the_handshake(clock: SetClock) -> None:
    one = session(clock)
    one.on_api_versions()
    with pytest.raises(IllegalSaslState, match="ApiVersions"):
        one.on_api_versions()
    other = session(clock)
    other.handshake("PLAIN", 1)
    with pytest.raises(IllegalSaslState, match="authenticate"):
        other.on_api_versions()


def test_se_3_another_mechanism_is_refused_with_the_list_of_those_enabled(clock: SetClock) -> None:
    one = session(clock)
    reply = one.handshake("GSSAPI", 1)
    assert said(reply).error_code == UnsupportedSaslMechanism.code
    assert said(reply).mechanisms == ["PLAIN", "TOKEN"]
    assert "GSSAPI" in reply.refusal
    with pytest.raises(IllegalSaslState):
        one.handshake("PLAIN", 1)
    with pytest.raises(IllegalSaslState):
        one.authenticate(ALICE)


def test_se_3_no_message_before_the_handshake_and_no_second_one_in_it(clock: SetClock) -> None:
    one = session(clock)
    with pytest.raises(IllegalSaslState):
        one.authenticate(ALICE)
    one.handshake("PLAIN", 1)
    with pytest.raises(IllegalSaslState, match="SASL_HANDSHAKE"):
        one.handshake("PLAIN", 1)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (
            b"nonsense",
            "Authentication failed during authentication due to invalid credentials with SASL "
            "mechanism PLAIN",
        ),
    ],
)
def test_se_3_a_refusal_has_the_text_of_kafka(clock: SetClock, message: bytes, text: str) -> None:
    one = session(clock)
    one.handshake("PLAIN", 1)
    reply = one.authenticate(message)
    assert said(reply).error_code == SaslAuthenticationFailed.code
    assert said(reply).error_message == text
    assert one.stage is Stage.REFUSED
    assert one.identity is None
    with pytest.raises(IllegalSaslState):
        one.authenticate(ALICE)


def test_se_3_a_session_lasts_as_long_as_the_shorter_of_two_limits(clock: SetClock) -> None:
    one = opened(clock, 5_000)
    assert one.expires_at_ms == clock.monotonic_ms() + 5_000
    assert not one.is_over
    clock.at_ms += 5_000
    assert one.is_over


def with_token(one: SaslSession, name: bytes) -> Any:
    """The answer to a message of the mechanism that waits."""

    async def log_in() -> Any:
        one.handshake("TOKEN", 1)
        reply = one.authenticate(name)
        assert not isinstance(reply, Reply)
        return (await reply).answer

    return asyncio.run(log_in())


@pytest.mark.parametrize(("max_reauth_ms", "lifetime_ms"), [(0, 9_000), (5_000, 5_000)])
def test_se_3_credentials_that_end_bound_the_session(
    clock: SetClock, max_reauth_ms: int, lifetime_ms: int
) -> None:
    one = session(clock, max_reauth_ms)
    answer = with_token(one, b"alice")
    assert answer.session_lifetime_ms == lifetime_ms
    assert one.expires_at_ms == clock.monotonic_ms() + lifetime_ms


def test_se_3_a_mechanism_that_waits_may_refuse(clock: SetClock) -> None:
    answer = with_token(session(clock), b"mallory")
    assert answer.error_message == "not you"


def test_se_3_a_session_that_never_ends_has_no_second_log_in(clock: SetClock) -> None:
    assert not opened(clock).try_begin_again()


def test_se_3_a_session_is_renewed_at_most_once_a_second(clock: SetClock) -> None:
    one = opened(clock, 5_000)
    for _ in range(2):
        assert one.try_begin_again()
        one.handshake("PLAIN", 1)
        assert said(one.authenticate(ALICE)).session_lifetime_ms == 5_000
        assert not one.try_begin_again()
        clock.at_ms += 1_000
    assert one.expires_at_ms == clock.monotonic_ms() + 4_000


def test_se_3_the_user_must_not_change(clock: SetClock) -> None:
    one = opened(clock, 5_000)
    assert one.try_begin_again()
    one.handshake("PLAIN", 1)
    answer = said(one.authenticate(BOB))
    assert answer.error_message == (
        "Cannot change principals during re-authentication from User.alice: User.bob"
    )
    assert one.stage is Stage.REFUSED
    assert one.identity == Identity(Principal("User", "alice"))


def test_se_3_the_mechanism_must_not_change(clock: SetClock) -> None:
    one = opened(clock, 5_000)
    assert one.try_begin_again()
    assert said(one.handshake("TOKEN", 1)).error_code == 0
    assert said(one.authenticate(b"alice")).error_message == (
        "SASL mechanism 'TOKEN' requested by client is not supported for re-authentication of "
        "mechanism 'PLAIN'"
    )


def test_se_3_a_failed_renewal_says_so(clock: SetClock) -> None:
    one = opened(clock, 5_000)
    assert one.try_begin_again()
    one.handshake("PLAIN", 1)
    assert "during re-authentication" in said(one.authenticate(b"x")).error_message


@pytest.mark.parametrize("name", ["al\x1bice", "alice\nPrincipal = User:admin", "a\u202ec"])
def test_se_3_a_user_with_control_characters_is_refused(clock: SetClock, name: str) -> None:
    """A provider of tokens may sign any name; it would forge lines of the log."""
    one = session(clock)
    one.handshake("TOKEN", 1)
    later = one.authenticate(name.encode())

    async def reply() -> Reply:
        return await later  # type: ignore[misc]

    answer: Any = asyncio.run(reply()).answer
    assert answer.error_code == SaslAuthenticationFailed.code
    assert one.stage is Stage.REFUSED
    assert one.identity is None
