"""UX-5: Kafka's command lines with --zookeeper, on a real ZooKeeper."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from barnabas.cli.main import main
from barnabas.cluster.image import BrokerImage, Endpoint
from barnabas.cluster.layout import encode_broker
from barnabas.cluster.store import Create
from barnabas.cluster.zookeeper import ZooKeeperStore
from barnabas.cluster.zookeeper_settings import Settings
from tests.kit.processes.zookeeper_process import ZooKeeperProcess, zookeeper_process

if TYPE_CHECKING:
    from barnabas.broker.embedded.broker import Broker

Capture = pytest.CaptureFixture[str]
WARNING = (
    "Warning: --zookeeper is deprecated and will be removed in a future version of Kafka.\n"
    "Use --bootstrap-server instead to specify a broker to connect to.\n"
)


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperProcess]:
    with zookeeper_process(tmp_path_factory.mktemp("cli")) as running:
        yield running


@pytest.fixture
def root(zookeeper: ZooKeeperProcess, tmp_path: Path) -> str:
    """A connect string with a chroot that no other test has."""
    return f"{zookeeper.connect}/{tmp_path.name}"


def fill(connect: str, nodes: Mapping[str, bytes | None]) -> None:
    async def write() -> None:
        store = await ZooKeeperStore.open(Settings(connect, 60_000))
        paths = {path[:end] for path in nodes for end in range(len(path)) if path[end] == "/"}
        for path in sorted({*paths, *nodes} - {""}):
            await store.commit([Create(path, nodes.get(path))])
        await store.close()

    asyncio.run(write())


def registration(servers: str) -> bytes:
    host, _, port = servers.rpartition(":")
    endpoint = Endpoint("PLAINTEXT", host, int(port), "PLAINTEXT")
    return encode_broker(BrokerImage(0, (endpoint,), None, 1), 0)


def run(capfd: Capture, *words: str, code: int = 0) -> tuple[str, str]:
    capfd.readouterr()
    actual = main(list(words))
    captured = capfd.readouterr()
    assert actual == code, captured.err
    return captured.out, captured.err


def test_ux_5_the_texts_lines_for_topics(root: str, broker: Broker, capfd: Capture) -> None:
    nodes = {
        "/brokers/ids/0": registration(broker.bootstrap_servers),
        "/admin/delete_topics/leaving": None,
    }
    fill(root, nodes)
    topics = ("kafka-topics.sh", "--zookeeper", root)
    new = ("--create", "--replication-factor", "1", "--partitions", "1", "--topic")
    assert run(capfd, *topics, *new, "test") == ("Created topic test.\n", WARNING)
    run(capfd, *topics, *new, "leaving")
    output = run(capfd, *topics, "--list")[0]
    assert {"test", "leaving - marked for deletion"} <= set(output.splitlines())
    assert run(capfd, *topics, "--describe", "--topic", "test")[0] == (
        "Topic:test\tPartitionCount:1\tReplicationFactor:1\tConfigs:\n"
        "\tTopic: test\tPartition: 0\tLeader: 0\tReplicas: 0\tIsr: 0\n"
    )
    heading = run(capfd, *topics, "--describe", "--topic", "leaving")[0].splitlines()[0]
    assert heading.endswith("Configs:\tMarkedForDeletion:true")
    assert run(capfd, *topics, "--delete", "--topic", "leaving")[0] == (
        "Topic leaving is already marked for deletion.\n"
    )
    words = ("--alter", "--topic", "test", "--partitions", "2", "--config", "retention.ms=5")
    at = f"--bootstrap-server {broker.bootstrap_servers}"
    assert run(capfd, *topics, *words, "--explain") == (
        f"barnabas configs alter --topic test --add retention.ms=5 {at}\n"
        f"barnabas topics alter test --partitions 2 {at}\n",
        "",
    )
    output = run(capfd, *topics, *words)[0]
    assert "Updated config for topic test." in output and "Adding partitions succeeded!" in output


def test_ux_4_a_zookeeper_without_brokers(
    root: str, zookeeper: ZooKeeperProcess, capfd: Capture
) -> None:
    words = ("kafka-topics.sh", "--list", "--zookeeper")
    errors = run(capfd, *words, root, code=1)[1].removeprefix(WARNING)
    assert errors.count("\n") == 1 and f"this ZooKeeper has no node /{root.split('/')[1]}" in errors
    fill(root, {"/empty": None})
    assert "no broker has ever registered there" in run(capfd, *words, root, code=1)[1]
    fill(root, {"/brokers/ids": None})
    errors = run(capfd, *words, root, code=1)[1].removeprefix(WARNING)
    assert errors == (
        f"kafka-topics.sh: --zookeeper {root}: no broker is registered there; start one and try "
        "again\n"
    )
    errors = run(capfd, *words, "127.0.0.1:1/k", code=1)[1].removeprefix(WARNING)
    assert errors.count("\n") == 1
    assert "zookeeper.connect=127.0.0.1:1/k: no ZooKeeper has answered within" in errors
