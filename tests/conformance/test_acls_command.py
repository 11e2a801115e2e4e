"""`barnabas acls`: a consumer that is denied, the rule that lets it in, and why (SE-4)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException

import barnabas
from barnabas.cli.main import main

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def broker() -> Iterator[barnabas.Broker]:
    with barnabas.Broker(secure=True) as running:
        yield running


@pytest.fixture(scope="module")
def option(broker: barnabas.Broker, tmp_path_factory: pytest.TempPathFactory) -> str:
    """How the administrator connects."""
    path = tmp_path_factory.mktemp("acls") / "client.properties"
    settings = broker.client_settings("java")
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return f"--command-config {path}"


def run(capture: Capture, line: str, code: int = 0) -> str:
    capture.readouterr()
    actual = main(line.split())
    captured = capture.readouterr()
    assert actual == code, (captured.out, captured.err)
    return captured.out if code != 2 else captured.err


def test_se_4_a_denied_consumer_is_let_in_by_a_rule(
    broker: barnabas.Broker, option: str, tmp_path: Path, capsys: Capture
) -> None:
    broker.topic("orders").send(b"two apples")
    alice = tmp_path / "alice.properties"
    run(capsys, f"users add alice --file {alice} {option}")
    password = alice.read_text().rpartition('password="')[2].partition('"')[0]
    settings = {
        **broker.client_settings("confluent-kafka"),
        "sasl.username": "alice",
        "sasl.password": password,
        "group.id": "billing",
        "auto.offset.reset": "earliest",
        "log_level": 0,
    }

    def consumed() -> bytes | None:
        consumer = Consumer(settings)
        try:
            consumer.subscribe(["orders"])
            message = consumer.poll(20)
            assert message is not None
            if message.error():
                raise KafkaException(message.error())
            return message.value()
        finally:
            consumer.close()

    with pytest.raises(KafkaException, match=r"(?i)authorization|not authorized"):
        consumed()
    explain = f"acls explain --user alice --operation read --topic orders {option}"
    assert run(capsys, explain, 1) == (
        "denied: User:alice from 127.0.0.1: Read on topic orders\n"
        "because no rule is about this resource\n"
        "barnabas acls add --principal User:alice --operation Read --topic orders\n"
    )
    line = f"acls add --user alice --consumer --topic orders --group billing {option}"
    assert run(capsys, line) == (
        "Added: User:alice may Read: topic orders\n"
        "Added: User:alice may Describe: topic orders\n"
        "Added: User:alice may Read: group billing\n"
    )
    assert consumed() == b"two apples"
    assert run(capsys, explain) == (
        "allowed: User:alice from 127.0.0.1: Read on topic orders\n"
        "because a rule allows it, and none denies it\n"
        "  User:alice may Read: topic orders\n"
    )
    run(capsys, f"acls add --user alice --deny --operation read --topic orders {option}")
    assert "denies comes before" in run(capsys, explain, 1)
    listed = json.loads(run(capsys, f"acls list --user alice --json {option}"))
    assert len(listed) == 4 and listed[0]["permission"] in ("Allow", "Deny")
    assert run(capsys, f"acls list --group billing {option}") == (
        "User:alice may Read: group billing\n"
    )
    removed = run(capsys, f"acls remove --user alice --force {option}")
    assert removed.count("Removed: User:alice may") == 4
    assert run(capsys, f"acls list {option}") == ""
    assert run(capsys, f"acls remove --user alice --force {option}") == "No rule matches.\n"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("add --topic t", "name whom it is about"),
        ("add --user a", "name what it is about"),
        ("add --user a --producer", "--producer needs a --topic"),
        ("add --user a --consumer --topic t", "needs a --topic and a --group"),
        ("add --user a --topic t --operation clusteraction", "of a topic there are Read"),
        ("add --user a --topic t --operation reed", "'reed' is not one of"),
        ("add --principal a --topic t", "write it as User:name"),
        ("remove", "name whose rules"),
        ("explain --operation read --topic t", "name one user and one resource"),
    ],
)
def test_what_makes_no_rule_is_a_sentence(words: str, problem: str, capsys: Capture) -> None:
    assert problem in run(capsys, f"acls {words} --bootstrap-server localhost:1", 2)
