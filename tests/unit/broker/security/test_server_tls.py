"""SE-2: a broker's TLS listener: who comes in, by which name, and how certificates are renewed."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas import Broker
from barnabas.broker.network.listeners import Listener
from barnabas.broker.security.authorization import Needs
from barnabas.broker.security.server_tls import ServerTls
from barnabas.client import SyncAdmin
from barnabas.client.admin.configs import BROKER, ConfigResource
from barnabas.config import BrokerConfig
from barnabas.errors import ConfigError, CorruptData, InvalidRequest
from barnabas.protocol.api import METADATA
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.security.acl import Principal
from barnabas.security.pem import der_of, pem_blocks
from barnabas.security.protocol import SecurityProtocol
from tests.kit.broker.authorizers import authorized_by
from tests.kit.broker.loops import inside
from tests.kit.broker.metric_pages import samples_of
from tests.kit.broker.tls_broker import (
    TlsRawClient,
    options,
    python_context,
    secured,
    tls_address,
)
from tests.kit.certificates import Authority, PemFiles
from tests.kit.clocks import SteppedClock
from tests.kit.waiting import wait_until

DAY_MS = 86_400_000


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.make(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def broker(authority: Authority) -> Iterator[Broker]:
    rules = "RULE:^CN=(.*?),OU=Sales.*$/$1@sales/L,RULE:^CN=(.*)$/$1/"
    settings = secured(authority.server(), ssl_client_auth="requested")
    with Broker(config={**settings, "listener.name.ssl.ssl.principal.mapping.rules": rules}) as it:
        yield it


class Seen:
    """An authorizer that allows all, and keeps who came."""

    def __init__(self) -> None:
        self.principals: list[str] = []

    def allows(self, principal: Principal, address: str, needs: Needs, name: str) -> bool:
        self.principals.append(str(principal))
        return True


def certificate_of(files: PemFiles) -> bytes:
    return der_of(pem_blocks(files.chain.read_text())[0])


@pytest.mark.parametrize(
    ("subject", "principal"),
    [
        ("CN=alice", "User:alice"),
        ("CN=Bob,OU=Sales,O=Acme", "User:bob@sales"),
        (None, "User:ANONYMOUS"),
    ],
)
def test_se_2_the_principal_is_the_certificates(
    broker: Broker, authority: Authority, subject: str | None, principal: str
) -> None:
    files = authority.client(subject=subject or "CN=nobody")
    seen = Seen()
    with (
        authorized_by(seen),
        SyncAdmin(
            tls_address(broker), **options(files, has_certificate=subject is not None)
        ) as admin,
    ):
        admin.describe_configs(ConfigResource(BROKER, "0"))
    assert set(seen.principals) == {principal}


def test_se_2_a_certificate_that_no_rule_names_is_refused(
    broker: Broker, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    files = authority.client(subject="OU=Sales,O=Acme")
    with (
        pytest.raises((OSError, CorruptData)),
        TlsRawClient(tls_address(broker), python_context(files)) as client,
    ):
        client.call(METADATA, 9, MetadataRequest(topics=[]))
    wait_until(lambda: "no rule of ssl.principal.mapping.rules matches" in caplog.text)


def test_se_2_a_new_certificate_is_for_new_connections(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    """By IncrementalAlterConfigs; what is open goes on."""
    old, new = authority.server(), authority.server()
    context = python_context(old, has_certificate=False)
    key = "listener.name.ssl.ssl.keystore.location"
    with (
        Broker(config=secured(old)) as broker,
        TlsRawClient(tls_address(broker), context) as before,
        broker.admin() as admin,
    ):
        assert before.certificate == certificate_of(old)
        admin.alter_configs(ConfigResource(BROKER, "0"), {key: str(new.keystore)})
        with TlsRawClient(tls_address(broker), context) as after:
            assert after.certificate == certificate_of(new)
            assert after.call(METADATA, 9, MetadataRequest(topics=[])).brokers
        assert before.call(METADATA, 9, MetadataRequest(topics=[])).brokers


@pytest.mark.thorough
def test_se_2_a_file_that_changes_is_read_again(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    files, new = authority.server(), authority.server()
    context = python_context(files, has_certificate=False)
    with Broker(config=secured(files)) as broker:
        old = certificate_of(files)
        files.keystore.write_text("half a fi")
        (tls,) = broker.server.parts.network.tls
        inside(broker, tls.reload)
        assert (
            "keeping the previous certificate: listener SSL: ssl.keystore.location" in caplog.text
        )
        with TlsRawClient(tls_address(broker), context) as client:
            assert client.certificate == old
        with broker.admin() as admin:  # and nothing else is held up by it
            admin.alter_configs(ConfigResource(BROKER, "0"), {"log.retention.ms": "7777777"})
        files.replace_with(new)

        def is_new() -> bool:  # the broker looks by itself
            with TlsRawClient(tls_address(broker), context) as client:
                return client.certificate == certificate_of(new)

        wait_until(is_new)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"ssl.keystore.location": "/nowhere.pem"}, "cannot be read: No such file"),
        (
            {"ssl.client.auth": "required", "ssl.truststore.location": ""},
            "CA certificates of the clients",
        ),
        ({"ssl.enabled.protocols": "TLSv1.1"}, "no longer secure"),
        ({"ssl.principal.mapping.rules": "RULE:("}, "cannot be changed|does not start"),
    ],
)
def test_se_2_what_cannot_be_used_is_refused_with_the_reason(
    broker: Broker, settings: dict[str, str], says: str
) -> None:
    changes: Any = {f"listener.name.ssl.{name}": value for name, value in settings.items()}
    with broker.admin() as admin, pytest.raises(InvalidRequest, match=says):
        admin.alter_configs(ConfigResource(BROKER, "0"), changes)


def test_se_2_a_renewed_certificate_keeps_its_names(authority: Authority) -> None:
    """Unless ssl.allow.dn.changes or ssl.allow.san.changes say otherwise."""
    key = "listener.name.ssl.ssl.keystore.location"
    files = authority.server(["localhost", "127.0.0.1"], cn="broker")
    stranger = authority.server(["localhost", "127.0.0.1"], cn="stranger")
    narrower = authority.server(["127.0.0.1"], cn="broker")
    wider = authority.server(["localhost", "127.0.0.1", "more.example"], cn="broker")
    me = ConfigResource(BROKER, "0")
    with Broker(config=secured(files)) as broker, broker.admin() as admin:
        with pytest.raises(InvalidRequest, match=r"the subject CN=stranger, the old one CN=broker"):
            admin.alter_configs(me, {key: str(stranger.keystore)})
        with pytest.raises(InvalidRequest, match=r"lacks host names"):
            admin.alter_configs(me, {key: str(narrower.keystore)})
        admin.alter_configs(me, {key: str(wider.keystore)})
    allowed = secured(files, ssl_allow_dn_changes="true", ssl_allow_san_changes="true")
    with Broker(config=allowed) as broker, broker.admin() as admin:
        admin.alter_configs(me, {key: str(narrower.keystore)})
        admin.alter_configs(me, {key: str(stranger.keystore)})


def test_se_2_a_broker_with_a_wrong_store_does_not_start(authority: Authority) -> None:
    for settings, says in (
        ({"listeners": "SSL://127.0.0.1:0"}, "listener SSL: a listener with TLS needs a private"),
        (secured(authority.server(), ssl_keystore_location="/no.pem"), "listener SSL: .*/no.pem"),
    ):
        with pytest.raises(ConfigError, match=says):
            Broker(config=settings).start()


def test_se_2_the_end_of_a_certificate_is_warned_of_once_a_day(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    clock = SteppedClock()
    config = BrokerConfig({"log.dir": "/data", **authority.server().settings()})
    tls = ServerTls(Listener("SSL", "127.0.0.1", 0, SecurityProtocol.SSL), config, clock)

    async def look() -> str:
        caplog.clear()
        for _ in range(2):
            tls.start()
            tls.close()
        return " ".join(caplog.messages)

    assert 59 < tls.days_left < 60
    assert asyncio.run(look()) == ""
    clock.step(30 * DAY_MS)
    assert asyncio.run(look()).count("listener SSL: its certificate expires in 29 days, at ") == 1
    clock.step(DAY_MS)
    assert asyncio.run(look()).count("expires in 28 days") == 1
    clock.step(29 * DAY_MS)
    assert asyncio.run(look()).count("its certificate expired at") == 1
    assert -1 < tls.days_left < 0


def test_se_2_a_metric_has_the_days_left(broker: Broker) -> None:
    ((name, days),) = [
        each for each in samples_of(broker).items() if each[0].startswith("barnabas_certificate_")
    ]
    assert name == 'barnabas_certificate_days_left{listener="SSL"}' and 59 < days < 60


def test_se_2_brokers_have_to_trust_themselves(authority: Authority, tmp_path: Path) -> None:
    """The certificate between brokers is tried against their truststore at the start, as Kafka
    does it."""
    other = Authority.make(tmp_path, "Other CA").truststore
    settings = secured(authority.server(), ssl_truststore_location=str(other))
    with Broker(config=settings):
        pass  # between clients and the broker it may be so
    settings["security.inter.broker.protocol"] = "SSL"
    with pytest.raises(ConfigError, match=r"is not trusted by ssl\.truststore"):
        Broker(config=settings).start()


def test_se_2_a_handshake_that_does_not_end_is_ended(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    settings = secured(authority.server(), connections_max_idle_ms="200")
    with Broker(config=settings) as broker:
        host, port = tls_address(broker).split(":")
        with socket.create_connection((host, int(port)), timeout=60) as peer:
            peer.sendall(b"\x16\x03\x01")
            assert peer.recv(1) == b""
        wait_until(
            lambda: inside(broker, lambda: len(broker.server.parts.network.connections)) == 0
        )
    assert "no TLS handshake within 200 ms" in caplog.text


def test_se_2_versions_below_1_2_get_nowhere(
    broker: Broker, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    context = python_context(authority.client("alice"))
    with pytest.warns(DeprecationWarning):
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises(ssl.SSLError):
        TlsRawClient(tls_address(broker), context)
    wait_until(lambda: "no TLS version in common" in caplog.text)


def test_se_2_a_line_about_a_peer_comes_once_a_minute(
    broker: Broker, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    """However often a client tries that is set up wrong: one line, without a traceback."""
    untrusting = ssl.create_default_context()
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            with pytest.raises(ssl.SSLCertVerificationError):
                TlsRawClient(tls_address(broker), untrusting)
        wait_until(lambda: "does not trust this broker's certificate" in caplog.text)
    (record,) = [each for each in caplog.records if "does not trust" in each.getMessage()]
    assert record.getMessage().startswith("TLS handshake failed from 127.0.0.1:")
    assert record.exc_info is None
