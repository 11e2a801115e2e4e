"""Who may change a tree in ZooKeeper: SASL users, certificates, and trees made before (SE-6)."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient  # type: ignore[import-untyped]
from kazoo.exceptions import NoAuthError  # type: ignore[import-untyped]

from barnabas.cli.main import main
from barnabas.cluster.store import Create, Delete, MetadataError, Set
from barnabas.cluster.zookeeper_settings import Settings, settings_from
from barnabas.config import BrokerConfig
from barnabas.errors import ConfigError
from barnabas.security.tls_settings import TlsSettings
from tests.kit import foreign
from tests.kit.metadata_stores import SESSION_MS, data_of, opened
from tests.kit.processes.broker_process import free_port
from tests.kit.processes.zookeeper_process import ZooKeeperProcess, zookeeper_process

_SECRET = "geheim"
_JAAS = f"""Server {{
    org.apache.zookeeper.server.auth.DigestLoginModule required
    user_broker="{_SECRET}";
}};
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("zookeeper-identity")


@pytest.fixture(scope="module")
def certificates(directory: Path) -> tuple[Path, Path]:
    """Of the server and of the brokers: each signs itself, and has its key in its file."""
    return _certificate(directory, "server"), _certificate(directory, "broker")


@pytest.fixture(scope="module")
def secure_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def zookeeper(
    directory: Path, certificates: tuple[Path, Path], secure_port: int
) -> Iterator[ZooKeeperProcess]:
    """One server that knows SASL users, and certificates on a port of its own."""
    jaas = directory / "jaas.conf"
    jaas.write_text(_JAAS)
    server, broker = certificates
    running = ZooKeeperProcess(
        directory,
        class_path=f"{foreign.require_kafka_jars()}/*",  # Debian's server has no Netty, so no TLS
        config="\n".join(
            (
                "authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
                "authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider",
                f"secureClientPort={secure_port}",
                f"ssl.keyStore.location={server}",
                f"ssl.trustStore.location={broker}",
            )
        ),
        java_options=(
            f"-Djava.security.auth.login.config={jaas}",
            "-Dzookeeper.serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
        ),
    )
    try:
        running.start()
        yield running
    finally:
        if running.process is not None:
            running.kill()


def _tls(trusted: Path | None = None, own: Path | None = None) -> TlsSettings:
    return TlsSettings(
        keystore_type="PEM",
        keystore_location=str(own or ""),
        truststore_type="PEM",
        truststore_location=str(trusted or ""),
    )


