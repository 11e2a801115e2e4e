"""Foreign clients log in by every mechanism that they have, and are refused as they expect it."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider as AsyncTokens
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as PythonPartition
from kafka.net.sasl.oauth import AbstractTokenProvider as Tokens

from tests.kit import foreign
from tests.kit.broker.secured import (
    MECHANISMS,
    SECRET,
    USER,
    Secured,
    java_properties,
    options,
    secured_broker,
    token,
)
from tests.kit.clients.kafka_tools import Tools

pytestmark = pytest.mark.foreign

PATIENCE_S = 60
VALUE = b"sent by somebody who has logged in"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_broker(tmp_path_factory.mktemp("keys")) as one:
        yield one


def confluent_options(servers: str, mechanism: str) -> dict[str, Any]:
    common = {
        "bootstrap.servers": servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
    }
    if mechanism == "OAUTHBEARER":
        return {**common, "oauth_cb": lambda _: (token(), time.time() + 300)}
    return {**common, "sasl.username": USER, "sasl.password": SECRET}


def by_confluent(servers: str, mechanism: str, topic: str) -> bytes | None:
    given = confluent_options(servers, mechanism)
    producer = Producer({**given, "message.timeout.ms": PATIENCE_S * 1000})
    producer.produce(topic, VALUE)
    assert producer.flush(PATIENCE_S) == 0
    consumer = Consumer({**given, "group.id": topic})
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        message = consumer.poll(PATIENCE_S)
        assert message is not None and message.error() is None
        return message.value()
    finally:
        consumer.close()


def by_kafka_python(servers: str, mechanism: str, topic: str) -> bytes | None:
    class Fresh(Tokens):
        def token(self) -> str:
            return token()

    given = options(mechanism)
    if mechanism == "OAUTHBEARER":
        given["sasl_oauth_token_provider"] = Fresh()
    producer = KafkaProducer(bootstrap_servers=servers, **given)
    producer.send(topic, VALUE).get(PATIENCE_S)
    producer.close()
    consumer = KafkaConsumer(bootstrap_servers=servers, **given)
    consumer.assign([PythonPartition(topic, 0)])
    consumer.seek_to_beginning()
    found = consumer.poll(PATIENCE_S * 1000)
    consumer.close()
    return found[PythonPartition(topic, 0)][0].value  # type: ignore[no-any-return]


def by_aiokafka(servers: str, mechanism: str, topic: str) -> bytes | None:
    class Fresh(AsyncTokens):
        async def token(self) -> str:
            return token()

    async def whole() -> bytes | None:
        given = options(mechanism)
        if mechanism == "OAUTHBEARER":
            given["sasl_oauth_token_provider"] = Fresh()
        async with AIOKafkaProducer(bootstrap_servers=servers, **given) as producer:
            await producer.send_and_wait(topic, VALUE)
        async with AIOKafkaConsumer(
            topic, bootstrap_servers=servers, auto_offset_reset="earliest", **given
        ) as consumer:
            return (await consumer.getone()).value  # type: ignore[no-any-return]

    return asyncio.run(asyncio.wait_for(whole(), PATIENCE_S))


def by_kcat(servers: str, mechanism: str, topic: str) -> bytes | None:
    given = confluent_options(servers, mechanism)
    words = [str(foreign.require_kcat()), "-b", servers, "-t", topic]
    for name, value in given.items():
        words += ["-X", f"{name}={value}"]
    run: Callable[..., Any] = subprocess.run
    run([*words, "-P"], input=VALUE, check=True, timeout=PATIENCE_S)
    read = run([*words, "-C", "-e", "-q"], capture_output=True, check=True, timeout=PATIENCE_S)
    return bytes(read.stdout).strip()


CLIENTS = {
    "confluent-kafka": by_confluent,
    "kafka-python": by_kafka_python,
    "aiokafka": by_aiokafka,
    "kcat": by_kcat,
}


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("client", CLIENTS)
def test_se_3_a_client_logs_in_writes_and_reads(
    secured: Secured, client: str, mechanism: str
) -> None:
    if (client, mechanism) == ("kcat", "OAUTHBEARER"):
        pytest.skip("kcat cannot be given a token")
    topic = f"{client}-{mechanism}"
    assert CLIENTS[client](secured.servers, mechanism, topic) == VALUE


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_se_3_librdkafka_understands_a_refusal(secured: Secured, mechanism: str) -> None:
    errors: list[KafkaError] = []
    given = confluent_options(secured.servers, mechanism)
    producer = Producer({**given, "sasl.password": "wrong", "error_cb": errors.append})
    ends_at = time.monotonic() + PATIENCE_S
    while not errors and time.monotonic() < ends_at:
        producer.poll(0.1)
    assert errors[0].code() == KafkaError._AUTHENTICATION


def test_se_3_librdkafka_sets_and_describes_credentials(secured: Secured) -> None:
    """As the user that they are for may, too."""
    admin = AdminClient(confluent_options(secured.servers, "PLAIN"))
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 6000)
    wanted = [UserScramCredentialUpsertion("carol", info, SECRET.encode())]
    for done in admin.alter_user_scram_credentials(wanted).values():
        done.result(PATIENCE_S)
    described = admin.describe_user_scram_credentials(["carol"])["carol"].result(PATIENCE_S)
    (found,) = described.scram_credential_infos
    assert (found.mechanism, found.iterations) == (ScramMechanism.SCRAM_SHA_256, 6000)
    given = {**options("SCRAM-SHA-256"), "sasl_plain_username": "carol"}
    producer = KafkaProducer(bootstrap_servers=secured.servers, **given)
    producer.send("of-carol", VALUE).get(PATIENCE_S)
    producer.close()


@pytest.mark.slow
def test_se_3_kafkas_own_tools_log_in_and_make_users(
    secured: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Java client by three mechanisms, the last with a token of a file."""
    tools = Tools(secured.servers, tmp_path)
    token_file = tmp_path / "token"
    token_file.write_text(token())
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={token_file.as_uri()}"
    monkeypatch.setenv("JDK_JAVA_OPTIONS", allowed)
    files = {}
    for mechanism in MECHANISMS:
        files[mechanism] = tmp_path / f"{mechanism}.properties"
        files[mechanism].write_text(java_properties(mechanism, token_file))
    said = tools.run(
        "kafka-configs",
        *("--command-config", str(files["SCRAM-SHA-512"]), "--alter", "--entity-type", "users"),
        *("--entity-name", "dave", "--add-config", "SCRAM-SHA-256=[iterations=8192,password=d]"),
    )
    assert "Completed updating config for user dave." in said
    topic = ("--topic", "of-java")
    config = ("--producer.config", str(files["PLAIN"]))
    tools.run("kafka-console-producer", *topic, *config, stdin="of java\n")
    config = ("--consumer.config", str(files["OAUTHBEARER"]))
    limits = ("--from-beginning", "--max-messages", "1", "--timeout-ms", "60000")
    assert tools.run("kafka-console-consumer", *topic, *config, *limits) == "of java\n"
    given = {"sasl.username": "dave", "sasl.password": "d"}
    dave = AdminClient({**confluent_options(secured.servers, "SCRAM-SHA-256"), **given})
    assert "of-java" in dave.list_topics(timeout=PATIENCE_S).topics
