"""UX-6: `kafka-acls.sh` behind `barnabas` prints and does the same as that of Kafka 3.9.1.

Both ask one broker. Where several rules are listed the order is that of a hash table there.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient  # type: ignore[import-untyped]

from barnabas import Broker
from barnabas.cli.main import main
from barnabas.client import (
    AclBinding,
    AclEntry,
    AclFilter,
    Operation,
    Pattern,
    PatternType,
    PermissionType,
    ResourceType,
    SyncAdmin,
)
from tests.kit.clients.kafka_tools import Tools
from tests.kit.processes.zookeeper_process import ZooKeeperProcess

pytestmark = [pytest.mark.foreign, pytest.mark.slow]

READ = AclEntry("User:alice", "*", Operation.READ, PermissionType.ALLOW)
SEEDED = (
    AclBinding(Pattern(ResourceType.TOPIC, "seeded"), READ),
    AclBinding(Pattern(ResourceType.TOPIC, "seed", PatternType.PREFIXED), READ),
    AclBinding(
        Pattern(ResourceType.GROUP, "g"),
        READ._replace(permission=PermissionType.DENY, host="10.0.0.7"),
    ),
)


def ordered(output: str) -> str | list[list[str]]:
    """The output as it is; of several rules their blocks and lines in order, as a hash table's
    last line, not the last in order, has a blank behind it."""
    if output.count("(principal=") < 2:
        return output
    blocks = (block.splitlines() for block in output.split(" \n\n"))
    return sorted([*block[:1], *sorted(each.strip() for each in block[1:])] for block in blocks)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    config = {
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with Broker(config=config) as running:
        yield running


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("--add --allow-principal User:bob --operation read --operation Write --topic t", ""),
        (
            "--add --allow-principal User:bob --deny-principal User:eve --deny-host 10.0.0.7 "
            "--group g --resource-pattern-type prefixed",
            "",
        ),
        ("--add --allow-principal User:bob --producer --topic t --transactional-id x", ""),
        ("--add --allow-principal User:bob --producer --idempotent --topic t", ""),
        ("--add --allow-principal User:bob --consumer --topic t --group g", ""),
        ("--list", ""),
        ("--list --topic seeded --principal User:alice", ""),
        ("--list --topic seeded --resource-pattern-type match", ""),
        ("--remove --topic seeded", "n\n"),
        ("--remove --topic seeded", "y\n"),
        ("--remove --allow-principal User:alice --operation read --topic seeded", "Y\n"),
        ("--remove --topic seeded --resource-pattern-type match --force", ""),
        ("--add --allow-principal User:bob --operation create --group g", ""),
        ("--add --operation read --topic t", ""),
    ],
)
def test_ux_6_kafkas_tool_for_rules_prints_and_does_the_same(
    line: str,
    answer: str,
    broker: Broker,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = ["--bootstrap-server", broker.bootstrap_servers, *line.split()]
    with SyncAdmin(broker.bootstrap_servers) as admin:

        def outcome(run: str) -> tuple[str | list[list[str]], int, set[AclBinding]]:
            admin.delete_acls(AclFilter())
            admin.create_acls(SEEDED)
            if run == "theirs":
                tools = Tools(broker.bootstrap_servers, tmp_path)
                done = tools.try_run("kafka-acls", *words, stdin=answer)
                output, code = done.stdout, done.returncode
            else:
                monkeypatch.setattr("sys.stdin", io.StringIO(answer))
                capfd.readouterr()
                code = main(["kafka-acls.sh", *words])
                output = capfd.readouterr().out
            return ordered(output), code, set(admin.describe_acls())

        assert outcome("ours") == outcome("theirs")


IN_THE_TREE = (
    ("--list", ""),
    ("--add --allow-principal User:bob --operation read --operation Write --topic t", ""),
    ("--add --allow-principal User:bob --operation read --topic t --topic u --group *", ""),
    (
        "--add --allow-principal User:bob --producer --topic p --resource-pattern-type prefixed "
        "--deny-principal User:eve --deny-host 10.0.0.7 --operation read",
        "",
    ),
    ("--add --allow-principal User:bob --producer --idempotent --topic p", ""),
    ("--list", ""),
    ("--list --topic t --principal User:bob --principal User:nobody", ""),
    ("--remove --topic t --allow-principal User:bob --operation read", "n\n"),
    ("--remove --topic t --allow-principal User:bob --operation read", "y\n"),
    ("--remove --topic u", "y\n"),
    ("--remove --topic nothing --force", ""),
    ("--add --operation read --topic t", ""),
    ("--list --command-config /dev/null", ""),
    ("--list --bootstrap-server 127.0.0.1:1", ""),
    ("--list --authorizer kafka.security.authorizer.AclAuthorizer", ""),
)


def test_ux_6_rules_written_into_zookeeper_are_those_of_kafkas_tool(
    zookeeper: ZooKeeperProcess,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same lines, each on a tree of its own: output, warning, exit code and nodes."""
    tools = Tools("", tmp_path)

    def at(chroot: str) -> list[str]:
        return ["--authorizer-properties", f"zookeeper.connect={zookeeper.connect}/{chroot}"]

    for line, answer in IN_THE_TREE:
        words = line.split()
        done = tools.try_run("kafka-acls", *at("theirs"), *words, stdin=answer)
        monkeypatch.setattr("sys.stdin", io.StringIO(answer))
        capfd.readouterr()
        code = main(["kafka-acls.sh", *at("ours"), *words])
        captured = capfd.readouterr()
        assert (ordered(captured.out), code) == (ordered(done.stdout), done.returncode), line
        if not code:
            assert captured.err == done.stderr, line
        assert tree(zookeeper, "/ours") == tree(zookeeper, "/theirs"), line
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert main(["kafka-acls.sh", *at("theirs"), "--remove", "--topic", "t"]) == 0
    assert "name=t," not in tools.try_run("kafka-acls", *at("theirs"), "--list").stdout


def tree(zookeeper: ZooKeeperProcess, root: str) -> dict[str, object]:
    """Every node below, with its data; the order of a node's rules is that of a hash table."""
    client = KazooClient(zookeeper.connect)
    client.start()
    found: dict[str, object] = {}
    left = [root]
    while left:
        path = left.pop()
        data, _ = client.get(path)
        is_rules = data is not None and data.startswith(b'{"acls"')
        rules = sorted(map(str, json.loads(data)["acls"])) if is_rules else data
        found[path.removeprefix(root)] = rules
        left += [f"{path}/{child}" for child in client.get_children(path)]
    client.stop()
    client.close()
    return found