def _certificate(directory: Path, name: str) -> Path:
    path, chain = directory / f"{name}.pem", directory / "certificate"
    subprocess.run(
        [str(foreign.require_openssl()), "req", "-x509", "-newkey", "rsa:2048", "-nodes",
         "-days", "2", "-subj", f"/CN={name}",
         "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-keyout", str(path), "-out", str(chain)],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    with path.open("a") as file:
        file.write(chain.read_text())
    return path


def _acl(zookeeper: ZooKeeperProcess, path: str) -> list[tuple[str, str, int]]:
    """Scheme, identity and permissions, as another client is answered."""
    client = KazooClient(zookeeper.connect)
    client.start()
    try:
        acls, _ = client.get_acls(path)
        return [(acl.id.scheme, acl.id.id, acl.perms) for acl in acls]
    finally:
        client.stop()
        client.close()


def test_a_sasl_user_owns_what_the_brokers_create(
    zookeeper: ZooKeeperProcess, caplog: pytest.LogCaptureFixture
) -> None:
    """SE-6: DIGEST-MD5, as Kafka's brokers log in to ZooKeeper; no password at any log level."""
    caplog.set_level(1)
    connect = f"{zookeeper.connect}/sasl"
    ours = Settings(
        connect, SESSION_MS, credentials=f"broker:{_SECRET}", uses_sasl=True, is_protected=True
    )

    async def scenario() -> None:
        async with opened(ours) as store, opened(connect) as stranger:
            await store.commit([Create("/brokers", b"1"), Create("/consumers")])
            assert await data_of(stranger, "/brokers") == b"1"
            with pytest.raises(MetadataError, match="NoAuthError"):
                await stranger.commit([Set("/brokers", b"2")])

    asyncio.run(scenario())
    assert _acl(zookeeper, "/sasl/brokers") == [("sasl", "broker", 31), ("world", "anyone", 1)]
    assert _acl(zookeeper, "/sasl/consumers") == [("world", "anyone", 31)]
    assert _SECRET not in caplog.text


def test_a_wrong_sasl_password_ends_the_start(zookeeper: ZooKeeperProcess) -> None:
    wrong = Settings(f"{zookeeper.connect}/sasl", SESSION_MS, 2000, "broker:falsch", uses_sasl=True)

    async def scenario() -> None:
        with pytest.raises(ConfigError, match="check the credentials") as caught:
            async with opened(wrong):
                pass
        assert "falsch" not in str(caught.value)

    asyncio.run(scenario())


def test_a_certificate_owns_what_the_brokers_create(
    zookeeper: ZooKeeperProcess, certificates: tuple[Path, Path], secure_port: int
) -> None:
    """SE-6: the identity of ZooKeeper's x509 scheme; no other credentials are needed."""
    server, broker = certificates
    config = BrokerConfig(
        {
            "zookeeper.connect": f"localhost:{secure_port}/x509",
            "zookeeper.set.acl": "true",
            "zookeeper.ssl.client.enable": "true",
            "zookeeper.ssl.truststore.location": str(server),
            "zookeeper.ssl.keystore.location": str(broker),
        }
    )

    async def scenario() -> None:
        async with opened(settings_from(config)) as store:
            await store.commit([Create("/brokers", b"1")])

    asyncio.run(scenario())
    assert _acl(zookeeper, "/x509/brokers") == [("x509", "CN=broker", 31), ("world", "anyone", 1)]


def test_se_6_the_stores_of_a_java_broker_serve_as_they_are(
    zookeeper: ZooKeeperProcess,
    certificates: tuple[Path, Path],
    secure_port: int,
    tmp_path: Path,
) -> None:
    """PKCS12, by its ending, with a password; and one version of TLS."""
    server, broker = certificates
    store = tmp_path / "broker.p12"
    subprocess.run(
        [str(foreign.require_openssl()), "pkcs12", "-export", "-in", str(broker), "-out",
         str(store), "-passout", f"pass:{_SECRET}"],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    settings = {
        "zookeeper.connect": f"localhost:{secure_port}/stores",
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.ssl.truststore.location": str(server),
        "zookeeper.ssl.keystore.location": str(store),
        "zookeeper.ssl.keystore.password": _SECRET,
        "zookeeper.ssl.protocol": "TLSv1.2",
    }

    async def scenario() -> None:
        async with opened(settings_from(BrokerConfig(settings))) as store:
            await store.commit([Create("/brokers", b"1")])
        wrong = {**settings, "zookeeper.ssl.keystore.password": "falsch"}
        with pytest.raises(ConfigError, match=r"^zookeeper\.ssl\.keystore") as refused:
            async with opened(settings_from(BrokerConfig(wrong))):
                pass
        assert "falsch" not in str(refused.value)

    asyncio.run(scenario())


def test_an_existing_tree_is_secured_and_opened_again(
    zookeeper: ZooKeeperProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SE-6: as Kafka's zookeeper-security-migration.sh does; `metadata secure`."""
    connect = f"{zookeeper.connect}/older"
    paths = ("/brokers", "/brokers/topics", "/config", "/config/users", "/consumers", "/other")

    async def create() -> None:
        async with opened(connect) as store:
            await store.commit([Create(path, b"") for path in paths])

    asyncio.run(create())
    properties = tmp_path / "server.properties"
    properties.write_text(
        f"zookeeper.connect={connect}\nbarnabas.zookeeper.credentials=broker:{_SECRET}\n"
    )
    open_to_all = [("world", "anyone", 31)]
    assert main(["metadata", "secure", "--config", str(properties)]) == 0
    assert capsys.readouterr().out == f"6 nodes of {connect}: protected.\n"
    for path in ("", "/brokers", "/brokers/topics", "/config"):
        owner, others = _acl(zookeeper, f"/older{path}")
        assert owner[0] == "digest" and owner[1].startswith("broker:") and owner[2] == 31
        assert others == ("world", "anyone", 1)
    with pytest.raises(NoAuthError):
        _acl(zookeeper, "/older/config/users")
    assert _acl(zookeeper, "/older/consumers") == open_to_all
    assert _acl(zookeeper, "/older/other") == open_to_all  # not of Kafka

    assert main(["metadata", "secure", "--config", str(properties), "--undo"]) == 0
    assert capsys.readouterr().out == f"6 nodes of {connect}: open to all.\n"
    for path in ("", *paths):
        assert _acl(zookeeper, f"/older{path}") == open_to_all


def test_a_tree_without_a_chroot_is_closed_at_its_root(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """SE-6: to delete /controller takes a right of the node above it, and that is the root."""
    properties = tmp_path / "server.properties"
    secure = ["metadata", "secure", "--config", str(properties)]

    async def create(connect: str, *paths: str) -> None:
        async with opened(connect) as store:
            await store.commit([Create(path, b"") for path in paths])

    async def warnings(connect: str) -> list[str]:
        caplog.clear()
        ours = Settings(connect, SESSION_MS, None, f"broker:{_SECRET}", is_protected=True)
        async with opened(ours):
            return [each for each in caplog.messages if "may create and delete nodes" in each]

    async def take_controller(connect: str) -> None:
        async with opened(connect) as stranger:
            await stranger.commit([Delete("/controller", -1), Create("/controller", b"mine")])

    with zookeeper_process(tmp_path) as zookeeper:
        connect = zookeeper.connect
        properties.write_text(
            f"zookeeper.connect={connect}\nbarnabas.zookeeper.credentials=broker:{_SECRET}\n"
        )
        asyncio.run(create(connect, "/brokers", "/controller", "/hbase"))
        assert len(asyncio.run(warnings(connect))) == 1
        assert main(secure) == 0
        said = capsys.readouterr()
        assert said.out == f"2 nodes of {connect}: protected.\n"
        assert "other programs have nodes there (/hbase): every client can delete" in said.err
        asyncio.run(take_controller(connect))

        async def remove() -> None:
            async with opened(connect) as store:
                await store.commit([Delete("/hbase", -1)])

        asyncio.run(remove())
        assert main(secure) == 0
        assert capsys.readouterr().out == f"3 nodes of {connect}: protected.\n"
        with pytest.raises(MetadataError, match="NoAuthError"):
            asyncio.run(take_controller(connect))
        assert asyncio.run(warnings(connect)) == []
        assert main([*secure, "--undo"]) == 0
        asyncio.run(take_controller(connect))


def test_without_credentials_nothing_is_secured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metadata", "secure", "--zookeeper-connect", "localhost:1"]) != 0
    assert "barnabas.zookeeper.credentials=user:password" in capsys.readouterr().err


def test_tls_without_trust_in_the_server_is_refused(
    zookeeper: ZooKeeperProcess, certificates: tuple[Path, Path], secure_port: int
) -> None:
    _, broker = certificates
    wrong = Settings(f"localhost:{secure_port}/x509", SESSION_MS, 1500, tls=_tls(broker, broker))

    async def scenario() -> None:
        with pytest.raises(ConfigError, match="no response from ZooKeeper"):
            async with opened(wrong):
                pass

    asyncio.run(scenario())
