"""Our client at a listener with SASL: in, refused at once, and logged in again in time."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas import Broker
from barnabas.client import Admin, Consumer, Producer, SyncAdmin, SyncProducer
from barnabas.client.errors import Unreachable
from barnabas.errors import IllegalSaslState, SaslAuthenticationFailed, UnsupportedSaslMechanism
from barnabas.types import TopicPartition
from tests.kit.broker.secured import options, secured_broker, token

JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'user_alice="planted-secret-4";'
)
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS,
}
ALICE: dict[str, Any] = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "PLAIN",
    "sasl_plain_username": "alice",
    "sasl_plain_password": "planted-secret-4",
}


@pytest.fixture(scope="module")
def secured() -> Iterator[Broker]:
    with Broker(config=SETTINGS) as broker:
        yield broker


@pytest.mark.thorough
def test_se_3_clients_log_in_again_before_their_sessions_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """KIP-368: requests are held back meanwhile; the broker has nothing to complain of."""
    given = options("SCRAM-SHA-512")

    async def ask(admin: Admin, until: float) -> None:
        while time.monotonic() < until:
            await admin.list_topics()

    async def whole(servers: str) -> None:
        async with (
            Producer(servers, linger_ms=0, **given) as producer,
            Consumer(servers, auto_offset_reset="earliest", **given) as consumer,
            Admin(servers, **given) as admin,
        ):
            until = time.monotonic() + 2.5
            asking = [asyncio.ensure_future(ask(admin, until)) for _ in range(8)]
            count = 0
            while time.monotonic() < until:
                sent = [producer.send("renewed", b"x") for _ in range(20)]
                await asyncio.gather(*[await each for each in sent])
                count += len(sent)
            await asyncio.gather(*asking)
            consumer.assign([TopicPartition("renewed", 0)])
            seen = 0
            while seen < count:
                seen += len(await consumer.poll(1000))
            assert seen == count

    with secured_broker(tmp_path, connections_max_reauth_ms="1200") as one:
        asyncio.run(whole(one.servers))
    assert "closed" not in caplog.text


@pytest.mark.parametrize(
    ("changed", "error", "text"),
    [
        (
            {"sasl_plain_password": "planted-secret-5"},
            SaslAuthenticationFailed,
            "Authentication failed: Invalid username or password",
        ),
        (
            {"sasl_mechanism": "SCRAM-SHA-256"},
            SaslAuthenticationFailed,
            "invalid credentials with SASL mechanism SCRAM-SHA-256",
        ),
        (
            {"sasl_mechanism": "SCRAM-SHA-512"},
            UnsupportedSaslMechanism,
            "does not offer SCRAM-SHA-512; set sasl.mechanism to one of PLAIN, SCRAM-SHA-256",
        ),
    ],
)
def test_se_3_a_refusal_is_final_and_has_the_brokers_words(
    secured: Broker,
    changed: dict[str, str],
    error: type[Exception],
    text: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(error, match=text) as raised:
        SyncProducer(secured.bootstrap_servers, **{**ALICE, **changed}).send("t", b"x")
    assert "planted-secret" not in f"{raised.value!r} {caplog.text}"


def test_se_3_who_logs_in_where_nobody_does_is_told_what_to_do() -> None:
    with Broker() as open_to_all, pytest.raises(IllegalSaslState, match=r"set security\.protocol"):
        SyncProducer(open_to_all.bootstrap_servers, **ALICE).send("t", b"x")


class Provider:
    """Returns a token, or fails first."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)

    def token(self) -> object:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


async def of_nobody() -> str:
    return "x.y.z"


@pytest.mark.parametrize(
    ("provider", "error", "text"),
    [
        (Provider(OSError("planted-secret-6")), Unreachable, "provider raised OSError"),
        (Provider(7), SaslAuthenticationFailed, "returned int; it must return the token"),
        (Provider(""), SaslAuthenticationFailed, "as a nonempty string"),
        (lambda: "a.b.c", SaslAuthenticationFailed, "invalid_token"),
        (of_nobody, SaslAuthenticationFailed, "invalid_token"),
    ],
)
def test_se_3_a_provider_that_has_no_good_token(
    tmp_path: Path, provider: Any, error: type[Exception], text: str
) -> None:
    given = {**options("OAUTHBEARER"), "sasl_oauth_token_provider": provider}
    with secured_broker(tmp_path) as one, pytest.raises(error, match=text) as raised:
        SyncProducer(one.servers, max_block_ms=300, **given).send("t", b"x").result(30)
    assert "planted-secret" not in str(raised.value)


def test_se_3_a_provider_is_asked_again(tmp_path: Path) -> None:
    provider = Provider(OSError(), OSError(), token())
    given = {**options("OAUTHBEARER"), "sasl_oauth_token_provider": provider}
    with secured_broker(tmp_path) as one:
        with pytest.raises(
            Unreachable
        ):  # one try of each server, as with any that cannot be reached
            SyncAdmin(one.servers, **given).list_topics()
        provider.answers.pop(0)
        with SyncAdmin(one.servers, **given) as admin:
            admin.list_topics()
