"""A consumer of a log with a damaged batch: what is intact first, then an error, then the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from barnabas.client.sync.producer import SyncConsumer, SyncProducer
from barnabas.errors import CorruptMessage
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.consumer.fetched import ConsumerRecord
    from barnabas.testing.embedded.broker import Broker


@pytest.mark.parametrize(
    ("at", "byte"),
    [
        pytest.param(16, b"\x63", id="no such magic"),
        pytest.param(7, b"\x07", id="a base offset that is a later batch's"),
        pytest.param(7, b"\x01", id="a base offset that is an earlier batch's"),
        pytest.param(4, b"\x40", id="a base offset beyond the log"),
    ],
)
def test_ux_4_a_damaged_batch_is_an_error_between_its_neighbours(
    broker: Broker, at: int, byte: bytes
) -> None:
    name = TopicPartition(f"damaged.{at}.{byte.hex()}", 0)
    with SyncProducer(broker.bootstrap_servers, linger_ms=0) as producer:
        for number in range(40):
            producer.send(name.topic, bytes([number]) * 5000, partition=0)
            producer.flush()
    segment = broker.data_dir / str(name) / f"{0:020}.log"
    one = segment.stat().st_size // 40
    with segment.open("r+b") as file:
        file.seek(4 * one + at)
        file.write(byte)
    with SyncConsumer(broker.bootstrap_servers, max_partition_fetch_bytes=3 * one) as consumer:
        consumer.assign([name])
        consumer.seek(name, 0)
        found: list[ConsumerRecord] = []
        with pytest.raises(CorruptMessage, match=r"from offset 4 of damaged.*: .* seek past it"):
            for _ in range(20):
                found += consumer.poll(10_000)
        assert [record.offset for record in found] == [0, 1, 2, 3]
        consumer.seek(name, 5)
        found.clear()
        while consumer.position(name) < 40:
            found += consumer.poll(10_000)
        assert [record.offset for record in found] == list(range(5, 40))
