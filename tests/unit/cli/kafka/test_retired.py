"""UX-6: what Kafka has retired is an error that names its successor, with the line to type."""

from __future__ import annotations

import pytest

from barnabas.cli.kafka.names import CLASSES, MODULES, NOT_COVERED, REPLACED, every_script
from barnabas.cli.kafka.retired import broker_address
from barnabas.cli.kafka.run import load
from barnabas.cli.main import main


def refused(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The one line on standard error."""
    assert main(line.split()) == 1
    output, errors = capsys.readouterr()
    assert output == "" and errors.count("\n") == 1
    return errors.rstrip("\n")


@pytest.mark.parametrize(
    ("line", "to_type"),
    [
        (
            "kafka-consumer-groups.sh --list --zookeeper zk1:2181,zk2:2181/kafka",
            "kafka-consumer-groups.sh --list --bootstrap-server zk1:9092",
        ),
        (
            "kafka-consumer-groups --describe --zookeeper=localhost --group g --new-consumer",
            "kafka-consumer-groups.sh --describe --bootstrap-server localhost:9092 --group g",
        ),
        (
            "kafka-consumer-groups --list --zookeeper zk:2181 --bootstrap-server b:1",
            "kafka-consumer-groups.sh --list --bootstrap-server b:1",
        ),
        (
            "kafka-delete-records.sh --broker-list b:1,c:1 --offset-json-file f",
            "kafka-delete-records.sh --bootstrap-server b:1,c:1 --offset-json-file f",
        ),
        (
            "kafka-console-consumer.sh --new-consumer --bootstrap-server b:1 --include a|b",
            "kafka-console-consumer.sh --bootstrap-server b:1 --include 'a|b'",
        ),
        (
            "kafka-run-class kafka.tools.ConsumerOffsetChecker --zookeeper zk:2181 --group g",
            "kafka-consumer-groups.sh --describe --bootstrap-server zk:9092 --group g",
        ),
    ],
)
def test_ux_6_the_users_own_line_is_rewritten(
    line: str, to_type: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refused(line, capsys).endswith(f". Type: barnabas {to_type}")


def test_the_rewritten_line_is_one_that_runs(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused("kafka-log-dirs.sh --describe --zookeeper zk:2181 --topic-list t", capsys)
    words = said.partition("Type: barnabas ")[2].split()
    assert main([*words, "--explain"]) == 0
    ours = capsys.readouterr().out
    assert ours == "barnabas log-dirs describe --topic t --bootstrap-server zk:9092\n"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("kafka-delegation-tokens.sh --describe", 'Missing required argument "[bootstrap-server]"'),
        ("kafka-delegation-tokens.sh --create --renew", "Command must include exactly one action"),
        (
            "kafka-delegation-tokens.sh --create --bootstrap-server b:1 --command-config c",
            'Missing required argument "[max-life-time-period]"',
        ),
        (
            "kafka-delegation-tokens.sh --describe --hmac h --bootstrap-server b:1 "
            "--command-config c",
            'Option "[describe]" can\'t be used with option "[hmac]"',
        ),
        ("zookeeper-security-migration.sh --zookeeper.acl safe", "--zookeeper.acl secure or"),
        (
            "zookeeper-security-migration.sh --zookeeper.acl secure",
            "No JAAS configuration file has been specified and no TLS client certificate",
        ),
        ("connect-standalone.sh worker.properties", "without Kafka Connect"),
        ("kafka-mirror-maker.sh --consumer.config c", "MirrorMaker 2"),
        ("kafka-storage.sh format", "needs no formatting"),
        ("kafka-topisc.sh --list", "did you mean kafka-topics.sh?"),
        ("kafka-topics.bat --list", "did you mean kafka-topics.sh?"),
        ("kafka-xyzzyxyzzyxyzzy.sh", "no such script"),
        ("kafka-run-class.sh", "name a class"),
        ("kafka-run-class.sh kafka.admin.TopicComand", "did you mean kafka.admin.TopicCommand?"),
        ("kafka-run-class.sh com.example.Main", "no class com.example.Main"),
        ("zookeeper-server-start.sh", "USAGE: zookeeper-server-start.sh [-daemon]"),
        ("zookeeper-server-start.sh no-such.properties", "no-such.properties: No such file"),
        ("zookeeper-server-stop.sh no-such.properties", "no-such.properties: No such file"),
        ("zkServer.sh print", "USAGE: zkServer.sh"),
        ("zookeeper-shell.sh localhost:2181", "no interactive shell"),
        ("zookeeper-shell.sh localhost:2181 create /x y", "only get and ls are supported"),
        ("kafka-cluster.sh unregister --bootstrap-server b:1 --id 1", "does not support"),
        ("kafka-configs.sh --describe --client-metrics m --bootstrap-server b:1", "metrics"),
        ("kafka-preferred-replica-election.sh --admin.config f", "Exactly one of '[bootstrap-s"),
        ("kafka-topics.sh --list", "--bootstrap-server must be specified"),
        ("kafka-topics.sh --list --bootstrap-server b:1 --zookeeper z:1", "Only one of"),
        ("kafka-topics.sh --list --zookeeper z:x --explain", "'z:x' is not an address"),
        (
            "kafka-topics.sh --create --topic t --partitions 1 --zookeeper z:1",
            'Missing required argument "[replication-factor]"',
        ),
        (
            "kafka-topics.sh --describe --zookeeper z:1 --at-min-isr-partitions",
            'Option "[at-min-isr-partitions]" can\'t be used with option "[zookeeper]"',
        ),
        (
            "kafka-topics.sh --alter --topic t --delete-config c --partitions 2 "
            "--bootstrap-server b:1",
            "--delete-config can be used only with --zookeeper",
        ),
        ("kafka-topics.sh --list --create --bootstrap-server b:1", "exactly one action"),
        (
            "kafka-topics.sh --list --bootstrap-server b:1 extra",
            "extra: not the value of an option",
        ),
        ("kafka-topics.sh --lst --bootstrap-server b:1", "did you mean --list?"),
        (
            "kafka-topics.sh --list --partitions 3 --bootstrap-server b:1",
            'Option "[partitions]" can\'t be used with option "[list]"',
        ),
        (
            "kafka-console-consumer.sh --topic t --offset 5 --bootstrap-server b:1",
            "The partition is required when offset is specified",
        ),
        (
            "kafka-console-consumer.sh --topic t --formatter com.example.F --bootstrap-server b:1",
            "com.example.F: Java classes cannot be run",
        ),
        ("kafka-simple-consumer-shell.sh --topic t", "add --broker-list"),
        ("kafka-simple-consumer-shell.sh --topic t --broker-list b:1 --replica 2", "--replica 2"),
        ("kafka-simple-consumer-shell.sh --topic t --broker-list b:1 --offset -3", "offset: -3"),
        ("kafka-dump-log.sh --files x --max-bytes 5", "--max-bytes"),
        ("kafka-producer-perf-test.sh --topic t", 'Missing required argument "[num-records]"'),
        ("kafka-transactions.sh --bootstrap-server b:1 lst", "give one of list, describe"),
        ("kafka-reassign-partitions.sh --bootstrap-server b:1", "exactly one of --generate"),
    ],
)
def test_ux_6_what_is_wrong_or_missing_is_said_in_one_line(
    line: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(line, capsys)
    assert said.startswith(f"{line.split()[0]}: ")
    assert reason in said


def test_every_tool_can_be_loaded_and_has_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    for script in MODULES:
        tool = load(script)
        names = [option.name for option in tool.options]
        assert len(set(names)) == len(names), script
        assert not set(names) & set(tool.retired), script
        for rule in tool.retired.values():
            assert not rule.replacement or rule.replacement in names, (script, rule)
        assert set(tool.older.values()) <= set(names), script
        assert not set(tool.older) & {*names, *tool.retired}, script
        assert main([f"{script}.sh", "--help"]) == 0
        output, errors = capsys.readouterr()
        assert errors == "" and f"Usage: barnabas {script}.sh" in output and "--explain" in output
    assert main(["kafka-topics.sh"]) == 1
    output, errors = capsys.readouterr()
    assert output == "" and "Usage: barnabas kafka-topics.sh" in errors


def test_names_lead_somewhere() -> None:
    assert set(CLASSES.values()) <= {*every_script(), *NOT_COVERED}
    assert {rule.tool for rule in REPLACED.values()} <= {*MODULES, ""}
    assert not set(MODULES) & (set(REPLACED) | set(NOT_COVERED))


def test_the_brokers_address_is_guessed_from_zookeepers() -> None:
    assert broker_address("zk1:2181,zk2:2181/kafka") == "zk1:9092"
    assert broker_address("zk1") == "zk1:9092"
    assert broker_address("[::1]:2181") == "[::1]:9092"
    assert broker_address("") == "localhost:9092"
