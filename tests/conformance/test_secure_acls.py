"""`barnabas acls`: a user who may do nothing, and the rules that change it (SE-4)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer

import barnabas
from barnabas.cli.main import main

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def broker() -> Iterator[barnabas.Broker]:
    with barnabas.Broker(secure=True, config={"group.initial.rebalance.delay.ms": "0"}) as running:
        yield running


@pytest.fixture(scope="module")
def file(broker: barnabas.Broker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """How the administrator connects."""
    path = tmp_path_factory.mktemp("secure") / "client.properties"
    settings = broker.client_settings("java")
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return path


class Commands:
    """Runs commands as the administrator."""

    def __init__(self, file: Path, capture: Capture) -> None:
        self._file = file
        self._capture = capture

    def __call__(self, line: str, code: int = 0) -> str:
        self._capture.readouterr()
        actual = main([*line.split(), "--command-config", str(self._file)])
        captured = self._capture.readouterr()
        assert actual == code, captured.err
        return captured.out if code == 0 else captured.err


@pytest.fixture
def run(file: Path, capsys: Capture) -> Commands:
    return Commands(file, capsys)


def settings_of(user: str, broker: barnabas.Broker, run: Commands) -> dict[str, str]:
    """Adds a user; how it connects with confluent-kafka."""
    said = run(f"users add {user}")
    password = said.rpartition(": ")[2].strip()
    settings = broker.client_settings("confluent-kafka")
    return {
        **settings,
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": user,
        "sasl.password": password,
    }


def outcome(settings: dict[str, str]) -> bytes | int | None:
    """The first value of the topic, or the code of the error."""
    options = {"group.id": "billing", "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, **options})
    consumer.subscribe(["orders"])
    try:
        message = consumer.poll(30)
        assert message is not None
        error = message.error()
        return message.value() if error is None else error.code()
    finally:
        consumer.close()


def test_se_4_a_denied_consumer_is_let_in(broker: barnabas.Broker, run: Commands) -> None:
    broker.topic("orders").send(b"one")
    alice = settings_of("alice", broker, run)
    assert outcome(alice) in (
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
    )
    ask = "acls explain --user alice --operation read --topic orders"
    before = run(ask)
    assert "Denied by default: User:alice, Read on topic orders, from any host." in before
    assert "\n  barnabas acls add --user alice --operation read --topic orders\n" in before
    assert "super.users" in before
    assert run("acls add --user alice --consumer --topic orders --group billing") == (
        "Added 3 rules:\n"
        "  allow User:alice Read on topic orders, from any host\n"
        "  allow User:alice Describe on topic orders, from any host\n"
        "  allow User:alice Read on group billing, from any host\n"
    )
    assert outcome(alice) == b"one"
    assert run(ask) == (
        "Allowed: User:alice, Read on topic orders, from any host.\n"
        "Rule: allow User:alice Read on topic orders, from any host.\n"
        "No rule denies it.\n"
    )
    assert "Denied: " in run("acls explain --user alice --operation write --topic orders")
    run("acls add --user alice --deny --operation all --topic *")
    denied = run(ask)
    assert "Denied: " in denied and "Rule: deny User:alice All on every topic" in denied
    (line,) = (each.strip() for each in denied.splitlines() if each.startswith("  barnabas"))
    undo = line.removeprefix("barnabas ").replace("'", "")
    assert "Deleted 1 rule:\n  deny User:alice All on every topic" in run(undo)
    assert json.loads(run(f"{ask} --json"))["allowed"] is True


def test_se_4_the_line_that_is_advised_lets_a_producer_in(
    broker: barnabas.Broker, run: Commands
) -> None:
    broker.topic("orders")
    bob = settings_of("bob", broker, run)

    def failure() -> int | None:
        failed: list[int | None] = []
        producer = Producer(bob)
        producer.produce(
            "orders",
            b"bob's",
            on_delivery=lambda error, _: failed.append(error.code() if error else None),
        )
        assert producer.flush(30) == 0
        return failed[0]

    assert failure() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    advice = run("acls explain --user bob --operation write --topic orders").splitlines()
    (line,) = (each.strip() for each in advice if each.startswith("  barnabas"))
    run(line.removeprefix("barnabas "))
    assert failure() is None


def test_se_4_rules_are_listed_and_removed(run: Commands) -> None:
    run("acls add --user carol --producer --topic logs- --resource-pattern-type prefixed")
    run("acls add --principal User:dan --operation describe --cluster --host 10.0.0.7")
    assert run("acls list --topic logs-web") == (
        "User:carol\tALLOW\tWRITE\t*\tTOPIC\tlogs-\tPREFIXED\n"
        "User:carol\tALLOW\tCREATE\t*\tTOPIC\tlogs-\tPREFIXED\n"
        "User:carol\tALLOW\tDESCRIBE\t*\tTOPIC\tlogs-\tPREFIXED\n"
    )
    assert run("acls list --topic logs-web --resource-pattern-type literal") == ""
    assert json.loads(run("acls list --user dan --json")) == [
        {
            "principal": "User:dan",
            "permission": "ALLOW",
            "operation": "DESCRIBE",
            "host": "10.0.0.7",
            "resource_type": "CLUSTER",
            "name": "kafka-cluster",
            "pattern_type": "LITERAL",
        }
    ]
    assert run("acls delete --user dan --deny --force") == "No matching rules.\n"
    assert "Deleted 1 rule:\n  allow User:dan Describe on the cluster, from 10.0.0.7\n" in run(
        "acls delete --user dan"
    )
    assert "Deleted 3 rules:" in run("acls delete --user carol --force")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("add --topic t --operation read", "name the users: --user NAME"),
        ("add --user a --operation read", "name a resource"),
        ("add --user a --topic t", "name the operations: --producer"),
        ("add --user a --consumer --topic t", "specify a --topic and a --group"),
        ("add --user a --producer --topic t --operation read", "leave out --operation"),
        ("add --user a --producer --topic t --deny", "--deny needs --operation"),
        ("add --user a --topic t --operation alter_tokens", "is not one of"),
        ("add --user a --operation idempotent-write --topic t", "ResourceType TOPIC only supports"),
        ("add --principal a --operation read --topic t", "write it as User:name"),
        ("remove", "name the rules to delete"),
        ("explain --user a --operation read --topic t --group g", "one user and one resource"),
    ],
)
def test_se_4_options_that_make_no_rule_are_refused(line: str, said: str, run: Commands) -> None:
    assert said in run(f"acls {line}", 2)


def test_se_4_a_rule_for_another_host_is_near(run: Commands) -> None:
    run("acls add --user fay --operation alter --topic far --host 10.0.0.7")
    ask = "acls explain --user fay --operation describe --topic far"
    denied = run(ask)
    assert "No rule for topic far allows it (1 rule checked).\n" in denied
    assert "Similar: allow User:fay Alter on topic far, from 10.0.0.7.\n" in denied
    allowed = run(f"{ask} --host 10.0.0.7")
    assert "Allowed: " in allowed and "Alter implies Describe, and no rule denies it.\n" in allowed


def test_se_4_a_user_who_may_not_see_the_rules_is_told_so(
    broker: barnabas.Broker, run: Commands, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "gil.properties"
    run(f"users add gil --file {path}")
    capsys.readouterr()
    assert main(["acls", "list", "--command-config", str(path)]) == 1
    assert "CLUSTER_AUTHORIZATION_FAILED" in capsys.readouterr().err


def test_se_4_a_broker_without_rules_says_how_to_get_them(capsys: Capture) -> None:
    with barnabas.Broker() as broker:
        assert main(["acls", "list", "--bootstrap-server", broker.bootstrap_servers]) == 1
    assert "`barnabas server start --secure`" in capsys.readouterr().err
