"""`--secure` as it is typed: a broker and a cluster that nobody enters without a password."""

from __future__ import annotations

from pathlib import Path

import pytest
from kazoo.client import KazooClient  # type: ignore[import-untyped]
from kazoo.exceptions import NoAuthError  # type: ignore[import-untyped]

from barnabas.cli.main import main
from tests.kit.processes.broker_process import BrokerProcess
from tests.kit.processes.local_cluster import LocalCluster

Capture = pytest.CaptureFixture[str]


def run(capture: Capture, line: str, code: int = 0) -> str:
    capture.readouterr()
    actual = main(line.split())
    captured = capture.readouterr()
    assert actual == code, captured.err
    return captured.out if code == 0 else captured.err


def test_se_2_se_3_a_broker_is_secured_by_one_flag(tmp_path: Path, capsys: Capture) -> None:
    """What it prints is what to type next; a restart has the same users and certificates."""
    broker = BrokerProcess(tmp_path)
    broker.words = ("--secure",)
    secure = tmp_path / "data-secure"
    broker.start()
    try:
        assert broker.process is not None and broker.process.stdout is not None
        said = [broker.process.stdout.readline() for _ in range(3)]
        assert [line.split()[:2] for line in said] == [
            ["barnabas", "topics"],
            ["barnabas", "users"],
            ["barnabas", "acls"],
        ]
        assert said[0].startswith("  barnabas topics create test --command-config ")
        assert run(capsys, said[0].removeprefix("  barnabas ")) == "Created topic test.\n"
        option = f"--command-config {secure / 'client.properties'}"
        alice = tmp_path / "alice.properties"
        lost = tmp_path / "missing" / "alice.properties"
        refused = run(capsys, f"users add alice --file {lost} {option}", 2)
        assert f"directory {lost.parent} is missing or not writable" in refused
        run(capsys, f"users add alice --file {alice} {option}")  # so it was not added before
        before = {path.name: path.read_bytes() for path in secure.iterdir()}
        assert broker.stop() == 0

        broker.start()
        assert {path.name: path.read_bytes() for path in secure.iterdir()} == before
        assert run(capsys, f"topics list {option}") == "test\n"
        assert run(capsys, f"topics list --command-config {alice}") == ""
        plain = f"topics list --bootstrap-server {broker.bootstrap_servers}"
        assert "set security.protocol=SSL" in run(capsys, plain, 1)
    finally:
        if broker.process is not None:
            broker.kill()
    log = broker.log.read_text()
    secrets = (secure / "users.json").read_text().split('"')[3::4]
    assert len(secrets) == 2
    for secret in (*secrets, alice.read_text().rpartition('password="')[2].partition('"')[0]):
        assert len(secret) > 20 and secret not in log, "SE-6"


def test_listeners_of_other_names_are_not_secured_by_the_flag(tmp_path: Path) -> None:
    broker = BrokerProcess(
        tmp_path, "listeners=A://127.0.0.1:0", "listener.security.protocol.map=A:PLAINTEXT"
    )
    broker.words = ("--secure",)
    assert "--secure secures one PLAINTEXT listener" in broker.refuse()


def check_rights(zookeeper: str, secure: Path, capsys: Capture) -> None:
    """SE-6: who reaches ZooKeeper reads no passwords' hashes there, and changes nothing."""
    client = KazooClient(zookeeper)
    client.start()
    try:
        assert client.get("/brokers/topics/test")[0]
        for path in ("/config/users", "/config/users/admin", "/config/brokers"):
            with pytest.raises(NoAuthError):
                client.get_children(path)
        for path in ("/brokers/topics/test", "/kafka-acl", "/controller_epoch"):
            with pytest.raises(NoAuthError):
                client.set(path, b"")
    finally:
        client.stop()
        client.close()
    own = f"--zookeeper-connect {zookeeper} --config {secure / 'zookeeper.properties'}"
    assert "admin" in run(capsys, f"metadata ls /config/users {own}")


def test_se_2_se_3_a_cluster_is_secured_by_one_flag(tmp_path: Path, capsys: Capture) -> None:
    """Brokers log in to each other with a user that the tree in ZooKeeper has from the start; and
    it stays secured."""
    cluster = LocalCluster(tmp_path)
    option = f"--command-config {cluster.directory / 'secure' / 'client.properties'}"
    try:
        lines = cluster.start("--secure", "--brokers", "2")
        assert lines[-2] == f"admin connects with {option}"
        run(capsys, f"topics create test --replication-factor 2 {option}")
        assert run(capsys, f"cluster health {option}").startswith("healthy: 2 brokers")
        check_rights(lines[0].rpartition(" on ")[2], cluster.directory / "secure", capsys)
        assert cluster.stop() == 0
        cluster.start()
        assert "ReplicationFactor: 2" in run(capsys, f"topics describe test {option}")
        plain = f"topics list --bootstrap-server {cluster.servers}"
        assert "set security.protocol=SSL" in run(capsys, plain, 1)
    finally:
        if cluster.process is not None:
            cluster.stop()
