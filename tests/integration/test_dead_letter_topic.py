"""A pipeline's dead letters on a real broker: none is too large to be sent (SP-2, LG-2)."""

from __future__ import annotations

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from barnabas import Broker
from barnabas.client import ConsumerRecord, NewTopic, SyncAdmin, SyncConsumer
from barnabas.types import TopicPartition
from barnabas_pipeline.dead_letter_topic import DeadLetterTopic
from barnabas_pipeline.schemas import DEAD_LETTERS

MOST_BYTES = 1_048_576


def letter(value: bytes, header: bytes = b"h") -> dict[str, object]:
    return {
        "reason": "it is odd",
        "key": b"k",
        "value": value,
        "headers": [{"key": "sent", "value": header}],
        "topic": "lines",
        "partition": 1,
        "offset": 7,
    }


def received(servers: str) -> list[ConsumerRecord]:
    found: list[ConsumerRecord] = []
    with SyncConsumer(servers, isolation_level="read_committed") as consumer:
        place = TopicPartition("dead", 0)
        consumer.assign([place])
        consumer.seek(place, 0)
        (end,) = consumer.end_offsets([place]).values()
        while consumer.position(place) < end:
            found += consumer.poll(1_000)
    return found


@pytest.mark.parametrize("size", [MOST_BYTES - 600, MOST_BYTES, 4 * MOST_BYTES])
def test_lg_2_of_a_letter_that_is_too_large_the_beginning_is_sent(size: int) -> None:
    """LG-2: a record at the broker's limit has no room for the headers that say what is wrong."""
    letters = pa.Table.from_pylist(
        [letter(b"a"), letter(b"x" * size), letter(b"y", b"z" * size), letter(b"b")],
        schema=DEAD_LETTERS,
    )
    with Broker() as broker:
        servers = broker.bootstrap_servers
        with SyncAdmin(servers) as admin:
            admin.create_topics([NewTopic("dead", 1)])
        DeadLetterTopic(servers, "dead", "a-query").send(letters, 0, since={})
        found = received(servers)
    assert [record.value for record in found] == [b"a", b"x" * 262_144, b"y", b"b"]
    headers = [dict(record.headers) for record in found]
    assert {each["reason"] for each in headers} == {b"it is odd"}
    assert headers[0]["sent"] == b"h" and "sent" not in headers[2]
    # A letter that was cut is rejected when it is sent again, as a line that was cut is.
    assert [each.get("file.cut") for each in headers] == [None, b"%d" % size, b"1", None]
