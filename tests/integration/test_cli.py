"""The command `barnabas` against an embedded broker, as a user types it."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import barnabas as package
from barnabas.cli.main import main
from barnabas.client.sync.producer import SyncConsumer, SyncProducer
from barnabas.types import TopicPartition
from tests.kit.processes.broker_process import free_port
from tests.kit.processes.command_line import InProcess, Shell
from tests.kit.waiting import wait_until

if TYPE_CHECKING:
    from barnabas.testing.embedded.broker import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """Whose groups do not wait for more members: each `consume` has one of its own."""
    with package.Broker(config={"group.initial.rebalance.delay.ms": "0"}) as running:
        yield running


# ---- the whole of it, in processes ----


def test_lines_go_in_and_come_out(shell: Shell) -> None:
    """UX-2, UX-5: create, produce, consume, as the README has it."""
    assert shell.run("topics", "create", "--topic", "whole", "--partitions", "2") == (
        b"Created topic whole.\n", "")  # fmt: skip
    _, stderr = shell.run("produce", "whole", "--key-separator", ":", text=b"a:1\nb:2\na:3")
    assert stderr.startswith("3 records (11 bytes) to whole in ")
    output, stderr = shell.run(
        "consume", "whole", "--from-beginning", "--max-messages", "3", "--format", "{key}={value}"
    )
    assert sorted(output.splitlines()) == [b"a=1", b"a=3", b"b=2"]
    assert output.index(b"a=1") < output.index(b"a=3")
    assert stderr == "Processed a total of 3 messages\n"


def test_the_consumer_shows_only_what_comes_from_now_on(shell: Shell, broker: Broker) -> None:
    """UX-2: without --from-beginning; and Ctrl-C ends it cleanly."""
    shell.run("produce", "now", text=b"before\n")
    consumer = shell.start("consume", "now")
    try:
        assert consumer.stdout is not None and consumer.stderr is not None
        with SyncProducer(broker.bootstrap_servers) as producer:
            # It begins at its own moment: send until it has heard one.
            os.set_blocking(consumer.stdout.fileno(), False)
            heard = b""
            for number in range(2_400):
                producer.send("now", b"after %d" % number).result(120)
                heard += consumer.stdout.read() or b""
                if heard:
                    break
                assert consumer.poll() is None
                signal.sigtimedwait([], 0.05)
        assert b"before" not in heard
        assert heard.startswith(b"after ")
        consumer.send_signal(signal.SIGINT)
        assert consumer.wait(120) == 0
        assert re.fullmatch(rb"Processed a total of \d+ messages\n", consumer.stderr.read())
    finally:
        consumer.kill()
        consumer.communicate()


def test_a_reader_that_leaves_is_no_error(shell: Shell) -> None:
    """SIGPIPE, as with `| head -1`."""
    shell.run("produce", "piped", text=b"".join(b"%0100d\n" % n for n in range(20_000)))
    consumer = shell.start("consume", "piped", "--from-beginning")
    assert consumer.stdout is not None and consumer.stderr is not None
    try:
        assert consumer.stdout.readline() == b"%0100d\n" % 0
        consumer.stdout.close()
        assert consumer.wait(120) == 0
        assert consumer.stderr.read() == b""
    finally:
        consumer.kill()
        consumer.wait()
        consumer.stderr.close()


def test_a_terminal_is_read_line_by_line(shell: Shell, broker: Broker) -> None:
    """UX-2: typed lines leave as they are typed; Ctrl-D ends."""
    ours, theirs = pty.openpty()
    producer = shell.start("produce", "typed", stdin=theirs)
    os.close(theirs)
    try:
        os.write(ours, b"first\n")
        with SyncConsumer(broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition("typed", 0)])
            records = consumer.poll(120_000)
            assert [record.value for record in records] == [b"first"]
        os.write(ours, b"second\n\x04")
        _, stderr = producer.communicate(timeout=120)
        assert producer.returncode == 0
        assert b"press Ctrl-D to end" in stderr and b"2 records" in stderr
    finally:
        producer.kill()
        os.close(ours)


def test_ctrl_c_while_waiting_for_input_ends_at_once(shell: Shell) -> None:
    ours, theirs = pty.openpty()
    producer = shell.start("produce", "interrupted", stdin=theirs)
    try:
        assert producer.stderr is not None
        assert b"press Ctrl-D to end" in producer.stderr.readline()
        signal.sigtimedwait([], 0.5)
        producer.send_signal(signal.SIGINT)
        _, stderr = producer.communicate(timeout=120)
        assert producer.returncode == 1
        assert b"interrupted" in stderr and b"Traceback" not in stderr
    finally:
        producer.kill()
        os.close(ours)
        os.close(theirs)


def test_without_a_broker_it_says_what_to_do(shell: Shell) -> None:
    """UX-4: one line, exit 1, the address, the remedy."""
    address = f"127.0.0.1:{free_port()}"
    for words in (["topics", "list"], ["produce", "t"], ["consume", "t"]):
        _, stderr = shell.run(*words, "--bootstrap-server", address, code=1)
        (line,) = [line for line in stderr.splitlines() if "no broker" in line]
        assert address in line and "barnabas server start" in line


COMMANDS = (
    "",
    "topics",
    "topics create",
    "topics list",
    "topics describe",
    "topics alter",
    "topics delete",
    "produce",
    "consume",
    "groups",
    "groups list",
    "groups describe",
    "groups reset-offsets",
    "groups delete",
    "groups delete-offsets",
    "transactions",
    "transactions list",
    "transactions describe",
    "transactions describe-producers",
    "transactions find-hanging",
    "transactions abort",
    "records",
    "records delete",
    "configs",
    "configs describe",
    "configs alter",
    "metadata",
    "metadata get",
    "metadata ls",
    "metadata export",
    "metadata import",
    "dump",
    "perf",
    "perf produce",
    "perf consume",
    "server",
    "server start",
    "server stop",
    "cluster",
    "cluster describe",
    "cluster health",
    "offsets",
    "log-dirs",
    "log-dirs describe",
    "log-dirs move",
    "verifiable-producer",
    "verifiable-consumer",
    "profile",
    "profile add",
    "profile list",
    "profile show",
    "profile delete",
    "profile use",
)


def test_help_needs_no_broker_and_shows_examples(
    shell: Shell, capfd: pytest.CaptureFixture[str]
) -> None:
    """UX-1: --help teaches by example."""
    for line in COMMANDS:
        capfd.readouterr()
        assert main([*line.split(), "--help"]) == 0
        output, _ = capfd.readouterr()
        assert "Examples:" in output, line
        assert "barnabas " in output
    assert b"Examples:" in shell.run("--help")[0]
    assert re.fullmatch(rb"barnabas \d+\.\d+\.\d+\n", shell.run("--version")[0])


# ---- topics ----


def test_topics_from_creation_to_deletion(barnabas: InProcess) -> None:
    """TP-4, UX-5: both ways to name the topic."""
    assert barnabas("topics create life --partitions 2 --config retention.ms=1000")[0] == (
        "Created topic life.\n"
    )
    assert "life\n" in barnabas("topics list")[0]
    assert "life" in json.loads(barnabas("topics list --json")[0])
    (topic,) = json.loads(barnabas("topics describe life --json")[0])
    assert topic["configs"] == {"retention.ms": "1000"}
    assert [each["leader"] for each in topic["partitions"]] == [0, 0]
    assert barnabas("topics delete --topic life")[0] == "Deleted topic life.\n"
    assert "life\n" not in barnabas("topics list")[0]


def test_describe_prints_what_kafka_prints(barnabas: InProcess) -> None:
    """TP-4: exact, but for the topic id."""
    barnabas("topics create --topic test --partitions 1 --replication-factor 1")
    output, _ = barnabas("topics describe --topic test")
    assert re.sub(r"TopicId: [\w-]{22}\t", "TopicId: <id>\t", output) == (
        "Topic: test\tTopicId: <id>\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: \n"
        "\tTopic: test\tPartition: 0\tLeader: 0\tReplicas: 0\tIsr: 0\tElr: N/A\tLastKnownElr: N/A\n"
    )
    assert barnabas("topics describe --under-replicated-partitions")[0] == ""


def test_a_topic_that_is_there_or_is_not(barnabas: InProcess) -> None:
    """UX-4."""
    barnabas("topics create there")
    stderr = barnabas("topics create there", code=1)[1]
    assert stderr.count("\n") == 1
    assert "TOPIC_ALREADY_EXISTS" in stderr and "--if-not-exists" in stderr
    assert barnabas("topics create there --if-not-exists")[0] == "Topic there already exists.\n"
    stderr = barnabas("topics delete gone", code=1)[1]
    assert stderr.count("\n") == 1 and "UNKNOWN_TOPIC_OR_PARTITION" in stderr
    assert barnabas("topics delete gone --if-exists")[0] == "Topic gone does not exist.\n"
    assert "UNKNOWN_TOPIC_OR_PARTITION" in barnabas("topics describe gone", code=1)[1]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("topics create zero --partitions 0", "INVALID_PARTITIONS"),
        ("topics create many --replication-factor 3", "INVALID_REPLICATION_FACTOR"),
        ("topics create bad/name", "INVALID_TOPIC_EXCEPTION"),
        ("topics create odd --config retention.ms=soon", "INVALID_CONFIG"),
    ],
)
def test_what_the_broker_refuses_is_one_line(barnabas: InProcess, line: str, problem: str) -> None:
    """TP-1, TP-5, UX-4."""
    stderr = barnabas(line, code=1)[1]
    assert stderr.count("\n") == 1 and problem in stderr


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("topics create", "name a topic"),
        ("topics create a --topic b", "two topics are specified"),
        ("topics create a --config retention", "not KEY=VALUE"),
        ("topics create a --replica-assignment x", "not broker ids"),
        ("topics create a --replica-assignment 0 --partitions 1", "leave out"),
        ("topics create a --partitions many", "many"),
        ("topics delete", "name a topic"),
        ("topics frobnicate", "frobnicate"),
        ("produce t --compression-type brotli", "brotli"),
        ("produce t --partition -1", "-1 is not in the range"),
        ("produce t --header nothing", "not NAME=VALUE"),
        ("produce t --producer-property batchsize=1", "batch.size"),
        ("produce t --key-separator=", "--key-separator is empty"),
        ("consume t --offset 3", "--offset needs --partition"),
        ("consume t --partition 0 --offset soon", "soon"),
        ("consume t --partition 0 --offset 1 --from-beginning", "cannot be combined"),
        ("consume t --format {size}", "size"),
        ("consume t --json --format key", "cannot be combined"),
        ("consume t --max-messages -1", "-1"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_2(
    barnabas: InProcess, line: str, problem: str
) -> None:
    """UX-4."""
    stderr = barnabas(line, code=2)[1]
    assert stderr.count("\n") == 1 and problem in stderr
    assert "--help" in stderr


# ---- produce and consume ----


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_file_arrives_as_it_is(barnabas: InProcess, tmp_path: Path, codec: str) -> None:
    """UX-2: bytes that are no text, empty lines, a last line without an end."""
    text = b"".join(b"%d\xff\xfe\n" % n for n in range(500)) + b"\nlast"
    (tmp_path / "lines").write_bytes(text)
    stderr = barnabas(
        f"produce file-{codec} --compression-type {codec} --file", f"{tmp_path}/lines"
    )[1]
    assert stderr.startswith("502 records ")
    consumed = barnabas(f"consume file-{codec} --from-beginning --max-messages 502 --json")[0]
    values = [json.loads(line)["value"] for line in consumed.splitlines()]
    assert values[-2:] == ["", "last"]
    assert len(values) == 502
    assert "base64" in values[0]


def test_headers_partitions_and_offsets(barnabas: InProcess, tmp_path: Path) -> None:
    """UX-2: keys, headers, formats, --partition, --offset."""
    barnabas("topics create parts --partitions 3")
    (tmp_path / "lines").write_bytes(b"".join(b"n:%d\tk%d=v%d\n" % (n, n, n) for n in range(10)))
    barnabas(
        "produce parts --partition 1 --key-separator = --header all=x --headers-separator",
        "\\t",
        "--file",
        f"{tmp_path}/lines",
    )
    output = barnabas(
        "consume parts --partition 1 --offset -2 --max-messages 2 --format",
        "{partition}@{offset} {headers} {key}={value}",
    )[0]
    assert output == "1@8 all:x,n:8 k8=v8\n1@9 all:x,n:9 k9=v9\n"
    output = barnabas("consume parts --partition 1 --offset 3 --max-messages 1 --format key,value")[
        0
    ]
    assert output == "k3\tv3\n"
    assert barnabas("consume parts --partition 0 --offset earliest --timeout-ms 200")[0] == ""
    stderr = barnabas("consume parts --partition 5", code=1)[1]
    assert "partitions 0 to 2, not 5" in stderr and stderr.count("\n") == 1


def test_a_line_without_its_separator_ends_it_there(barnabas: InProcess, tmp_path: Path) -> None:
    """UX-4: what stood in front of it is sent, and it is named."""
    (tmp_path / "lines").write_bytes(b"a:1\nb:2\nplain\nc:3\n")
    stderr = barnabas("produce half --key-separator : --file", f"{tmp_path}/lines", code=1)[1]
    assert "line 3 has no key separator ':': 'plain'" in stderr
    assert stderr.count("\n") == 1 and stderr.endswith("; 2 records were acknowledged\n")
    line = "consume half --from-beginning --timeout-ms 3000"
    wait_until(lambda: barnabas(line)[0] == "1\n2\n")  # a busy machine may need longer


def test_what_is_too_large_is_counted_and_named(barnabas: InProcess, tmp_path: Path) -> None:
    """UX-4: records that the topic does not take."""
    barnabas("topics create tight --config max.message.bytes=200")
    (tmp_path / "lines").write_bytes(b"small\n" + b"x" * 500 + b"\nsmall\n")
    stderr = barnabas(
        "produce tight --producer-property batch.size=1 --file", f"{tmp_path}/lines", code=1
    )[1]
    assert stderr.count("\n") == 1, "no word of success goes before it"
    assert "1 record was not acknowledged" in stderr and "MESSAGE_TOO_LARGE" in stderr
    assert stderr.endswith("; 2 records were acknowledged\n")
    line = "consume tight --from-beginning --timeout-ms 3000"
    wait_until(lambda: barnabas(line)[0] == "small\nsmall\n")  # a busy machine may need longer


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_kind_of_acknowledgement(barnabas: InProcess, tmp_path: Path, acks: str) -> None:
    """PR-4."""
    (tmp_path / "lines").write_bytes(b"a\nb\n")
    barnabas(f"produce acks-{acks} --acks {acks} --file", f"{tmp_path}/lines")
    output = barnabas(f"consume acks-{acks} --from-beginning --max-messages 2")[0]
    assert output == "a\nb\n"


def test_a_file_that_cannot_be_read_is_named(barnabas: InProcess, tmp_path: Path) -> None:
    """UX-4."""
    stderr = barnabas("produce t --file", f"{tmp_path}/missing", code=1)[1]
    assert stderr.count("\n") == 1
    assert "missing: no such file or directory" in stderr
    barnabas("produce t --file", str(tmp_path), code=2)
    (tmp_path / "empty").touch()
    assert barnabas("produce t --file", f"{tmp_path}/empty")[1].startswith("0 records ")


def test_nothing_is_made_by_reading_a_mistyped_topic(barnabas: InProcess) -> None:
    stderr = barnabas("consume mistyped --from-beginning", code=1)[1]
    assert stderr.count("\n") == 1 and "UNKNOWN_TOPIC_OR_PARTITION" in stderr
    assert "mistyped" not in barnabas("topics list")[0]
