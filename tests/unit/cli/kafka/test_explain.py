"""UX-6: `--explain` prints our command for a line of Kafka's; every line of the docs is tried."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from barnabas.cli.app import app
from barnabas.cli.main import main
from tests.kit.foreign import CHECKOUT

PAGE = CHECKOUT / "docs" / "kafka-commands.md"
ROW = re.compile(r"\| `(kafka-|zookeeper-)([^`]*)` \| `(barnabas [^`]*)` \|")
AT = "--bootstrap-server b:1"


def documented() -> list[tuple[str, str]]:
    found = map(ROW.fullmatch, PAGE.read_text(encoding="utf-8").splitlines())
    return [(each[1] + each[2], each[3]) for each in found if each]


def explained(line: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Our lines for one of Kafka's."""
    code = main([*shlex.split(line), "--explain"])
    output, errors = capsys.readouterr()
    assert (code, errors) == (0, ""), errors
    return output.splitlines()


def check_is_a_command(line: str) -> None:
    """Our own parser takes it; nothing runs. Raises click.UsageError if it does not."""
    words = shlex.split(line)[1:]
    command: click.Command = app
    context = None
    while isinstance(command, click.Group):
        context = click.Context(command, context)
        name, found, words = command.resolve_command(context, words)
        assert found is not None, name
        command = found
    command.make_context(command.name, words, parent=context)


