"""ZooKeeper and who may do what there: rights, TLS, and Kafka's own trees (ZK-1, ZK-6)."""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
from pathlib import Path

import pytest
from kazoo.client import KazooClient  # type: ignore[import-untyped]

from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.importing import import_tree
from barnabas.cluster.store import (
    BadVersion,
    Create,
    Set,
)
from barnabas.cluster.zookeeper import ZooKeeperStore
from barnabas.cluster.zookeeper_settings import Settings
from barnabas.errors import ConfigError
from barnabas.security.tls_settings import TlsSettings
from barnabas.testing.embedded.settings import LOGGERS
from tests.kit import foreign
from tests.kit.metadata_stores import SESSION_MS, data_of, opened
from tests.kit.processes.zookeeper_process import ZooKeeperProcess
from tests.kit.processes.zookeeper_proxy import (
    zookeeper_proxy,
)
from tests.kit.whole_tree import load_topics


def test_others_may_read_and_not_write_what_is_protected(
    zookeeper: ZooKeeperProcess, caplog: pytest.LogCaptureFixture
) -> None:
    """SE-6: zookeeper.set.acl"""

    async def scenario() -> None:
        connect = f"{zookeeper.connect}/protected"
        ours = Settings(connect, SESSION_MS, None, "broker:secret", is_protected=True)
        async with opened(ours) as store, opened(connect) as stranger, opened(ours) as friend:
            paths = ("/config", "/config/users", "/consumers", "/brokers")
            await store.commit([Create(path, b"1") for path in paths])
            assert await data_of(stranger, "/brokers") == b"1"
            with pytest.raises(Exception, match="/config/users: ZooKeeper refused it, NoAuthError"):
                await stranger.read_many(["/brokers", "/config/users"])
            for path in ("/brokers", "/config/users"):
                with pytest.raises(Exception, match=f"{path}: ZooKeeper refused it, NoAuthError"):
                    await stranger.commit([Set("/consumers", b"2"), Set(path, b"2")])
            await stranger.commit([Set("/consumers", b"2")])
            await friend.commit([Set("/config/users", b"3", 0)])
            with pytest.raises(BadVersion):
                await friend.commit([Set("/config/users", b"3", 0)])

    asyncio.run(scenario())
    assert "Traceback" not in caplog.text and "deserialization" not in caplog.text


def test_no_password_is_logged(
    zookeeper: ZooKeeperProcess, caplog: pytest.LogCaptureFixture
) -> None:
    """SE-6: at any level."""

    async def scenario() -> None:
        ours = Settings(
            f"{zookeeper.connect}/silent", SESSION_MS, None, "broker:geheim", is_protected=True
        )
        async with opened(ours) as store:
            await store.commit([Create("/a")])

    for logger in ("", "barnabas", *LOGGERS):  # an embedded broker of other tests may have set them
        caplog.set_level(1, logger)
    asyncio.run(scenario())
    assert "connected to ZooKeeper" in caplog.text
    assert "geheim" not in caplog.text


def _tls(trusted: Path | None = None, own: Path | None = None) -> TlsSettings:
    return TlsSettings(
        keystore_type="PEM",
        keystore_location=str(own or ""),
        truststore_type="PEM",
        truststore_location=str(trusted or ""),
    )


def _certificate(directory: Path, name: str) -> Path:
    """A certificate that signs itself, with its key, in one file."""
    path = directory / f"{name}.pem"
    subprocess.run(
        [str(foreign.require_openssl()), "req", "-x509", "-newkey", "rsa:2048", "-nodes",
         "-days", "2", "-subj", f"/CN={name}",
         "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-keyout", str(path), "-out", str(directory / "certificate")],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    with path.open("a") as file:
        file.write((directory / "certificate").read_text())
    return path


def test_tls_both_ways(zookeeper: ZooKeeperProcess, tmp_path: Path) -> None:
    """Own certificate and trusted ones are handed to ssl; without them there is no connection."""
    theirs, ours = _certificate(tmp_path, "server"), _certificate(tmp_path, "broker")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(theirs)
    context.load_verify_locations(ours)
    context.verify_mode = ssl.CERT_REQUIRED

    async def scenario() -> None:
        async with zookeeper_proxy(zookeeper.port, context) as proxy:
            connect = f"localhost:{proxy.port}/tls"
            both = _tls(theirs, ours)
            async with opened(Settings(connect, SESSION_MS, tls=both)) as store:
                await store.commit([Create("/a")])
            for wrong in (None, _tls(), _tls(theirs), _tls(ours, ours)):
                with pytest.raises(ConfigError, match="no response from ZooKeeper"):
                    await ZooKeeperStore.open(Settings(connect, SESSION_MS, 400, tls=wrong))
        async with opened(zookeeper.connect) as root:
            assert await root.read("/tls/a") is not None

    asyncio.run(scenario())


# Kafka's trees


def test_trees_of_kafka_are_the_same_in_both_stores(
    zookeeper: ZooKeeperProcess, shared: Path
) -> None:
    """ZK-1, ZK-6: imported byte for byte, and loaded as the same topics."""
    judged = 0

    async def scenario(file: Path) -> int:
        tree = json.loads(file.read_text())
        embedded = EmbeddedStore()
        expected = await import_tree(embedded, tree, lambda _: -1)
        async with opened(f"{zookeeper.connect}/tree/{file.stem}") as store:
            assert await import_tree(store, tree, lambda _: -1) == expected
            paths = [path for path, node in tree.items() if not node.get("ephemeral")]
            for path, node in zip(paths, await store.read_many(paths), strict=True):
                same = await embedded.read(path)
                if same is not None:
                    assert node is not None and node.data == same.data, path
                    assert sorted(node.children) == sorted(same.children), path
            assert await load_topics(store) == await load_topics(embedded)
        return expected.nodes

    files = sorted((shared / "fixtures" / "kafka-3.9" / "zookeeper").glob("*.json"))
    for file in files:
        judged += asyncio.run(scenario(file))
    assert judged > 500
    print(f"{judged} nodes of {len(files)} trees of Kafka's")


def test_kazoo_sees_what_we_write(zookeeper: ZooKeeperProcess) -> None:
    """ZK-1: null data, ephemeral and sequential nodes are what any other client takes them for."""

    async def write() -> tuple[int, list[str | int]]:
        store = await ZooKeeperStore.open(Settings(f"{zookeeper.connect}/seen", 60_000))
        results = await store.commit(
            [
                Create("/changes"),
                Create("/changes/config_change_", b"{}", sequential=True),
                Create("/controller", b"{}", ephemeral=True),
            ]
        )
        session_id = store.session_id
        look()
        await store.close()
        return session_id, results

    seen = {}

    def look() -> None:
        client = KazooClient(zookeeper.connect)
        client.start()
        for path in ("/changes", "/changes/config_change_0000000000", "/controller"):
            seen[path] = client.get(f"/seen{path}")
        client.stop()
        client.close()

    session_id, results = asyncio.run(write())
    assert results[1] == "/changes/config_change_0000000000"
    assert seen["/changes"][0] is None
    assert seen["/changes/config_change_0000000000"][0] == b"{}"
    assert seen["/controller"][1].ephemeralOwner == session_id
