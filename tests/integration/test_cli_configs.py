"""UX-2, TP-5: `configs` and `topics alter` against an embedded broker."""

from __future__ import annotations

import json
import logging

import pytest

from tests.kit.processes.command_line import InProcess


def test_configs_of_a_topic_are_set_shown_and_taken_back(barnabas: InProcess) -> None:
    barnabas("topics create shown")
    output, stderr = barnabas(
        "configs alter --topic shown --add retention.ms=1000,segment.bytes=2000000"
    )
    assert (output, stderr) == ("Completed updating config for topic shown.\n", "")
    output, _ = barnabas("configs describe --topic shown")
    assert output.splitlines()[0] == "Dynamic configs for topic shown are:"
    assert output.splitlines()[1].startswith(
        "  retention.ms=1000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=1000"
    )
    assert output.splitlines()[2].startswith("  segment.bytes=2000000 sensitive=false ")
    everything = barnabas("configs describe --topic shown --all")[0].splitlines()
    assert everything[0] == "All configs for topic shown are:"
    assert len(everything) > 30 and everything[1:] == sorted(everything[1:])
    values = json.loads(barnabas("configs describe --topic shown --json")[0])
    assert [each["name"] for each in values] == ["retention.ms", "segment.bytes"]
    assert all(each["documentation"] for each in values)
    barnabas("configs alter --topic shown --delete retention.ms,segment.bytes")
    output, _ = barnabas("configs describe --topic shown")
    assert output == "Dynamic configs for topic shown are:\n"
    # A broker deletes what is not there, as in Kafka; a slip of the pen is pointed out here.
    for whose in ("--topic shown", "--broker-defaults"):
        _, errors = barnabas(f"configs alter {whose} --delete log.retention.mss,no.such")
        assert errors.count("warning: ") == 2 and "did you mean" in errors


def test_lists_grow_and_shrink(barnabas: InProcess) -> None:
    """Values with commas in brackets; APPEND and SUBTRACT (KIP-339)."""
    barnabas("topics create listed")
    _, stderr = barnabas("configs alter --topic listed --append cleanup.policy=compact")
    assert stderr == ""
    assert "cleanup.policy=delete,compact " in barnabas("configs describe --topic listed")[0]
    barnabas("configs alter --topic listed --subtract cleanup.policy=delete")
    assert "cleanup.policy=compact " in barnabas("configs describe --topic listed")[0]
    barnabas("configs alter --topic listed --add cleanup.policy=[compact,delete]")
    assert "cleanup.policy=compact,delete " in barnabas("configs describe --topic listed")[0]


def test_configs_of_brokers(barnabas: InProcess) -> None:
    output, _ = barnabas("configs alter --broker-defaults --add log.retention.ms=5000000")
    assert output == "Completed updating default config for brokers in the cluster.\n"
    output, _ = barnabas("configs describe --broker-defaults")
    assert output == (
        "Default configs for brokers in the cluster are:\n  log.retention.ms=5000000 "
        "sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=5000000}\n"
    )
    output, _ = barnabas("configs alter --broker 0 --add log.retention.ms=6000000")
    assert output == "Completed updating config for broker 0.\n"
    output, _ = barnabas("configs describe --broker 0")
    assert "DYNAMIC_BROKER_CONFIG:log.retention.ms=6000000, DYNAMIC_DEFAULT" in output
    barnabas("configs alter --broker 0 --delete log.retention.ms")
    barnabas("configs alter --broker-defaults --delete log.retention.ms")
    assert barnabas("configs describe --broker 0")[0] == "Dynamic configs for broker 0 are:\n"


def test_nothing_is_changed_by_asking(barnabas: InProcess) -> None:
    barnabas("topics create asked")
    output, _ = barnabas("configs alter --topic asked --add retention.ms=1 --validate-only")
    assert output == "The change is valid; nothing was changed.\n"
    output, _ = barnabas("configs describe --topic asked")
    assert output == "Dynamic configs for topic asked are:\n"


