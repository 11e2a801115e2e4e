"""UX-6: the textbook's command lines (UX-5), typed as Kafka's, against an embedded broker."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import barnabas as package
from barnabas.client.sync.producer import SyncAdmin
from barnabas.types import TopicPartition
from tests.kit.processes.broker_process import free_port
from tests.kit.processes.command_line import COMMAND, InProcess

if TYPE_CHECKING:
    from barnabas.testing.embedded.broker import Broker

TIMEOUT_S = 60


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    config = {
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "1",
        "num.partitions": "1",
    }
    with package.Broker(config=config) as running:
        yield running


@pytest.fixture
def kafka(broker: Broker, capfdbinary: pytest.CaptureFixture[bytes]) -> InProcess:
    return InProcess(broker, capfdbinary)


def produce(broker: Broker, line: str, text: str) -> subprocess.CompletedProcess[str]:
    words = [COMMAND, *line.split(), "--bootstrap-server", broker.bootstrap_servers]
    return subprocess.run(words, input=text, capture_output=True, text=True, timeout=TIMEOUT_S)


def test_ux_6_topics_are_created_described_changed_and_deleted(kafka: InProcess) -> None:
    """To the letter, but for the id that is drawn."""
    line = "kafka-topics.sh --create --replication-factor 1 --partitions 3 --topic test"
    assert kafka(line) == ("Created topic test.\n", "")
    text, _ = kafka("kafka-topics.sh --describe --topic test")
    heading, *partitions = text.splitlines()
    assert re.fullmatch(
        r"Topic: test\tTopicId: \S{22}\tPartitionCount: 3\tReplicationFactor: 1\tConfigs: ", heading
    )
    assert partitions[0] == (
        "\tTopic: test\tPartition: 0\tLeader: 0\tReplicas: 0\tIsr: 0\tElr: N/A\tLastKnownElr: N/A"
    )
    assert len(partitions) == 3
    assert kafka("kafka-topics --list --topic te.*") == ("test\n", "")
    assert kafka("kafka-topics --list --topic nothing") == ("\n", "")
    assert kafka("kafka-topics --alter --topic test --partitions 4") == ("", "")
    refused, errors = kafka("kafka-topics --alter --topic test --partitions 1", code=1)
    assert refused.startswith("Error while executing topic command : topic test has 4 partitions")
    assert errors.startswith("ERROR org.apache.kafka.common.errors.InvalidPartitionsException: ")
    refused, _ = kafka(line, code=1)
    assert refused == "Error while executing topic command : Topic 'test' already exists.\n"
    assert kafka(line, "--if-not-exists") == ("", "")
    assert kafka("kafka-topics --describe --topics-with-overrides --topic test") == ("", "")
    assert kafka("kafka-topics --delete --topic test") == ("", "")
    refused, _ = kafka("kafka-topics --delete --topic test", code=1)
    assert refused == (
        "Error while executing topic command : Topic 'test' does not exist as expected\n"
    )
    assert kafka("kafka-topics --delete --topic test --if-exists") == ("", "")


def test_ux_6_the_console_writes_and_reads(broker: Broker, kafka: InProcess) -> None:
    line = "kafka-console-producer.sh --topic console --compression-codec lz4"
    parsing = (
        "--property parse.key=true --property key.separator=: --property parse.headers=true "
        "--property null.marker=NULL"
    )
    done = produce(broker, f"{line} {parsing}", "h:1,i:2\tk1:v1\nNULL\tk2:NULL\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    shown = " ".join(
        f"--property print.{name}=true"
        for name in ("timestamp", "partition", "offset", "headers", "key")
    )
    line = "kafka-console-consumer.sh --topic console --from-beginning --max-messages 2"
    text, errors = kafka(f"{line} {shown}")
    assert [re.sub(r"\d{13}", "TIME", each) for each in text.splitlines()] == [
        "CreateTime:TIME\tPartition:0\tOffset:0\th:1,i:2\tk1\tv1",
        "CreateTime:TIME\tPartition:0\tOffset:1\tNO_HEADERS\tk2\tnull",
    ]
    assert errors == "Processed a total of 2 messages\n"
    line = "kafka-console-consumer --topic console --partition 0 --offset 1 --timeout-ms 300"
    text, errors = kafka(line)
    assert text == "null\n"
    assert "org.apache.kafka.common.errors.TimeoutException" in errors
    text, _ = kafka("kafka-console-consumer --include con.*e --from-beginning --max-messages 1")
    assert text == "v1\n"


def test_ux_6_deprecated_names_of_options_do_what_kafka_does(
    broker: Broker, kafka: InProcess
) -> None:
    """The tool of 3.9 takes them, and ignores them beside the names that replaced them."""
    at = broker.bootstrap_servers
    sent = typed(COMMAND, "kafka-console-producer.sh", "--broker-list", at, "--topic", "old",
                 text="a\nb\n")  # fmt: skip
    assert sent == ""
    line = "kafka-console-consumer.sh --whitelist ol. --from-beginning --max-messages 2"
    assert kafka(line) == ("a\nb\n", "Processed a total of 2 messages\n")
    assert kafka(line, "--include", "nothing", "--timeout-ms", "100")[0] == ""
    offsets = ("kafka-run-class.sh", "kafka.tools.GetOffsetShell", "--topic", "old", "--time", "-1")
    assert typed(COMMAND, *offsets, "--broker-list", at) == "old:0:2\n"
    perf = "kafka-consumer-perf-test.sh --topic old --messages 2 --hide-header --threads 1"
    warning, figures = typed(COMMAND, *perf.split(), "--broker-list", at).splitlines()
    assert warning == (
        "WARNING: option [threads] and [num-fetch-threads] have been deprecated and will be "
        "ignored by the test"
    )
    assert figures.count(",") == 9
    words = ("--topic", "old", "--max-messages", "1", "--broker-list", at)
    events = typed(COMMAND, "kafka-verifiable-producer.sh", *words).splitlines()
    assert [json.loads(each)["name"] for each in events] == [
        "startup_complete", "producer_send_success", "shutdown_complete", "tool_data",
    ]  # fmt: skip
    events = typed(COMMAND, "kafka-verifiable-consumer.sh", *words, "--group-id", "g").splitlines()
    assert '"offsets_committed"' in events[-3]


def test_ux_6_the_simple_consumer_shell_reads_one_partition(
    broker: Broker, kafka: InProcess
) -> None:
    """In the words of the last Kafka that had it, 1.1."""
    produce(broker, "kafka-console-producer.sh --topic simple", "a\nb\nc\n")
    line = "kafka-simple-consumer-shell.sh --topic simple --partition 0"
    end = "Terminating. Reached the end of partition (simple, 0) at offset 3\n"
    assert kafka(line, "--no-wait-at-logend")[0] == f"a\nb\nc\n{end}"
    assert kafka(line, "--no-wait-at-logend", "--offset", "-1")[0] == end
    some = kafka(line, "--offset", "1", "--max-messages", "1", "--print-offsets")
    assert some[0] == "next offset = 2\nb\n"
    assert kafka(line, "--max-messages", "0")[0] == ""
    said = kafka(line, "--offset", "99", "--no-wait-at-logend", code=1)[1]
    assert "offset 99 of simple-0 is out of range" in said
    said = kafka("kafka-simple-consumer-shell.sh --topic simple --partition 9", code=1)[1]
    assert said.endswith("Error: partition 9 does not exist for topic simple\n")
    said = kafka("kafka-simple-consumer-shell.sh --topic no-such-topic", code=1)[1]
    assert said.endswith("Error: no valid topic metadata for topic: no-such-topic\n")


def test_ux_6_old_names_of_formatters(broker: Broker, kafka: InProcess) -> None:
    produce(broker, "kafka-console-producer.sh --topic formatted", "a\n")
    with SyncAdmin(broker.bootstrap_servers) as admin:
        admin.alter_group_offsets("formatting", {TopicPartition("formatted", 0): 1})
    offsets = "kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter"
    line = "--topic __consumer_offsets --partition 0 --formatter"
    text, _ = kafka(f"kafka-simple-consumer-shell.sh --no-wait-at-logend {line} {offsets}")
    assert re.search(
        r"^\[formatting,formatted,0\]::OffsetAndMetadata\(offset=1, leaderEpoch=Optional.empty, "
        r"metadata=, commitTimestamp=\d{13}, expireTimestamp=None\)$",
        text,
        re.MULTILINE,
    )
    line = "--topic formatted --from-beginning --max-messages 1"
    for own, expected in (("Default", "a\n"), ("Logging", "a\n"), ("NoOp", "")):
        old, new = f"kafka.tools.{own}MessageFormatter", "org.apache.kafka.tools.consumer."
        text, errors = kafka(f"kafka-console-consumer.sh {line} --formatter {old}")
        assert (text, errors.splitlines()[0]) == (
            expected,
            f"WARNING: {old} is deprecated and will be removed in the next major release. Please "
            f"use {new}{own}MessageFormatter instead",
        )
        text, errors = kafka(f"kafka-console-consumer.sh {line} --formatter {new}"
                             f"{own}MessageFormatter")  # fmt: skip
        assert (text, errors) == (expected, "Processed a total of 1 messages\n")


def test_ux_6_the_console_waits_for_a_topic(broker: Broker, kafka: InProcess) -> None:
    """And makes none, for a mistyped name should not."""
    text, errors = kafka("kafka-console-consumer --topic console-never --timeout-ms 100")
    assert text == ""
    assert "org.apache.kafka.common.errors.TimeoutException" in errors
    assert "console-never" not in kafka("kafka-topics --list")[0]
    # It is made when it has been looked for.
    asked = broker.faults.add(
        api="Metadata", topic="console-later", client_id="console-consumer", delay_ms=1
    )

    def make() -> None:
        asked.wait(2)
        broker.topic("console-later", partitions=1).send(b"v1")

    maker = threading.Thread(target=make)
    maker.start()
    line = "kafka-console-consumer --topic console-later --from-beginning --max-messages 1"
    text, _ = kafka(f"{line} --timeout-ms 60000")
    maker.join()
    asked.remove()
    assert text == "v1\n"


def test_ux_6_a_line_without_its_key_ends_the_producer(broker: Broker) -> None:
    line = "kafka-console-producer.sh --topic keyless --property parse.key=true"
    done = produce(broker, line, "a\t1\nbad\n")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "org.apache.kafka.common.KafkaException: No key separator found on line number 2: 'bad'\n"
    )


def test_ux_6_groups_are_described_reset_and_deleted(broker: Broker, kafka: InProcess) -> None:
    produce(broker, "kafka-console-producer.sh --topic grouped", "a\nb\nc\n")
    line = "kafka-console-consumer.sh --topic grouped --group readers --from-beginning"
    assert kafka(f"{line} --max-messages 2")[0] == "a\nb\n"
    groups = "kafka-consumer-groups.sh"
    assert "readers\n" in kafka(f"{groups} --list")[0]
    text, errors = kafka(f"{groups} --describe --group readers")
    assert [line.split() for line in text.splitlines()[2:]] == [
        ["readers", "grouped", "0", "2", "3", "1", "-", "-", "-"]
    ]
    assert errors == "\nConsumer group 'readers' has no active members.\n"
    text, errors = kafka(f"{groups} --reset-offsets --group readers --all-topics --to-earliest")
    assert text.splitlines()[2].split() == ["readers", "grouped", "0", "0"]
    assert errors.startswith("WARN: No action will be performed")
    reset = f"{groups} --reset-offsets --group readers --topic grouped:0 --shift-by -1"
    assert kafka(f"{reset} --execute --export") == ("grouped,0,1\n\n", "")
    with SyncAdmin(broker.bootstrap_servers) as admin:
        assert admin.list_group_offsets("readers")[TopicPartition("grouped", 0)].offset == 1
    text, _ = kafka(f"{groups} --delete --group readers --group missing")
    assert text == (
        "\nError: Deletion of some consumer groups failed:\n"
        "* Group 'missing' could not be deleted due to: java.util.concurrent.ExecutionException: "
        "org.apache.kafka.common.errors.GroupIdNotFoundException: The group id does not exist.\n"
        "\nThese consumer groups were deleted successfully: 'readers'\n"
    )
    text, _ = kafka(f"{groups} --describe --group readers")
    assert text == "\nError: Consumer group 'readers' does not exist.\n"


def test_ux_6_configs_are_changed(kafka: InProcess) -> None:
    kafka("kafka-topics.sh --create --topic configured")
    topic = "--entity-type topics --entity-name configured"
    changed, _ = kafka(f"kafka-configs.sh --alter {topic} --add-config retention.ms=5")
    assert changed == "Completed updating config for topic configured.\n"
    assert kafka("kafka-configs --describe --topic configured")[0] == (
        "Dynamic configs for topic configured are:\n"
        "  retention.ms=5 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=5}\n"
    )
    kafka(f"kafka-configs.sh --alter {topic} --delete-config retention.ms")
    _, errors = kafka(f"kafka-configs.sh --alter {topic} --delete-config retention.ms", code=1)
    assert errors == "kafka-configs.sh: Invalid config(s): retention.ms: not set\n"
    assert kafka("kafka-configs --describe --entity-type brokers")[0] == (
        "Dynamic configs for broker 0 are:\nDefault configs for brokers in the cluster are:\n"
    )


def test_ux_6_the_smaller_tools_run(broker: Broker, kafka: InProcess, tmp_path: Path) -> None:
    produce(broker, "kafka-console-producer.sh --topic small", "a\nb\n")
    assert kafka("kafka-get-offsets.sh --topic small") == ("small:0:2\n", "")
    classes = "kafka-run-class.sh kafka.tools.GetOffsetShell --topic small --time earliest"
    assert kafka(classes) == ("small:0:0\n", "")
    path = tmp_path / "offsets.json"
    wanted = {"topic": "small", "partition": 0, "offset": 1}
    path.write_text(json.dumps({"partitions": [wanted], "version": 1}))
    assert kafka(f"kafka-delete-records.sh --offset-json-file {path}")[0].splitlines() == [
        "Executing records delete operation",
        "Records delete operation completed:",
        "partition: small-0\tlow_watermark: 1",
    ]
    election = "kafka-leader-election.sh --election-type PREFERRED --topic small --partition 0"
    assert kafka(election)[0] == "Valid replica already elected for partitions small-0\n"
    said, _ = kafka("kafka-log-dirs.sh --describe --topic-list small")
    assert json.loads(said.splitlines()[-1])["brokers"][0]["broker"] == 0
    assert re.fullmatch(r"Cluster ID: \S{22}\n", kafka("kafka-cluster.sh cluster-id")[0])
    assert "\tProduce(0): 0 to 11 [usable: 11],\n" in kafka("kafka-broker-api-versions.sh")[0]
    assert kafka("kafka-transactions.sh list")[0].startswith("TransactionalId\t")
    assert kafka("kafka-reassign-partitions.sh --list")[0] == "No partition reassignments found.\n"
    perf = "kafka-producer-perf-test.sh --topic small --num-records 10 --record-size 5"
    assert kafka(f"{perf} --throughput -1")[0].startswith("10 records sent, ")
    perf = "kafka-consumer-perf-test.sh --topic small --messages 5 --hide-header"
    assert kafka(perf)[0].count(",") == 9


def test_ux_6_a_broker_is_started_and_stopped_and_its_log_dumped(tmp_path: Path) -> None:
    """Through the scripts and with the file that `install-scripts` wrote."""
    scripts = tmp_path / "bin"
    said = typed(COMMAND, "install-scripts", str(scripts))
    assert f'export PATH="{scripts}:$PATH"' in said
    address = f"127.0.0.1:{free_port()}"
    file = scripts.parent / "config" / "server.properties"
    file.write_text(file.read_text().replace("://:9092", f"://{address}"))
    typed(str(scripts / "kafka-server-start.sh"), "-daemon", str(file))
    try:
        words = ("--bootstrap-server", address, "--topic", "dumped")
        typed(str(scripts / "kafka-console-producer.sh"), *words, text="hello\n")
    finally:
        assert typed(str(scripts / "kafka-server-stop.sh"), str(file)) == ""
    log = next(tmp_path.glob("data/broker/dumped-0/*.log"))
    dumped = typed(
        str(scripts / "kafka-run-class.sh"),
        *("kafka.tools.DumpLogSegments", "--files", str(log), "--print-data-log"),
    )
    assert dumped.startswith(f"Dumping {log}\n")
    assert dumped.endswith("headerKeys: [] payload: hello\n")


def typed(*words: str, text: str = "") -> str:
    """Standard output of a command that succeeds."""
    done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_ux_6_other_commands_do_not_load_kafkas() -> None:
    script = (
        "import sys\n"
        "from barnabas.cli.main import main\n"
        "main(['topics', 'create', '--help'])\n"
        "sys.exit(any(name.startswith('barnabas.cli.kafka') for name in sys.modules))"
    )
    words = [sys.executable, "-c", script]
    assert subprocess.run(words, capture_output=True, timeout=TIMEOUT_S).returncode == 0


def test_se_3_credentials_of_users_are_changed_and_shown(kafka: InProcess) -> None:
    """`--entity-type users` and `--user` are the same."""
    add = "--add-config SCRAM-SHA-256=[iterations=8192,password=hush]"
    for whose in ("--entity-type users --entity-name bob", "--user carol"):
        changed, _ = kafka(f"kafka-configs.sh --alter {whose} {add}")
        assert changed.startswith("Completed updating config for user ")
    lines = [
        f"SCRAM credential configs for user-principal '{user}' are SCRAM-SHA-256=iterations=8192\n"
        for user in ("bob", "carol")
    ]
    assert kafka("kafka-configs --describe --entity-type users")[0] == "".join(lines)
    kafka("kafka-configs --alter --user carol --delete-config SCRAM-SHA-256")
    assert kafka("kafka-configs --describe --user carol")[0] == ""
    assert kafka("kafka-configs --describe --user bob")[0] == lines[0]
    _, errors = kafka("kafka-configs --alter --user bob --add-config hush=hush", code=1)
    assert "hush" not in errors
    assert kafka("kafka-configs --describe --entity-type users --entity-default")[0] == ""
