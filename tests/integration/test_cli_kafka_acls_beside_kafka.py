"""UX-6: `kafka-acls.sh` behind `barnabas` prints and does the same as that of Kafka 3.9.1.

Both ask one broker. Where several rules are listed the order is that of a hash table there.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest

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
