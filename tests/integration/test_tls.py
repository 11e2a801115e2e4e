"""SE-2: our clients and brokers over TLS, what is said when it fails, and attacks on a listener."""

from __future__ import annotations

import random
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from barnabas import Broker, Cluster
from barnabas.client import NewTopic, SyncAdmin, SyncConsumer, SyncProducer
from barnabas.errors import BarnabasError, ConfigError
from barnabas.protocol.api import METADATA
from barnabas.protocol.messages.metadata import MetadataRequest
from tests.kit import foreign
from tests.kit.broker.loops import inside
from tests.kit.broker.tls_broker import (
    TlsRawClient,
    options,
    python_context,
    secured,
    tls_address,
)
from tests.kit.certificates import Authority, PemFiles
from tests.kit.raw_client import RawClient
from tests.kit.waiting import wait_until

HALF_OPEN = 1000
ROUND_TRIPS = 200
NOISES = 300


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.make(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def broker(authority: Authority) -> Iterator[Broker]:
    settings = secured(authority.server(), ssl_client_auth="required")
    with Broker(config={**settings, "socket.listen.backlog.size": HALF_OPEN}) as running:
        yield running


def reason(address: str, **given: Any) -> str:
    """What a client says that cannot come in."""
    with pytest.raises(BarnabasError) as caught:
        SyncAdmin(address, **given).close()
    return str(caught.value)


# ---- our clients ----


def test_se_2_producer_consumer_and_admin(broker: Broker, authority: Authority) -> None:
    """With records of all sizes, the largest far above a TLS record and a socket's buffer."""
    given = options(authority.client("alice"))
    values = [bytes([number]) * size for number, size in enumerate((1, 1000, 20_000, 900_000) * 5)]
    address = tls_address(broker)
    with SyncProducer(address, **given) as producer:
        for value in values:
            producer.send("sizes", value)
    with SyncConsumer(address, auto_offset_reset="earliest", group_id="g", **given) as consumer:
        consumer.subscribe(["sizes"])
        got: list[bytes | None] = []
        while len(got) < len(values):
            got += [record.value for record in consumer.poll(timeout_ms=60_000)]
    assert got == values
    with SyncAdmin(address, **given) as admin:
        assert "sizes" in admin.list_topics()


def test_se_2_settings_that_cannot_be_read_are_said_at_once(tmp_path: Path) -> None:
    missing = str(tmp_path / "no.pem")
    given = {"security_protocol": "SSL", "ssl_truststore_location": missing}
    with pytest.raises(ConfigError, match=f"ssl.truststore.location={missing} cannot be read"):
        SyncAdmin("127.0.0.1:1", **given)  # type: ignore[arg-type]


def test_se_2_an_unknown_authority_names_the_truststore(
    broker: Broker, authority: Authority, tmp_path: Path
) -> None:
    other = Authority.make(tmp_path, "Other CA")
    said = reason(tls_address(broker), **options(other.client("alice")))
    assert "not issued by a trusted authority" in said
    assert "ssl.truststore.location" in said


def test_se_2_a_certificate_that_the_broker_does_not_trust(
    broker: Broker, authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stranger = Authority.make(tmp_path, "Other CA").client("alice")
    files = PemFiles(stranger.key, stranger.chain, authority.truststore)
    assert "does not trust this client's certificate" in reason(
        tls_address(broker), **options(files)
    )
    wait_until(lambda: "TLS handshake failed from 127.0.0.1:" in caplog.text)
    assert "not issued by a trusted authority" in caplog.text
    assert "Traceback" not in caplog.text


def test_se_2_a_clients_certificate_that_has_expired(
    broker: Broker, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    files = authority.client("alice", expired=True)
    said = reason(tls_address(broker), **options(files))
    assert "the certificate of this client has expired" in said
    wait_until(lambda: "its certificate has expired: renew it" in caplog.text)


def test_se_2_a_client_without_a_certificate(broker: Broker, authority: Authority) -> None:
    said = reason(tls_address(broker), **options(authority.client("alice"), has_certificate=False))
    assert (
        "the broker requires a client certificate that it trusts: set ssl.keystore.location" in said
    )


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("expired", "the broker's certificate has expired"),
        ("wrong host", "certificate is not for 127.0.0.1: connect by a name in the certificate"),
        ("self-signed", "not issued by a trusted authority"),
    ],
)
def test_se_2_a_certificate_that_is_wrong_is_refused(
    authority: Authority, kind: str, says: str
) -> None:
    files = {
        "expired": lambda: authority.server(expired=True),
        "wrong host": lambda: authority.server(["elsewhere.example"]),
        "self-signed": authority.self_signed,
    }[kind]()
    given = options(authority.client("alice"), has_certificate=False)
    with Broker(config=secured(files)) as wrong:
        assert says in reason(tls_address(wrong), **given)
        if kind == "wrong host":  # and only where that is asked for
            given["ssl.endpoint.identification.algorithm"] = ""
            SyncAdmin(tls_address(wrong), **given).close()


def test_se_2_a_client_and_a_listener_of_different_protocols(
    broker: Broker, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    """Both ways round, and both sides say it."""
    assert "TLS" in reason(tls_address(broker), default_api_timeout_ms=3000)
    wait_until(lambda: "it sent plain text to a TLS listener" in caplog.text)
    assert "TLS" in reason(broker.bootstrap_servers, **options(authority.client("alice")))
    wait_until(lambda: "uses TLS on a listener without TLS" in caplog.text)


# ---- attacks ----


def test_se_2_half_open_handshakes_do_not_hold_up_others(
    broker: Broker, authority: Authority
) -> None:
    """A thousand that begin and fall silent, at different points; another client goes on."""
    host, port = tls_address(broker).split(":")
    context = python_context(authority.client("alice"))
    hello = client_hello(context)
    with ExitStack() as open_ones, TlsRawClient(tls_address(broker), context) as client:
        for number in range(HALF_OPEN):
            peer = socket.create_connection((host, int(port)), timeout=60)
            open_ones.callback(peer.close)
            peer.sendall(hello[: (0, 1, 100, len(hello))[number % 4]])
        begin = time.monotonic()
        for _ in range(ROUND_TRIPS):
            assert client.call(METADATA, 9, MetadataRequest(topics=[])).brokers
        assert time.monotonic() - begin < 60  # of hundreds of ms: it bounds a stall
        connections = broker.server.parts.network.connections
        assert inside(broker, lambda: len(connections)) >= HALF_OPEN
    wait_until(lambda: inside(broker, lambda: len(connections)) < 5)


def test_se_2_noise_ends_its_own_connection_only(
    broker: Broker, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    """Random bytes, alone and in a handshake that began well."""
    host, port = tls_address(broker).split(":")
    context = python_context(authority.client("alice"))
    dice = random.Random(17)
    with TlsRawClient(tls_address(broker), context) as client:
        for _ in range(NOISES):
            hello = bytearray(client_hello(context))
            for _ in range(dice.randrange(1, 20)):
                hello[dice.randrange(1, len(hello))] = dice.randrange(256)
            with socket.create_connection((host, int(port)), timeout=60) as peer:
                peer.sendall(dice.choice((bytes(hello), b"\x16" + dice.randbytes(300))))
        assert client.call(METADATA, 9, MetadataRequest(topics=[])).brokers
    connections = broker.server.parts.network.connections
    wait_until(lambda: inside(broker, lambda: len(connections)) < 5)
    assert "Traceback" not in caplog.text


def client_hello(context: ssl.SSLContext) -> bytes:
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def test_se_2_a_client_that_wants_to_renegotiate_is_not_served(
    broker: Broker, authority: Authority
) -> None:
    """TLS 1.2: the arithmetic of a handshake again and again, within one connection."""
    files = authority.client("alice")
    command = [str(foreign.require_openssl()), "s_client", "-connect", tls_address(broker)]
    command += ["-tls1_2", "-CAfile", str(files.truststore), "-cert", str(files.chain)]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*command, "-key", str(files.key)], stdin=pipe, stdout=pipe, stderr=pipe
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        while b"Verify return code" not in process.stdout.readline():
            pass
        _, errors = process.communicate(b"R\n", timeout=60)
    assert b"RENEGOTIATING" in errors
    assert b"no renegotiation" in errors
    SyncAdmin(tls_address(broker), **options(files)).close()


# ---- brokers among each other ----


def test_se_2_three_brokers_over_tls_with_certificates(authority: Authority) -> None:
    """They replicate, elect and coordinate over a listener that asks for certificates."""
    files = authority.server()
    settings = {
        "listeners": "SSL://127.0.0.1:0",
        "security.inter.broker.protocol": "SSL",
        "ssl.client.auth": "required",
        **files.settings(),
    }
    given = options(authority.client("alice"))
    given["default.api.timeout.ms"] = 30_000
    with Cluster(brokers=3, config=settings) as cluster:
        with SyncAdmin(cluster.bootstrap_servers, **given) as admin:
            admin.create_topics([NewTopic("t", 3, 3)])
        with SyncProducer(cluster.bootstrap_servers, **given) as producer:
            sent = [producer.send("t", b"%d" % number) for number in range(300)]
            for each in sent:
                each.result(60)
        with SyncConsumer(
            cluster.bootstrap_servers, auto_offset_reset="earliest", group_id="g", **given
        ) as consumer:
            consumer.subscribe(["t"])
            count = 0
            while count < 300:
                count += len(consumer.poll(timeout_ms=60_000))
        cluster_kinds = {
            each.security_protocol
            for broker in cluster.server(1).node.view.image.brokers.values()
            for each in broker.endpoints
        }
    assert cluster_kinds == {"SSL"}


def test_se_2_a_broker_that_is_not_trusted_does_not_replicate(
    authority: Authority, tmp_path: Path
) -> None:
    """Nobody reads a partition by saying that it is a broker."""
    stranger = Authority.make(tmp_path, "Other CA").client("broker")
    with Broker(config=secured(authority.server(), ssl_client_auth="required")) as broker:
        context = ssl.create_default_context(cafile=str(authority.truststore))
        context.load_cert_chain(stranger.chain, stranger.key)
        with pytest.raises(OSError), TlsRawClient(tls_address(broker), context) as client:
            client.call(METADATA, 9, MetadataRequest(topics=[]))
        with RawClient(broker.bootstrap_servers) as client:
            assert client.call(METADATA, 9, MetadataRequest(topics=[])).brokers
