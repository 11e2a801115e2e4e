"""SE-3: attacks on log-ins as they come over the network, each at a listener of every mechanism.

What is said within one exchange is attacked where the mechanisms are tested; here it is whether a
connection gets in, and whether others are served meanwhile.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from barnabas.client import SyncProducer
from barnabas.errors import IllegalSaslState, SaslAuthenticationFailed, UnsupportedSaslMechanism
from barnabas.protocol.api import METADATA, SASL_AUTHENTICATE, SASL_HANDSHAKE
from barnabas.protocol.frame import encode_request
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from barnabas.security.scram import ScramClient
from tests.kit.broker.secured import SECRET, USER, Secured, options, secured_broker
from tests.kit.processes.answer_proxy import AnswerProxy
from tests.kit.processes.broker_process import free_port
from tests.kit.raw_client import PATIENCE_S, RawClient
from tests.kit.signed_tokens import claims, signer, unsigned

SCRAM = "SCRAM-SHA-512"
HALF_OPEN = 1_000
ROUND_TRIPS = 200


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    backlog = str(HALF_OPEN)
    with secured_broker(
        tmp_path_factory.mktemp("keys"), socket_listen_backlog_size=backlog
    ) as running:
        yield running


@pytest.fixture
def raw(secured: Secured) -> Iterator[RawClient]:
    with RawClient(secured.servers) as client:
        yield client


def begin(client: RawClient, mechanism: str) -> None:
    hello = client.call(SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism=mechanism))
    assert hello.error_code == 0


def say(client: RawClient, message: bytes) -> Any:
    return client.call(SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(auth_bytes=message))


def is_served(client: RawClient) -> bool:
    return bool(client.call(METADATA, 12, MetadataRequest(topics=[])).brokers)


# ---- what was recorded ----


def log_in(client: RawClient) -> list[bytes]:
    """By SCRAM; its messages, as somebody records them who reads along."""
    begin(client, SCRAM)
    scram = ScramClient(SCRAM, USER, SECRET)
    sent = [scram.first()]
    final = scram.respond(bytes(say(client, sent[0]).auth_bytes))
    assert final is not None
    assert say(client, final).error_code == 0
    return [*sent, final]


def test_se_3_a_recorded_log_in_gets_nobody_in(secured: Secured, raw: RawClient) -> None:
    recorded = log_in(raw)
    assert is_served(raw)
    for again in (recorded, recorded[::-1], recorded[1:], recorded[:1] * 2):
        with RawClient(secured.servers) as attacker:
            begin(attacker, SCRAM)
            codes = [0]
            for message in again:
                if codes[-1] == 0:
                    codes.append(say(attacker, message).error_code)
            assert codes[-1] == SaslAuthenticationFailed.code, again
            assert attacker.is_closed_by_peer()


def test_se_3_a_recorded_log_in_is_not_taken_again_on_its_connection(raw: RawClient) -> None:
    recorded = log_in(raw)
    for message in recorded:
        assert say(raw, message).error_code == IllegalSaslState.code


# ---- tokens ----


def now_s() -> int:
    return int(time.time())


TOKENS: dict[str, Callable[[], str]] = {
    "none": lambda: unsigned(claims(now_s())),
    "wrong audience": lambda: signer().sign(claims(now_s(), aud="others")),
    "expired": lambda: signer().sign(claims(now_s() - 3_600)),
    "future": lambda: signer().sign(claims(now_s() + 3_600)),
    "another key": lambda: signer("k2").sign(claims(now_s())),
    "oversized": lambda: signer().sign(claims(now_s(), pad="x" * 100_000)),
}


@pytest.mark.parametrize("kind", TOKENS)
def test_se_3_a_token_that_is_not_good_gets_nobody_in(raw: RawClient, kind: str) -> None:
    begin(raw, "OAUTHBEARER")
    token = TOKENS[kind]()
    answer = say(raw, f"n,,\x01auth=Bearer {token}\x01\x01".encode())
    if answer.error_code == 0:  # the reason comes first, and the refusal when it was taken
        said = bytes(answer.auth_bytes)
        assert said == b'{"status":"invalid_token"}'
        answer = say(raw, b"\x01")
    assert answer.error_code == SaslAuthenticationFailed.code
    assert raw.is_closed_by_peer()


# ---- a weaker mechanism ----


def test_se_3_a_client_does_not_take_a_weaker_mechanism(tmp_path: Path) -> None:
    """Whoever changes the list on the way learns no password."""
    with secured_broker(tmp_path, sasl_enabled_mechanisms="PLAIN") as secured:
        proxy = AnswerProxy(int(secured.servers.partition(":")[2]), free_port())
        try:
            given = options(SCRAM)
            with pytest.raises(UnsupportedSaslMechanism, match="PLAIN"):
                SyncProducer(proxy.servers, default_api_timeout_ms=3_000, **given)
            assert proxy.count(SASL_HANDSHAKE.key) >= 1
            assert proxy.count(SASL_AUTHENTICATE.key) == 0
        finally:
            proxy.close()


# ---- those that never end ----


def half_log_ins() -> list[bytes]:
    """What some send before they fall silent."""
    hello = frame(SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism=SCRAM))
    first = SaslAuthenticateRequest(auth_bytes=ScramClient(SCRAM, USER, SECRET).first())
    message = hello + frame(SASL_AUTHENTICATE, 2, first)
    return [b"", hello[:3], hello, message[:-5], message]


def frame(api: Any, version: int, request: Any) -> bytes:
    parts: list[Any] = encode_request(api, version, 1, "silent", request)
    return b"".join(parts)


def test_se_3_a_thousand_half_log_ins_hold_nobody_up(secured: Secured) -> None:
    host, port = secured.servers.split(":")
    given = options(SCRAM)
    with ExitStack() as open_ones, SyncProducer(secured.servers, linger_ms=0, **given) as producer:
        for _, said in zip(range(HALF_OPEN), cycle(half_log_ins()), strict=False):
            peer = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
            open_ones.callback(peer.close)
            peer.sendall(said)
        for _ in range(ROUND_TRIPS):
            producer.send("bystander", b"x").result(PATIENCE_S)
        with SyncProducer(secured.servers, **given) as another:  # new ones get in as well
            another.send("bystander", b"x").result(PATIENCE_S)
        connections = secured.broker.server.parts.network.connections
        count: list[int] = []
        secured.broker.thread.call(lambda: count.append(len(connections)))
        assert count[0] >= HALF_OPEN
