"""`Broker(secure=True)`: TLS, log-ins and rules, with the settings that it hands out (SE-2..4)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer

import barnabas
from barnabas.cli.main import main
from barnabas.client import SyncProducer
from barnabas.client.errors import NoBrokersAvailable
from barnabas.config import load_properties
from barnabas.errors import (
    BarnabasError,
    ConfigError,
    SaslAuthenticationFailed,
    TopicAuthorizationFailed,
)

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def broker() -> Iterator[barnabas.Broker]:
    with barnabas.Broker(secure=True) as running:
        yield running


@pytest.fixture(scope="module")
def file(broker: barnabas.Broker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """How the administrator connects."""
    path = tmp_path_factory.mktemp("secure") / "client.properties"
    settings = broker.client_settings("java")
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return path


def run(capture: Capture, line: str, code: int = 0) -> str:
    capture.readouterr()
    actual = main(line.split())
    captured = capture.readouterr()
    assert actual == code, captured.err
    return captured.out if code == 0 else captured.err


def test_se_2_se_3_each_library_connects_with_its_settings(broker: barnabas.Broker) -> None:
    topic = broker.topic("orders")
    topic.send(b"ours")
    producer = Producer(broker.client_settings("confluent-kafka"))
    producer.produce("orders", b"confluent's")
    assert producer.flush(20) == 0

    async def send() -> None:
        async with AIOKafkaProducer(**broker.client_settings("aiokafka")) as aiokafka:
            await aiokafka.send_and_wait("orders", b"aiokafka's")

    asyncio.run(send())
    consumer = KafkaConsumer(
        "orders",
        auto_offset_reset="earliest",
        consumer_timeout_ms=20_000,
        **broker.client_settings("kafka-python"),
    )
    values = [next(consumer).value for _ in range(3)]
    consumer.close()
    assert values == topic.values() == [b"ours", b"confluent's", b"aiokafka's"]


def test_se_2_without_them_nobody_gets_in(broker: barnabas.Broker) -> None:
    with pytest.raises(NoBrokersAvailable, match=r"set security\.protocol"):
        SyncProducer(broker.bootstrap_servers, default_api_timeout_ms=2000)
    settings = broker.client_settings()
    wrong = settings["sasl.jaas.config"].replace('password="', 'password="x')
    with pytest.raises(Exception, match=r"[Aa]uthentication failed") as refused:
        SyncProducer({**settings, "sasl.jaas.config": wrong})
    assert wrong not in str(refused.value)


@pytest.mark.parametrize(
    ("protocol", "wanted"),
    [
        ("PLAINTEXT", "without a response: if it uses TLS on this port, set security.protocol=SSL"),
        ("SASL_PLAINTEXT", "if it uses TLS on this port, set security.protocol=SASL_SSL"),
        (
            "SSL",
            "at the first request: if it requires SASL authentication on this port, set "
            "security.protocol=SASL_SSL, sasl.mechanism and sasl.jaas.config",
        ),
    ],
)
def test_another_protocol_than_the_listeners_says_so(
    broker: barnabas.Broker, tmp_path: Path, capsys: Capture, protocol: str, wanted: str
) -> None:
    """UX-4: in place of the advice for an address where no broker is."""
    path = tmp_path / "client.properties"
    settings = {**broker.client_settings("java"), "security.protocol": protocol}
    if "SASL" not in protocol:
        del settings["sasl.mechanism"], settings["sasl.jaas.config"]
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    said = run(capsys, f"topics list --command-config {path}", 1)
    assert said.endswith(f"{wanted}\n")


def test_another_library_is_refused(broker: barnabas.Broker) -> None:
    with pytest.raises(ConfigError, match="library='sarama': not one of barnabas, java"):
        broker.client_settings("sarama")


def connects_by_librdkafka(path: Path) -> bool:
    """Whether librdkafka gets in with the lines of the file as they stand, as `kcat -F` does."""
    settings = dict(line.split("=", 1) for line in path.read_text().splitlines())
    return "orders" not in AdminClient(settings).list_topics(timeout=20).topics


def test_users_are_added_changed_and_deleted(
    broker: barnabas.Broker, file: Path, tmp_path: Path, capsys: Capture
) -> None:
    """SE-3: `barnabas users`, with files for clients."""
    option = f"--command-config {file}"
    alice = tmp_path / "alice.properties"
    said = run(capsys, f"users add alice --file {alice} {option}")
    of_librdkafka, authority = tmp_path / "alice.librdkafka.properties", tmp_path / "alice.ca.pem"
    assert said == (
        f"Added user alice; {alice} has the settings for a client, {of_librdkafka} those for kcat "
        f"and confluent-kafka; both refer to {authority}.\n"
    )
    modes = [path.stat().st_mode & 0o777 for path in (alice, of_librdkafka, authority)]
    assert modes == [0o600, 0o600, 0o644]
    assert connects_by_librdkafka(of_librdkafka)
    assert "already has a password" in run(capsys, f"users add alice {option}", 1)
    assert "alice\tSCRAM-SHA-512 (4,096 iterations)\n" in run(capsys, f"users list {option}")
    run(capsys, f"topics list --command-config {alice}")
    before = alice.read_text()
    run(capsys, f"users rotate alice --file {alice} {option}")
    assert alice.read_text() != before
    run(capsys, f"topics list --command-config {alice}")
    old = tmp_path / "old.properties"
    old.write_text(before)
    assert "uthentication failed" in run(capsys, f"topics list --command-config {old}", 1)
    assert run(capsys, f"users delete alice {option}") == (
        "Deleted user alice.\n"
        "Open connections of alice end now (barnabas.connections.end.with.user).\n"
    )
    assert "uthentication failed" in run(capsys, f"topics list --command-config {alice}", 1)
    assert "alice does not exist" in run(capsys, f"users rotate alice {option}", 1)
    assert "alice does not exist" in run(capsys, f"users delete alice {option}", 1)


def test_se_3_the_open_connections_of_a_deleted_user_end(
    file: Path, tmp_path: Path, capsys: Capture
) -> None:
    """Within a second, although its session would last an hour; nobody else's do."""
    option = f"--command-config {file}"
    heidi, ivan = tmp_path / "heidi.properties", tmp_path / "ivan.properties"
    for user, path in (("heidi", heidi), ("ivan", ivan)):
        run(capsys, f"users add {user} --file {path} {option}")
    with ExitStack() as stack:
        of_heidi, of_ivan = (
            stack.enter_context(SyncProducer(load_properties(str(path)))) for path in (heidi, ivan)
        )
        for producer in (of_heidi, of_ivan):
            with pytest.raises(BarnabasError):
                producer.send("none-of-theirs", b"x").result(20)
        run(capsys, f"users delete heidi {option}")
        with pytest.raises(SaslAuthenticationFailed):  # it has to connect again
            for _ in range(1_000):
                with suppress(TopicAuthorizationFailed):
                    of_heidi.send("none-of-theirs", b"x").result(20)
        with pytest.raises(TopicAuthorizationFailed):
            of_ivan.send("none-of-theirs", b"x").result(20)
    run(capsys, f"users delete ivan {option}")