def test_what_has_no_effect_is_said(barnabas: InProcess) -> None:
    """UX-3."""
    barnabas("topics create inert")
    output, stderr = barnabas("configs alter --topic inert --add remote.storage.enable=false")
    assert output == "Completed updating config for topic inert.\n"
    assert stderr.startswith(
        "barnabas configs alter: warning: remote.storage.enable has no effect: "
    )


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("configs alter --topic there --add retention.m=1", "did you mean retention.ms?"),
        ("configs alter --topic there --add retention.ms=soon", "INVALID_CONFIG"),
        ("configs alter --topic missing --add retention.ms=1", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("configs describe --topic missing", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("configs describe --broker 9", "no broker '9' is known"),
        ("configs alter --broker-defaults --add log.dirs=/x", "restart the broker"),
        ("configs describe --explain retentoin.ms", "did you mean retention.ms?"),
        ("topics alter missing --partitions 3", "UNKNOWN_TOPIC_OR_PARTITION"),
    ],
)
def test_what_is_refused_is_one_line(barnabas: InProcess, line: str, problem: str) -> None:
    """UX-3, UX-4: exit 1."""
    barnabas("topics create there --if-not-exists")
    stderr = barnabas(line, code=1)[1]
    assert stderr.count("\n") == 1 and problem in stderr


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("configs describe", "choose one of --topic"),
        ("configs alter --add a=1", "choose one of --topic"),
        ("configs alter --topic t --broker 0 --add a=1", "choose one of --topic"),
        ("configs alter --topic t", "nothing to change"),
        ("configs alter --topic t --add retention.ms", "not KEY=VALUE"),
        ("configs alter --topic t --add a=[1", "a [ without a ]"),
        ("configs alter --topic t --delete a=1", "not the name of a config"),
        ("configs alter --topic t --add a=1 --delete a", "in two ways"),
        ("topics alter t", "--partitions"),
        ("topics alter --partitions 3", "name a topic"),
        ("topics alter t --partitions 0", "0"),
        ("topics alter t --partitions 3 --replica-assignment 0,0", "names 2 partitions"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_2(
    barnabas: InProcess, line: str, problem: str
) -> None:
    """UX-4."""
    stderr = barnabas(line, code=2)[1]
    assert stderr.count("\n") == 1 and problem in stderr and "--help" in stderr


# ---- topics alter ----


def test_tp_5_a_topic_gets_more_partitions(barnabas: InProcess) -> None:
    barnabas("topics create growing --partitions 2")
    output, stderr = barnabas("topics alter --topic growing --partitions 5")
    assert output == "Topic growing has 5 partitions, 3 of them new.\n"
    assert "warning: from now on, a key may map to a different partition" in stderr
    (topic,) = json.loads(barnabas("topics describe growing --json")[0])
    assert [each["leader"] for each in topic["partitions"]] == [0] * 5
    output, _ = barnabas("topics alter growing --partitions 6 --replica-assignment 0,0,0,0,0,0")
    assert output == "Topic growing has 6 partitions, 1 of them new.\n"


@pytest.mark.parametrize("count", [1, 2])
def test_tp_5_there_is_no_way_back(barnabas: InProcess, count: int) -> None:
    """Fewer, and as many as there are: refused, nothing changed, no warning about keys."""
    barnabas("topics create shrinking --partitions 2 --if-not-exists")
    output, stderr = barnabas(f"topics alter shrinking --partitions {count}", code=1)
    assert output == ""
    assert stderr.count("\n") == 1 and "INVALID_PARTITIONS" in stderr and "warning" not in stderr
    (topic,) = json.loads(barnabas("topics describe shrinking --json")[0])
    assert len(topic["partitions"]) == 2


def test_a_topic_that_may_be_missing(barnabas: InProcess) -> None:
    assert barnabas("topics alter missing --partitions 2 --if-exists") == (
        "Topic missing does not exist.\n",
        "",
    )


def test_log_levels_of_a_broker(barnabas: InProcess) -> None:
    """KIP-412, by our command and by Kafka's line."""
    logger = logging.getLogger("barnabas.broker")
    before = logger.level
    try:
        output, _ = barnabas("configs alter --broker-loggers 0 --add barnabas.broker=ERROR")
        assert output == "Completed updating config for broker-logger 0.\n"
        assert logger.level == logging.ERROR
        lines = barnabas("configs describe --broker-loggers 0")[0].splitlines()
        assert lines[0] == "Dynamic configs for broker-logger 0 are:"
        assert "  barnabas.broker=ERROR sensitive=false synonyms={}" in lines
        barnabas("configs alter --broker-loggers 0 --delete barnabas.broker")
        assert logger.level == logging.NOTSET
        _, stderr = barnabas("configs alter --broker-loggers 0 --add barnabas.no=INFO", code=1)
        assert "Logger barnabas.no does not exist!" in stderr
        _, stderr = barnabas("configs alter --broker-loggers 0 --topic t --add a=INFO", code=2)
        assert "choose one of --topic, --broker, --broker-defaults, --broker-loggers" in stderr
    finally:
        logger.setLevel(before)


def test_se_3_credentials_of_a_user_are_set_shown_and_taken_back(barnabas: InProcess) -> None:
    change = "configs alter --user alice --add SCRAM-SHA-512=[iterations=8192,password=hush]"
    assert barnabas(change) == ("Completed updating config for user alice.\n", "")
    described = "configs describe --user alice"
    assert barnabas(described)[0] == (
        "SCRAM credential configs for user-principal 'alice' are SCRAM-SHA-512=iterations=8192\n"
    )
    assert json.loads(barnabas(f"{described} --json")[0]) == {
        "quotas": [],
        "credentials": {"alice": {"SCRAM-SHA-512": 8192}},
    }
    barnabas("configs alter --user alice --delete SCRAM-SHA-512")
    assert barnabas(described) == ("", "")
    _, errors = barnabas("configs alter --user alice --delete SCRAM-SHA-512", code=1)
    assert "delete a user credential that does not exist" in errors
    for wrong in ("--topic t --add x=y", "--append x=y", "--add password=hush", "--validate-only"):
        _, errors = barnabas(f"configs alter --user alice {wrong}", code=2)
        assert "hush" not in errors


def test_se_5_quotas_are_set_shown_and_removed(barnabas: InProcess) -> None:
    """Of a user, of an address, of a user's client ids without their own."""
    for whose, add in (
        ("--user alice", "producer_byte_rate=1048576,request_percentage=50"),
        ("--user alice --client-defaults", "consumer_byte_rate=2.5e7"),
        ("--ip 10.0.0.1", "connection_creation_rate=10"),
    ):
        output, _ = barnabas(f"configs alter {whose} --add {add}")
        name = whose.split()[1]
        assert output == f"Completed updating config for {whose[2:].split()[0]} {name}.\n"
    alices = "Quota configs for user-principal 'alice' are "
    found, _ = barnabas("configs describe --user alice")
    assert found.startswith(alices) and found.count("\n") == 1
    assert set(found.removeprefix(alices).strip().split(", ")) == {
        "producer_byte_rate=1048576.0",
        "request_percentage=50.0",
    }
    assert barnabas("configs describe --user alice --client-defaults")[0] == (
        "Quota configs for user-principal 'alice', the default client-id are "
        "consumer_byte_rate=2.5E7\n"
    )
    assert barnabas("configs describe --client web")[0] == ""
    every = json.loads(barnabas("configs describe --quotas --json")[0])["quotas"]
    assert {"entity": {"ip": "10.0.0.1"}, "quotas": {"connection_creation_rate": 10.0}} in every
    assert len(every) == 3
    barnabas("configs alter --user alice --delete request_percentage")
    assert barnabas("configs describe --user alice")[0] == f"{alices}producer_byte_rate=1048576.0\n"
    barnabas("configs alter --user alice --delete producer_byte_rate")
    barnabas("configs alter --user alice --client-defaults --delete consumer_byte_rate")
    barnabas("configs alter --ip 10.0.0.1 --delete connection_creation_rate")
    assert barnabas("configs describe --quotas") == ("", "")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("--user alice --delete producer_byte_rate", "producer_byte_rate: not set"),
        ("--client web --add producer_byte_rate=fast", "producer_byte_rate=fast: not a number"),
        (
            "--client web --add retention.ms=1",
            "not a quota of this owner; use one of producer_byte_rate, ",
        ),
        ("--ip-defaults --add producer_byte_rate=1", "one of connection_creation_rate"),
        ("--ip 10.0.0.1 --user alice --add a=1", "--ip cannot be combined with --user or --client"),
        ("--user alice --user-defaults --add a=1", "use either --user or --user-defaults"),
        ("--client= --add a=1", "--client must not be empty"),
        (
            "--topic t --client web --add a=1",
            "--user, --client and --ip cannot be combined with a topic or broker",
        ),
        ("--client web --append request_percentage=1", "only be changed with --add and --delete"),
        ("--client web", "nothing to change"),
        ("--client web --add SCRAM-SHA-256=[password=hush]", "credentials belong to one user"),
        (
            "--user alice --add SCRAM-SHA-256=[password=hush],producer_byte_rate=1",
            "the SCRAM credentials of a user are",
        ),
    ],
)
def test_se_5_a_wrong_quota_is_refused_with_the_reason(
    line: str, problem: str, barnabas: InProcess
) -> None:
    _, errors = barnabas(f"configs alter {line}", code=2)
    assert problem in errors
    assert "hush" not in errors


def test_se_5_a_rate_of_bytes_is_a_whole_number(barnabas: InProcess) -> None:
    """As in Kafka, whose broker refuses it."""
    _, errors = barnabas("configs alter --client web --add producer_byte_rate=0.5", code=1)
    assert "producer_byte_rate must be a LONG value" in errors
