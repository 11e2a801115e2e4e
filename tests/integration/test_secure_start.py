"""`--secure` as it is typed: a broker and a cluster that nobody enters without a password."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from kazoo.client import KazooClient  # type: ignore[import-untyped]
from kazoo.exceptions import BadArgumentsError, NoAuthError  # type: ignore[import-untyped]
from kazoo.security import OPEN_ACL_UNSAFE  # type: ignore[import-untyped]

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


def test_se_2_a_broker_goes_on_when_its_first_line_was_enough(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`barnabas cluster start` closes the pipe there, and so does `head -1`."""
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")  # as in most containers: a write for each line
    broker = BrokerProcess(tmp_path)
    broker.words = ("--secure",)
    broker.start()
    try:
        assert broker.process is not None and broker.process.stdout is not None
        broker.process.stdout.close()
        option = f"--command-config {tmp_path / 'data-secure' / 'client.properties'}"
        assert run(capsys, f"topics list {option}") == ""
        assert broker.process.poll() is None
    finally:
        broker.kill()


def test_listeners_of_other_names_are_not_secured_by_the_flag(tmp_path: Path) -> None:
    broker = BrokerProcess(
        tmp_path, "listeners=A://127.0.0.1:0", "listener.security.protocol.map=A:PLAINTEXT"
    )
    broker.words = ("--secure",)
    assert "--secure secures one PLAINTEXT listener" in broker.refuse()


def every_node(owner: KazooClient, path: str = "/") -> list[str]:
    """The whole tree, without the part in which Kafka lets everyone write: offsets of old."""
    below = [] if path == "/consumers" else owner.get_children(path)
    nodes = [each for name in below for each in every_node(owner, f"{path.rstrip('/')}/{name}")]
    return [path, *nodes]


def check_strangers(zookeeper: str, secure: Path) -> None:
    """SE-6: who reaches ZooKeeper without the brokers' credentials changes no node at all."""
    own = dict(line.split("=", 1) for line in (secure / "zookeeper.properties").read_text().split())
    identity = [("digest", own["barnabas.zookeeper.credentials"])]
    owner, stranger = KazooClient(zookeeper, auth_data=identity), KazooClient(zookeeper)
    owner.start()
    stranger.start()
    try:
        paths = every_node(owner)
        assert {"/controller", "/brokers/ids/1", "/config/users/admin", "/zookeeper"} <= {*paths}
        for path in paths:
            attacks = [partial(stranger.delete, path)]
            if path != "/consumers":
                attacks += [
                    partial(stranger.create, f"{path.rstrip('/')}/mine", b"", OPEN_ACL_UNSAFE),
                    partial(stranger.set, path, b""),
                    partial(stranger.set_acls, path, OPEN_ACL_UNSAFE),
                ]
            for attack in attacks:
                with pytest.raises((NoAuthError, BadArgumentsError)):  # not even the owner may some
                    attack()
                    pytest.fail(f"a stranger did this: {attack}")
    finally:
        for client in (owner, stranger):
            client.stop()
            client.close()


def check_rights(zookeeper: str, secure: Path, capsys: Capture) -> None:
    """SE-6: who reaches ZooKeeper reads no passwords' hashes there."""
    client = KazooClient(zookeeper)
    client.start()
    try:
        assert client.get("/brokers/topics/test")[0]
        for path in ("/config/users", "/config/users/admin", "/config/brokers"):
            with pytest.raises(NoAuthError):
                client.get_children(path)
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
        zookeeper, secure = lines[0].rpartition(" on ")[2], cluster.directory / "secure"
        check_rights(zookeeper, secure, capsys)
        check_strangers(zookeeper, secure)
        assert cluster.stop() == 0
        cluster.start()
        assert "ReplicationFactor: 2" in run(capsys, f"topics describe test {option}")
        plain = f"topics list --bootstrap-server {cluster.servers}"
        assert "set security.protocol=SSL" in run(capsys, plain, 1)
    finally:
        if cluster.process is not None:
            cluster.stop()
