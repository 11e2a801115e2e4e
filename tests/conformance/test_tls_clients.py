"""SE-2: foreign clients over TLS, with certificates of their own; ours against a real Kafka."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas import Broker
from barnabas.client import NewTopic, SyncAdmin, SyncConsumer, SyncProducer
from barnabas.errors import BarnabasError
from benchmarks.brokers import kafka
from tests.kit import foreign
from tests.kit.broker.tls_broker import options, python_context, secured, tls_address
from tests.kit.certificates import Authority, PemFiles
from tests.kit.clients.kafka_tools import Tools

pytestmark = pytest.mark.foreign

VALUES = [b"%d:" % number + b"x" * size for number, size in enumerate((1, 1000, 20_000, 300_000))]
PASSWORD = "geheim"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.make(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def broker(authority: Authority) -> Iterator[Broker]:
    with Broker(config=secured(authority.server(), ssl_client_auth="required")) as running:
        yield running


def by_confluent(address: str, topic: str, files: PemFiles) -> list[bytes]:
    import confluent_kafka

    config: dict[str, str | int] = {
        "bootstrap.servers": address,
        "security.protocol": "SSL",
        "ssl.ca.location": str(files.truststore),
        "ssl.certificate.location": str(files.chain),
        "ssl.key.location": str(files.key),
    }
    producer = confluent_kafka.Producer(config)
    for value in VALUES:
        producer.produce(topic, value)
    assert producer.flush(60) == 0
    consumer = confluent_kafka.Consumer(
        {**config, "group.id": "confluent", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    got = consumer.consume(len(VALUES), timeout=60)
    consumer.close()
    return [message.value() or b"" for message in got]


def by_kafka_python(address: str, topic: str, files: PemFiles) -> list[bytes]:
    from kafka import KafkaConsumer, KafkaProducer

    config = {
        "bootstrap_servers": address,
        "security_protocol": "SSL",
        "ssl_context": python_context(files),
    }
    producer = KafkaProducer(**config)
    for value in VALUES:
        producer.send(topic, value)
    producer.flush(60)
    producer.close()
    consumer = KafkaConsumer(
        topic, **config, auto_offset_reset="earliest", consumer_timeout_ms=60_000
    )
    got = [next(consumer).value for _ in VALUES]
    consumer.close()
    return got


def by_aiokafka(address: str, topic: str, files: PemFiles) -> list[bytes]:
    import aiokafka

    async def exchange() -> list[bytes]:
        config = {
            "bootstrap_servers": address,
            "security_protocol": "SSL",
            "ssl_context": python_context(files),
        }
        async with aiokafka.AIOKafkaProducer(**config) as producer:
            for value in VALUES:
                await producer.send_and_wait(topic, value)
        async with aiokafka.AIOKafkaConsumer(
            topic, **config, auto_offset_reset="earliest"
        ) as consumer:
            return [(await consumer.getone()).value for _ in VALUES]

    return asyncio.run(asyncio.wait_for(exchange(), 60))


def by_kcat(address: str, topic: str, files: PemFiles) -> list[bytes]:
    kcat = [str(foreign.require_kcat()), "-b", address, "-t", topic, "-X", "security.protocol=SSL"]
    for name, path in (
        ("ca", files.truststore),
        ("certificate", files.chain),
        ("key", files.key),
    ):
        kcat += ["-X", f"ssl.{name}.location={path}"]
    lines = b"".join(value + b"\n" for value in VALUES)
    subprocess.run([*kcat, "-P"], input=lines, check=True, timeout=60)
    read = [*kcat, "-C", "-e", "-q", "-o", "beginning"]
    return subprocess.run(read, capture_output=True, check=True, timeout=60).stdout.split()


@pytest.mark.parametrize("exchange", [by_confluent, by_kafka_python, by_aiokafka, by_kcat])
def test_se_2_clients_write_and_read_over_tls(
    broker: Broker,
    authority: Authority,
    exchange: Callable[[str, str, PemFiles], list[bytes]],
) -> None:
    topic = exchange.__name__
    files = authority.client(topic)
    with broker.admin() as admin:
        admin.create_topics([NewTopic(topic, 1, 1)])
    assert exchange(tls_address(broker), topic, files) == VALUES


def test_se_2_the_java_client_with_keytools_stores(authority: Authority, tmp_path: Path) -> None:
    """The broker and the client have stores that keytool made: one PKCS12, one JKS."""
    server, client = authority.server(), authority.client("alice")
    store, trust = tmp_path / "server.p12", tmp_path / "trust.jks"
    client_store = tmp_path / "client.jks"
    made_pkcs12(server, store)
    keytool("-importcert", "-noprompt", "-alias", "ca", "-storetype", "JKS",
            "-file", str(authority.truststore), "-keystore", str(trust))  # fmt: skip
    made_pkcs12(client, tmp_path / "client.p12")
    keytool("-importkeystore", "-srckeystore", str(tmp_path / "client.p12"),
            "-srcstorepass", PASSWORD, "-deststoretype", "JKS",
            "-destkeystore", str(client_store))  # fmt: skip
    trusted = {
        "ssl.truststore.location": str(trust),
        "ssl.truststore.password": PASSWORD,
    }
    settings = {
        **secured(server, ssl_client_auth="required", ssl_keystore_type="PKCS12"),
        **trusted,
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": PASSWORD,
        "ssl.truststore.type": "JKS",
    }
    own = {
        "security.protocol": "SSL",
        **trusted,
        "ssl.keystore.location": str(client_store),
        "ssl.keystore.password": PASSWORD,
    }
    properties = tmp_path / "client.properties"
    properties.write_text("".join(f"{name}={value}\n" for name, value in own.items()))
    with Broker(config=settings) as broker:
        tools = Tools(tls_address(broker), tmp_path)
        tools.run("kafka-topics", "--create", "--topic", "java", "--command-config",
                  str(properties))  # fmt: skip
        tools.run("kafka-console-producer", "--topic", "java", "--producer.config",
                  str(properties), stdin="one\ntwo\n")  # fmt: skip
        with SyncConsumer(tls_address(broker), auto_offset_reset="earliest", **own) as consumer:
            consumer.assign([("java", 0)])
            got: list[bytes | None] = []
            while len(got) < 2:
                got += [record.value for record in consumer.poll(timeout_ms=60_000)]
    assert got == [b"one", b"two"]


def test_se_2_our_clients_speak_tls_with_a_real_kafka(authority: Authority, tmp_path: Path) -> None:
    settings = {**authority.server().settings(), "ssl.client.auth": "required"}
    given = options(authority.client("alice"))
    with kafka(tmp_path / "kafka", settings) as running:
        address = running.tls_servers
        with SyncAdmin(address, **given) as admin:
            admin.create_topics([NewTopic("t", 1, 1)])
        with SyncProducer(address, **given) as producer:
            sent = [producer.send("t", value) for value in VALUES]
            assert [each.result(60).offset for each in sent] == [0, 1, 2, 3]
        with SyncConsumer(address, auto_offset_reset="earliest", **given) as consumer:
            consumer.assign([("t", 0)])
            got: list[bytes | None] = []
            while len(got) < len(VALUES):
                got += [record.value for record in consumer.poll(timeout_ms=60_000)]
        assert got == VALUES
        without = options(authority.client("alice"), has_certificate=False)
        with pytest.raises(BarnabasError, match=r"set ssl\.keystore\.location"):
            SyncAdmin(address, **without)
        with pytest.raises(BarnabasError, match=r"set security\.protocol=SSL|speaks TLS"):
            SyncAdmin(address, default_api_timeout_ms=3000)


def made_pkcs12(files: PemFiles, path: Path) -> None:
    subprocess.run(
        [str(foreign.require_openssl()), "pkcs12", "-export", "-name", "own",
         "-inkey", str(files.key), "-in", str(files.chain), "-out", str(path),
         "-passout", f"pass:{PASSWORD}"],
        check=True, timeout=60,
    )  # fmt: skip


def keytool(*words: str) -> None:
    tool = foreign.require_java().with_name("keytool")
    done = subprocess.run(
        [str(tool), *words, "-storepass", PASSWORD] if "-importcert" in words else
        [str(tool), *words, "-deststorepass", PASSWORD],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
