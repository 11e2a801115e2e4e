"""Seven foreign clients write with every codec and every promise, and read what each other wrote.

One running broker serves all of them. The part of a client that is not installed skips.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.conformance.clients_in_use import CLIENTS, LIBRARIES, installed
from tests.kit.clients import confluent_client
from tests.kit.clients.clients import CODECS, AdminClient, Client, Promise, Seen, Sent

pytestmark = pytest.mark.foreign

PARTITIONS = 2
RECORDS_PER_RUN = 40
ACKNOWLEDGED = Promise(-1)
T0_MS = 1_700_000_000_000


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("writer", CLIENTS, ids=lambda client: client.name)
def test_what_one_client_writes_every_client_reads(
    servers: str, writer: Client, codec: str
) -> None:
    """PR-4, PR-6, PR-9, CO-1: every acks level and idempotence, in the order it was sent."""
    topic = create(servers, f"exchange-{writer.name}-{codec}")
    sent: list[Sent] = []
    for promise in writer.promises:
        run = [record(promise, number) for number in range(RECORDS_PER_RUN)]
        writer.produce(servers, topic, run, codec=codec, promise=promise)
        sent += run
        if promise.acks == 0:
            # These are not acknowledged: wait for them, lest the next run overtakes them.
            readers_see(servers, topic, sent, (confluent_client,))
    readers_see(servers, topic, sent, installed())


@pytest.mark.parametrize("writer", LIBRARIES, ids=lambda client: client.name)
def test_nulls_headers_and_timestamps_arrive_as_they_were_sent(
    servers: str, writer: AdminClient
) -> None:
    """A null value is a tombstone, an empty one is not; times need not rise nor be of today."""
    topic = create(servers, f"nulls-{writer.name}")
    sent = [
        Sent(0, None, b"no key", (), T0_MS),
        Sent(0, b"key", None, (), T0_MS - 86_400_000),
        Sent(0, b"", b"", (), 1),
        Sent(1, b"headers", b"x", (("twice", b"1"), ("twice", b"2"), ("empty", b"")), T0_MS + 1),
        Sent(1, None, b"", (("\N{GREEK SMALL LETTER ALPHA}", bytes(range(256))),), T0_MS),
    ]
    writer.produce(servers, topic, sent, codec="none", promise=ACKNOWLEDGED)
    readers_see(servers, topic, sent, LIBRARIES)


@pytest.mark.parametrize("writer", LIBRARIES, ids=lambda client: client.name)
def test_binary_records_and_large_ones_survive(servers: str, writer: AdminClient) -> None:
    """CO-1: a record larger than a client's fetch limit still arrives."""
    topic = create(servers, f"large-{writer.name}")
    every_byte = bytes(range(256))
    sent = [Sent(0, every_byte, every_byte), Sent(0, b"large", every_byte * 3600)]
    writer.produce(servers, topic, sent, codec="none", promise=ACKNOWLEDGED)
    readers_see(servers, topic, sent, LIBRARIES)


def record(promise: Promise, number: int) -> Sent:
    """Distinct records of changing size that compress well."""
    value = f"{promise} number={number} " + "lorem ipsum " * (number * number % 211)
    return Sent(number % PARTITIONS, f"key-{number}".encode(), value.encode(), (("h", b"1"),))


def create(servers: str, topic: str) -> str:
    confluent_client.create_topic(servers, topic, PARTITIONS, {})
    return topic


def readers_see(servers: str, topic: str, sent: list[Sent], readers: Sequence[Client]) -> None:
    """Each reader sees all of it, and all of them the same times."""
    expected = numbered(sent)
    first_times: list[int] | None = None
    for reader in readers:
        seen = reader.consume(servers, topic, PARTITIONS, len(sent))
        for got, want in zip(seen, expected, strict=False):
            timed = want if want.timestamp_ms >= 0 else want._replace(timestamp_ms=got.timestamp_ms)
            assert got == timed, f"as {reader.name} read it"
        assert len(seen) == len(expected), f"as {reader.name} read it"
        times = [one.timestamp_ms for one in seen]
        first_times = first_times or times
        assert times == first_times, f"as {reader.name} read it"


def numbered(sent: list[Sent]) -> list[Seen]:
    """What a log with nothing else in it holds: each partition's records from offset 0 on.

    A timestamp of -1 stands for one that the client chose.
    """
    return [
        Seen(
            partition,
            offset,
            record.key,
            record.value,
            record.headers,
            -1 if record.timestamp_ms is None else record.timestamp_ms,
        )
        for partition in range(PARTITIONS)
        for offset, record in enumerate(r for r in sent if r.partition == partition)
    ]