def test_se_3_a_user_that_the_cluster_is_run_by_is_deleted_by_force_only(
    file: Path, capsys: Capture
) -> None:
    option = f"--command-config {file}"
    refused = run(capsys, f"users delete admin {option}", 1)
    assert "one of the brokers' super.users" in refused and "--force" in refused
    assert "admin\t" in run(capsys, f"users list {option}")


def test_se_4_what_stays_of_a_deleted_user_is_said_and_can_be_taken_away(
    file: Path, tmp_path: Path, capsys: Capture
) -> None:
    option = f"--command-config {file}"
    carol = tmp_path / "carol.properties"
    run(capsys, f"users add carol --file {carol} {option}")
    run(capsys, f"acls add --user carol --operation read --topic left {option}")
    run(capsys, f"acls add --user carol --deny --operation write --topic left {option}")
    said = run(capsys, f"users delete carol {option}").splitlines()
    assert said[1] == (
        "Rules that name carol remain, and will apply to a later user of this name "
        "(`barnabas acls delete --user carol`):"
    )
    allowed = "  allow User:carol Read on topic left, from any host"
    denied = "  deny User:carol Write on topic left, from any host"
    assert sorted(said[2:4]) == [allowed, denied]
    run(capsys, f"users add carol --file {carol} {option}")
    said = run(capsys, f"users delete carol --revoke {option}").splitlines()
    assert said[1:3] == ["Deleted 1 rule:", allowed]
    assert said[3].startswith("Rules that name carol remain") and said[4] == denied
    run(capsys, f"acls delete --user carol {option}")


