"""Four foreign clients write with every codec and every `acks`, and read what each other wrote.

One running broker serves all of them. kcat's part skips where it is not installed.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence

import pytest

import barnabas
from tests.conformance import aiokafka_client, confluent_client, kafka_python_client, kcat_client
from tests.conformance.clients import ACKS, CODECS, AdminClient, Client, Seen, Sent

pytestmark = pytest.mark.foreign

PARTITIONS = 2
RECORDS_PER_RUN = 40


LIBRARIES: tuple[AdminClient, ...] = (confluent_client, kafka_python_client, aiokafka_client)
CLIENTS: tuple[Client, ...] = (*LIBRARIES, kcat_client)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("writer", CLIENTS, ids=lambda client: client.name)
def test_what_one_client_writes_every_client_reads(
    broker: barnabas.Broker, writer: Client, codec: str
) -> None:
    """PR-4, PR-9, CO-1: every acks level, one after the other, in the order it was sent."""
    topic = create(broker, f"exchange-{writer.name}-{codec}")
    sent: list[Sent] = []
    for acks in ACKS:
        run = [record(acks, number) for number in range(RECORDS_PER_RUN)]
        writer.produce(broker.bootstrap_servers, topic, run, codec=codec, acks=acks)
        sent += run
        if acks == 0:
            # Nobody was told when these arrived: wait for them, lest the next run overtakes them.
            readers_see(broker, topic, sent, (confluent_client,))
    readers_see(broker, topic, sent, installed())


@pytest.mark.parametrize("writer", LIBRARIES, ids=lambda client: client.name)
def test_nulls_and_empty_values_are_told_apart(broker: barnabas.Broker, writer: Client) -> None:
    """A null value is a tombstone, an empty one is not; a null key lets the partitioner choose."""
    topic = create(broker, f"nulls-{writer.name}")
    sent = [
        Sent(0, None, b"no key"),
        Sent(0, b"key", None),
        Sent(0, b"", b""),
        Sent(1, b"headers", b"x", (("twice", b"1"), ("twice", b"2"), ("empty", b""))),
    ]
    writer.produce(broker.bootstrap_servers, topic, sent, codec="none", acks=-1)
    readers_see(broker, topic, sent, installed())


@pytest.mark.parametrize("writer", LIBRARIES, ids=lambda client: client.name)
def test_binary_records_and_large_ones_survive(broker: barnabas.Broker, writer: Client) -> None:
    """CO-1: a record larger than a client's fetch limit still arrives."""
    topic = create(broker, f"large-{writer.name}")
    every_byte = bytes(range(256))
    sent = [Sent(0, every_byte, every_byte), Sent(0, b"large", every_byte * 3600)]
    writer.produce(broker.bootstrap_servers, topic, sent, codec="none", acks=-1)
    readers_see(broker, topic, sent, LIBRARIES)


def record(acks: int, number: int) -> Sent:
    """Distinct records of changing size that compress well."""
    value = f"acks={acks} number={number} " + "lorem ipsum " * (number * number % 211)
    return Sent(number % PARTITIONS, f"key-{number}".encode(), value.encode(), (("h", b"1"),))


def create(broker: barnabas.Broker, topic: str) -> str:
    confluent_client.create_topic(broker.bootstrap_servers, topic, PARTITIONS, {})
    return topic


def installed() -> tuple[Client, ...]:
    """All readers; kcat's own cases say what to install where it is missing."""
    return CLIENTS if shutil.which("kcat") else LIBRARIES


def readers_see(
    broker: barnabas.Broker, topic: str, sent: list[Sent], readers: Sequence[Client]
) -> None:
    expected = numbered(sent)
    for reader in readers:
        seen = reader.consume(broker.bootstrap_servers, topic, PARTITIONS, len(sent))
        assert seen == expected, f"as {reader.name} read it"


def numbered(sent: list[Sent]) -> list[Seen]:
    """What a log with nothing else in it holds: each partition's records from offset 0 on."""
    return [
        Seen(partition, offset, record.key, record.value, record.headers)
        for partition in range(PARTITIONS)
        for offset, record in enumerate(r for r in sent if r.partition == partition)
    ]