def test_ux_6_every_line_of_the_page_has_the_command_that_it_names(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = documented()
    assert len(rows) > 30
    for kafkas, ours in rows:
        assert explained(kafkas, capsys) == [ours]
        if "dump" not in ours and "reassign" not in ours:  # those ask for files that are there
            check_is_a_command(ours)


@pytest.mark.parametrize(
    ("kafkas", "ours"),
    [
        (f"kafka-topics --create --topic t {AT}", "topics create t"),
        (f"kafka-topics -create -topic=t {AT}", "topics create t"),
        (
            f"kafka-acls --add --allow-principal User:a --cluster --topic t {AT}",
            "acls add --user a --operation all --topic t --cluster",
        ),
        (
            f"kafka-acls --add --allow-principal Group:a --producer --idempotent --topic t {AT}",
            "acls add --principal Group:a --producer --idempotent --topic t",
        ),
        (
            f"kafka-acls --remove --producer --topic t --group g --resource-pattern-type any {AT}",
            "acls remove --topic t --resource-pattern-type any",
        ),
        (
            f"kafka-acls --remove --deny-principal User:a --operation AlterConfigs --topic t {AT}",
            "acls remove --user a --deny --host '*' --operation alter-configs --topic t",
        ),
        (f"kafka-acls --list {AT}", "acls list"),
        (
            f"kafka-topics --create --topic t --replica-assignment 0:1,1:0 {AT}",
            "topics create t --replica-assignment 0:1,1:0",
        ),
        (f"kafka-topics --delete --topic a,b --if-exists {AT}", "topics delete a b --if-exists"),
        (
            f"kafka-console-producer --topic t --property parse.headers=true "
            f"--property parse.key=true --compression-codec {AT}",
            "produce t --key-separator '\\t' --headers-separator '\\t' --compression-type gzip",
        ),
        (
            f"kafka-console-producer --topic t --timeout 5 --producer-property acks=1 {AT}",
            "produce t --producer-property linger.ms=5 --producer-property acks=1",
        ),
        ("kafka-console-producer --broker-list b:1 --topic t", "produce t"),
        (f"kafka-console-producer --broker-list c:1 --topic t {AT}", "produce t"),
        ("kafka-get-offsets --broker-list b:1 --topic t --max-wait-ms 5", "offsets t"),
        (
            "kafka-consumer-perf-test --broker-list b:1 --topic t --messages 5 --threads 2",
            "perf consume t --messages 5",
        ),
        (f"kafka-console-consumer --whitelist 'a|b' {AT}", "consume --include 'a|b'"),
        (
            "kafka-run-class kafka.tools.SimpleConsumerShell --broker-list b:1 --topic "
            "__transaction_state --partition 7 --no-wait-at-logend --print-offsets --formatter "
            "'kafka.coordinator.transaction.TransactionLog$TransactionLogMessageFormatter'",
            "consume __transaction_state --partition 7 --offset earliest --format transactions "
            "--exit-at-end",
        ),
        (
            "kafka-simple-consumer-shell --broker-list b:1 --topic t --offset 5 --max-messages 1",
            "consume t --partition 0 --offset 5 --max-messages 1",
        ),
        (
            "kafka-verifiable-producer --broker-list b:1 --topic t --max-messages 5 --throughput "
            "-1 --acks -1 --value-prefix 7",
            "verifiable-producer t --max-messages 5 --acks -1 --value-prefix 7",
        ),
        (
            "kafka-verifiable-consumer --broker-list b:1 --topic t --group-id g --verbose",
            "verifiable-consumer t --group-id g --verbose",
        ),
        (
            f"kafka-console-consumer --include 'a.*' --property print.timestamp=true "
            f"--property print.headers=true --property key.separator=' ' {AT}",
            "consume --include 'a.*' --format 'CreateTime:{timestamp} {headers} {value}'",
        ),
        (
            "kafka-console-consumer --topic __consumer_offsets --from-beginning --formatter "
            f"'kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter' {AT}",
            "consume __consumer_offsets --from-beginning --format offsets",
        ),
        (f"kafka-consumer-groups --list --state {AT}", "groups list --state"),
        (f"kafka-consumer-groups --list --state=Stable {AT}", "groups list --state Stable"),
        (f"kafka-configs --describe --broker 0 --all {AT}", "configs describe --broker 0 --all"),
        (
            f"kafka-configs --alter --entity-type broker-loggers --entity-name 0 "
            f"--add-config barnabas.broker=DEBUG {AT}",
            "configs alter --broker-loggers 0 --add barnabas.broker=DEBUG",
        ),
        (
            f"kafka-get-offsets --topic t --partitions 0,1 --time -2 {AT}",
            "offsets t:0,1 --time earliest",
        ),
        (f"kafka-get-offsets {AT}", "offsets"),
        (
            f"kafka-log-dirs --describe --broker-list 0,1 --topic-list t {AT}",
            "log-dirs describe --broker 0 --broker 1 --topic t",
        ),
        (f"kafka-cluster cluster-id {AT}", "cluster describe"),
        (
            f"kafka-console-producer --topic t --property null.marker=N {AT}",
            "produce t --null-marker N",
        ),
        (f"kafka-transactions list --dur 5 {AT}", "transactions list --duration-filter 5"),
    ],
)
def test_ux_6_options_are_translated(
    kafkas: str, ours: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,) = explained(kafkas, capsys)
    assert line == f"barnabas {ours} {AT}"
    check_is_a_command(line)


@pytest.mark.parametrize(
    ("kafkas", "ours"),
    [
        ("kafka-topics --list", "topics list"),
        ("kafka-topics --alter --topic t --partitions 3", "topics alter t --partitions 3"),
        ("kafka-configs --describe --topic t", "configs describe --topic t"),
        ("kafka-configs --describe --user u", "configs describe --user u"),
        ("kafka-consumer-groups --list", "groups list"),
        ("kafka-transactions list", "transactions list"),
        ("kafka-get-offsets --topic t", "offsets t"),
        ("kafka-log-dirs --describe", "log-dirs describe"),
        ("kafka-reassign-partitions --list", "reassign --list"),
        ("kafka-acls --list", "acls list"),
        ("kafka-cluster cluster-id", "cluster describe"),
        (
            "kafka-leader-election --election-type preferred --all-topic-partitions",
            "elect-leaders --election-type preferred --all-topic-partitions",
        ),
        (
            "kafka-preferred-replica-election",
            "elect-leaders --election-type preferred --all-topic-partitions",
        ),
    ],
)
def test_a_file_of_client_configs_is_passed_on(
    kafkas: str, ours: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The tools differ in the option's name, our commands do not."""
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SSL\n")
    option = {"kafka-cluster": "config"}.get(kafkas.split()[0], "command-config")
    option = "admin.config" if "election" in kafkas else option
    (line,) = explained(f"{kafkas} --{option} {file} {AT}", capsys)
    assert line == f"barnabas {ours} --command-config {file} {AT}"
    check_is_a_command(line)


def test_internal_topics_are_dumped_as_kafka_does_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a decoder the records stay raw."""
    file = "/log/__consumer_offsets-0/0.log"
    raw = explained(f"kafka-dump-log --files {file} --print-data-log", capsys)
    assert raw == [f"barnabas dump --records --raw {file}"]
    decoded = explained(f"kafka-dump-log --files {file} --offsets-decoder", capsys)
    assert decoded == [f"barnabas dump --records {file}"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (f"kafka-topics --describe --topic 'a.*' {AT}", "accepts names, not patterns"),
        (f"kafka-configs --describe --entity-type topics {AT}", "one topic at a time"),
        (f"kafka-get-offsets --topic-partitions t:0-3 {AT}", "accepts only TOPIC or TOPIC:0,1"),
        (f"kafka-console-producer --topic t --property ignore.error=true {AT}", "ignore.error"),
        (f"kafka-broker-api-versions {AT}", "no command of its own"),
        (f"kafka-delegation-tokens --describe --command-config c {AT}", "no command of its own"),
        (f"kafka-console-consumer --topic t --property null.literal=N {AT}", "null.literal"),
        (f"kafka-console-producer --topic t --producer.config c {AT}", "no file of client configs"),
        (
            f"kafka-verifiable-consumer --topic t --group-id g --group-protocol consumer {AT}",
            "only the classic group protocol",
        ),
    ],
)
def test_ux_6_what_our_commands_lack_is_said(
    line: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*shlex.split(line), "--explain"]) == 1
    output, errors = capsys.readouterr()
    assert output == ""
    assert reason in errors and errors.count("\n") == 1