def test_se_4_an_address_may_be_written_in_every_way(file: Path, capsys: Capture) -> None:
    option = f"--command-config {file}"
    run(capsys, f"acls add --user dave --operation read --topic left --host ::1 {option}")
    for host in ("0:0::1", "[::1]", "0:0:0:0:0:0:0:1"):
        assert "dave" in run(capsys, f"acls list --topic left --host {host} {option}")
        why = f"acls explain --user dave --operation read --topic left --host {host} {option}"
        assert run(capsys, why).startswith("Allowed: User:dave")
    run(capsys, f"acls delete --user dave --host [0::1] {option}")
    assert "dave" not in run(capsys, f"acls list --topic left {option}")


def test_se_4_a_host_that_matches_nobody_is_refused(
    broker: barnabas.Broker, file: Path, capsys: Capture
) -> None:
    """Kafka's tool accepts it; ours under that name adds it as well, with a warning."""
    option = f"--command-config {file}"
    line = f"acls add --user frank --operation read --topic left --host 10.0.0.0/8 {option}"
    assert "no client would match it" in run(capsys, line, 2)
    assert "frank" not in run(capsys, f"acls list --topic left {option}")
    line = (
        f"kafka-acls.sh --bootstrap-server {broker.bootstrap_servers} {option} --add --topic left "
        "--allow-principal User:frank --operation read --allow-host 10.0.0.0/8"
    )
    assert main(line.split()) == 0
    assert "warning: no client matches host 10.0.0.0/8" in capsys.readouterr().err
    run(capsys, f"acls delete --user frank {option}")


def test_se_4_a_user_may_do_nothing_at_first(
    broker: barnabas.Broker, file: Path, tmp_path: Path, capsys: Capture
) -> None:
    broker.topic("private").send(b"secret")
    bob = tmp_path / "bob.properties"
    run(capsys, f"users add bob --file {bob} --command-config {file}")
    line = f"consume private --from-beginning --max-messages 1 --command-config {bob}"
    refused = run(capsys, line, 1)
    assert "private" in refused and "`barnabas acls explain`" in refused
    assert run(capsys, f"topics list --command-config {bob}") == ""


def test_a_cluster_replicates_over_tls_and_keeps_its_users() -> None:
    """SE-2, SE-3: brokers log in to each other; a restart finds the same."""
    with barnabas.Cluster(brokers=2, secure=True) as cluster:
        topic = cluster.topic("orders", replication_factor=2)
        cluster.wait_for_isr("orders", 0, [1, 2])
        topic.send(b"one")
        cluster.stop_broker(cluster.wait_for_leader("orders"))
        topic.send(b"two")
        assert topic.values() == [b"one", b"two"]
    with barnabas.Broker(secure=True, process=True) as broker:
        broker.topic("orders").send(b"one")
        settings = broker.client_settings("confluent-kafka")
        broker.stop()
        broker.start()
        assert broker.client_settings("confluent-kafka") == settings
        consumer = Consumer({**settings, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        message = consumer.poll(30)
        consumer.close()
        assert message is not None and message.value() == b"one"


def test_se_6_nothing_that_is_printed_has_a_password(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(1)
    with barnabas.Broker(secure=tmp_path / "secure", production_defaults=True) as broker:
        broker.topic("orders").send(b"one")
        settings = broker.client_settings("confluent-kafka")
        with pytest.raises(KafkaException):
            wrong = {**settings, "sasl.password": "planted", "socket.timeout.ms": 1000}
            Consumer({**wrong, "group.id": "g", "log_level": 0}).list_topics(timeout=3)
        shown = repr(broker) + str(broker.server.config.warnings)
    out, err = capfd.readouterr()
    printed = shown + out + err + caplog.text
    assert "orders" in printed
    for secret in (settings["sasl.password"], "planted"):
        assert secret not in printed
