"""UX-5: Kafka's command lines with --zookeeper, on a real ZooKeeper."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from barnabas.cli.main import main
from barnabas.client import SyncAdmin
from barnabas.cluster.image import BrokerImage, Endpoint
from barnabas.cluster.layout import decode_config, encode_broker
from barnabas.cluster.zookeeper import ZooKeeperStore
from barnabas.cluster.zookeeper_settings import Settings
from barnabas.security.password_encoder import PasswordEncoder
from barnabas.security.scram import is_of_password, parse_credential
from tests.kit.processes.broker_process import broker_process, free_port
from tests.kit.processes.zookeeper_process import ZooKeeperProcess
from tests.kit.processes.zookeeper_tree import fill

if TYPE_CHECKING:
    from barnabas.testing.embedded.broker import Broker

Capture = pytest.CaptureFixture[str]
WARNING = (
    "Warning: --zookeeper is deprecated and will be removed in a future version of Kafka.\n"
    "Use --bootstrap-server instead to specify a broker to connect to.\n"
)


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
    assert "zookeeper.connect=127.0.0.1:1/k: no response from ZooKeeper within" in errors


FIRST = ("--entity-type", "users", "--entity-name", "first user")
SCRAM = "SCRAM-SHA-256=[iterations=8192,password=planted]"


def nodes(connect: str, *paths: str) -> list[bytes | None]:
    async def read() -> list[bytes | None]:
        store = await ZooKeeperStore.open(Settings(connect, 60_000))
        found = await store.read_many(paths)
        await store.close()
        return [None if node is None else node.data for node in found]

    return asyncio.run(read())


def test_ux_5_the_first_user_of_a_cluster_is_made_while_no_broker_runs(
    root: str, tmp_path: Path, capfd: Capture
) -> None:
    """As by Kafka 3.9.1; the broker that starts then lets the user in."""
    configs = ("kafka-configs.sh", "--zookeeper", root)
    alter = (*configs, "--alter", *FIRST)
    assert "has no node" in run(capfd, *alter, "--add-config", SCRAM, code=1)[1]
    fill(root, {"/empty": None})
    assert run(capfd, *alter, "--add-config", f"{SCRAM},SCRAM-SHA-512=[password=x]") == (
        "Completed updating config for entity: user-principal 'first user'.\n",
        WARNING,
    )
    run(capfd, *alter, "--delete-config", "SCRAM-SHA-512")
    errors = run(capfd, *alter, "--delete-config", "SCRAM-SHA-512", code=1)[1]
    assert errors == f"{WARNING}kafka-configs.sh: Invalid config(s): SCRAM-SHA-512\n"
    path = "/config/users/first%20user"
    user, change = nodes(root, path, "/config/changes/config_change_0000000001")
    assert change == b'{"version":2,"entity_path":"users/first%20user"}'
    [(mechanism, text)] = decode_config(path, user).items()
    credential = parse_credential(mechanism, text)
    assert credential.iterations == 8192 and is_of_password(mechanism, credential, "planted")
    described = run(capfd, *configs, "--describe", "--entity-type", "users")[0]
    assert described == f"Configs for user-principal 'first user' are {mechanism}={text}\n"
    ports = free_port(), free_port()
    with broker_process(
        tmp_path,
        "broker.id=1",
        f"zookeeper.connect={root}",
        f"listeners=OPEN://127.0.0.1:{ports[0]},IN://127.0.0.1:{ports[1]}",
        "listener.security.protocol.map=OPEN:PLAINTEXT,IN:SASL_PLAINTEXT",
        "inter.broker.listener.name=OPEN",
        "sasl.enabled.mechanisms=SCRAM-SHA-256",
    ):
        SyncAdmin(
            f"127.0.0.1:{ports[1]}",
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="SCRAM-SHA-256",
            sasl_plain_username="first user",
            sasl_plain_password="planted",
        ).close()
    run(capfd, *alter, "--delete-config", "SCRAM-SHA-256")
    assert nodes(root, path) == [None]


def test_ux_5_settings_of_a_broker_that_does_not_run_are_written(root: str, capfd: Capture) -> None:
    """As by Kafka 3.9.1: checked here, and passwords are encrypted by a secret that is not kept."""
    configs = ("kafka-configs.sh", "--zookeeper", root, "--entity-type", "brokers")
    fill(root, {"/brokers/ids/2": registration("127.0.0.1:1")})
    password = "listener.name.in.ssl.keystore.password=planted"
    added = f"log.cleaner.threads=2,{password},password.encoder.secret=secret"
    output = run(capfd, *configs, "--entity-name", "1", "--alter", "--add-config", added)[0]
    assert output == "Completed updating config for entity: brokers '1'.\n"
    [data] = nodes(root, "/config/brokers/1")
    stored = decode_config("/config/brokers/1", data)
    name = password.partition("=")[0]
    assert {*stored} == {"log.cleaner.threads", name}
    assert PasswordEncoder("secret").decode(stored[name]) == "planted"
    for words, reason in (
        (("--entity-name", "2", "--alter", "--add-config", "log.cleaner.threads=2"), "broker 2 is"),
        (("--entity-default", "--alter", "--add-config", "log.cleaner.threads=2"), "1 brokers are"),
        (("--entity-name", "2", "--describe"), "broker 2 is running"),
        (("--describe",), "--entity-name or --entity-default is needed"),
        (("--entity-name", "1", "--alter", "--add-config", password), "secret not configured"),
        (("--entity-name", "1", "--alter", "--add-config", "log.dirs=/d"), "log.dirs cannot be"),
        (("--entity-name", "1", "--alter", "--add-config", "log.cleaner.threads=x"), "'x' is not"),
        (
            ("--entity-name", "1", "--alter", "--delete-config", "log.dirs"),
            "Invalid config(s): log",
        ),
    ):
        errors = run(capfd, *configs, *words, code=1)[1].removeprefix(WARNING)
        assert reason in errors and errors.count("\n") == 1 and "planted" not in errors
    assert nodes(root, "/config/brokers/1") == [data]


def test_ux_4_users_of_brokers_that_own_their_tree(
    root: str, tmp_path: Path, capfd: Capture
) -> None:
    """SE-6: only with the brokers' credentials; and the nodes that are written belong to them."""
    file = tmp_path / "zookeeper.properties"
    file.write_text("zookeeper.set.acl=true\nbarnabas.zookeeper.credentials=broker:secret\n")
    fill(root, {"/empty": None})
    configs = ("kafka-configs.sh", "--zookeeper", root)
    alter = (*configs, "--alter", *FIRST, "--add-config", SCRAM)
    run(capfd, *alter, "--zk-tls-config-file", str(file))
    for words in (alter, (*configs, "--describe", *FIRST)):
        errors = run(capfd, *words, code=1)[1].removeprefix(WARNING)
        assert errors.count("\n") == 1 and "planted" not in errors
        assert (
            "ZooKeeper refused it, NoAuthError; if only the brokers have access, give a file"
            in errors
        )
    described = run(capfd, *configs, "--describe", *FIRST, "--zk-tls-config-file", str(file))[0]
    assert described.startswith("Configs for user-principal 'first user' are SCRAM-SHA-256=salt=")
