"""UX-6, SE-6: `zookeeper-security-migration.sh` does to a tree what Kafka 3.9.1's does.

Both log in to one ZooKeeper as the same user, each to a tree of its own below a chroot.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient  # type: ignore[import-untyped]

from barnabas.cli.main import main
from barnabas.cluster.store import Create
from tests.kit.clients.kafka_tools import Tools
from tests.kit.metadata_stores import opened
from tests.kit.processes.zookeeper_process import ZooKeeperProcess

pytestmark = [pytest.mark.foreign, pytest.mark.slow]

SECRET = "planted-secret-7"
MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule required"
JAAS = f"""Server {{ {MODULE} user_broker="{SECRET}"; }};
Client {{ {MODULE} username="broker" password="{SECRET}"; }};
"""
PATHS = (
    *("/brokers", "/brokers/topics", "/brokers/topics/t", "/config", "/config/users"),
    *("/config/users/alice", "/config/brokers", "/delegation_token", "/consumers", "/other"),
)
Tree = dict[str, list[tuple[str, str, int]]]


@pytest.fixture(scope="module")
def jaas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("jaas") / "jaas.conf"
    path.write_text(JAAS)
    return path


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory, jaas: Path) -> Iterator[ZooKeeperProcess]:
    provider = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
    running = ZooKeeperProcess(
        tmp_path_factory.mktemp("zookeeper"),
        config=f"authProvider.sasl={provider}",
        java_options=(f"-Djava.security.auth.login.config={jaas}",),
    )
    try:
        running.start()
        yield running
    finally:
        if running.process is not None:
            running.kill()


def rights(connect: str) -> Tree:
    """Of every node, as the user that owns them is answered."""
    sasl = {"mechanism": "DIGEST-MD5", "username": "broker", "password": SECRET}
    client = KazooClient(connect, sasl_options=sasl)
    client.start()
    try:
        found, left = {}, ["/"]
        while left:
            path = left.pop()
            acls, _ = client.get_acls(path)
            found[path] = sorted((acl.id.scheme, acl.id.id, acl.perms) for acl in acls)
            left += [f"{path.rstrip('/')}/{name}" for name in client.get_children(path)]
        return found
    finally:
        client.stop()
        client.close()


def test_se_6_kafkas_tool_for_rights_does_the_same(
    zookeeper: ZooKeeperProcess,
    jaas: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both ways, and where nodes are missing."""
    file = tmp_path / "zookeeper.properties"
    file.write_text(
        f"barnabas.zookeeper.credentials=broker:{SECRET}\n"
        "barnabas.zookeeper.credentials.scheme=sasl\n"
    )
    monkeypatch.setenv("JDK_JAVA_OPTIONS", f"-Djava.security.auth.login.config={jaas}")
    tools = Tools("", tmp_path)
    script = "zookeeper-security-migration"

    def outcomes(who: str) -> list[tuple[int, str, Tree]]:
        connect = f"{zookeeper.connect}/{who}"

        async def create() -> None:
            async with opened(connect) as store:
                await store.commit([Create(path, b"") for path in PATHS])

        def run(*words: str) -> tuple[int, str, Tree]:
            line = ("--zookeeper.connect", connect, *words)
            if who == "theirs":
                done = tools.try_run(script, *line)
                code, output = done.returncode, done.stdout
            else:
                capfd.readouterr()
                code = main([f"{script}.sh", *line, "--zk-tls-config-file", str(file)])
                output, errors = capfd.readouterr()
                assert (errors, SECRET in output) == ("", False)
            return code, output, rights(connect)

        asyncio.run(create())
        return [
            run("--zookeeper.acl", "secure", "--enable.path.check"),
            run("--zookeeper.acl", "secure"),
            run("--zookeeper.acl", "unsecure"),
        ]

    ours = outcomes("ours")
    assert ours == outcomes("theirs")
    assert [code for code, _, _ in ours] == [1, 0, 0]
