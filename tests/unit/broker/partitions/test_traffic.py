"""What topics take in and give out is counted, by topic and in all."""

from __future__ import annotations

from pathlib import Path

from barnabas import Broker
from barnabas.broker.partitions.traffic import Traffic
from barnabas.metrics import Registry
from barnabas.protocol.api import DELETE_TOPICS, FETCH
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from tests.kit.broker.fetches import fetch_request
from tests.kit.broker.following import NAME, leading, level, pair, run
from tests.kit.broker.metric_pages import page_of, samples, samples_of
from tests.kit.broker.produces import fill
from tests.kit.broker.topics import create
from tests.kit.raw_client import RawClient, batch

TOPICS = "kafka_server_brokertopicmetrics_"


def test_in_3_records_and_bytes_by_topic() -> None:
    """Requests that repeat each other take another path, and count alike."""
    one, three = batch(b"a"), batch(b"b", b"c", b"d")
    with Broker() as broker, RawClient(broker.bootstrap_servers) as client:
        create(client, "t")
        create(client, "u")
        fill(client, "t", one, one, one, three)
        fill(client, "u", three)
        client.call(FETCH, 11, fetch_request("t"))
        client.call(FETCH, 11, fetch_request("t", offset=3))
        client.call(FETCH, 11, fetch_request("t", offset=6))  # nothing is there
        found = samples_of(broker)
        in_bytes = 3 * len(one) + len(three)
        for name, of_t, of_u in (
            ("messagesin", 6, 3),
            ("bytesin", in_bytes, len(three)),
            ("bytesout", in_bytes + len(three), 0),
            ("replicationbytesin", 0, 0),
            ("replicationbytesout", 0, 0),
        ):
            assert found[f'{TOPICS}{name}_total{{topic="t"}}'] == of_t, name
            assert found[f'{TOPICS}{name}_total{{topic="u"}}'] == of_u, name
            assert found[f"{TOPICS}{name}_total"] == of_t + of_u, name

        client.call(DELETE_TOPICS, 4, DeleteTopicsRequest(topic_names=["t"], timeout_ms=60_000))
        found = samples_of(broker)
        assert f'{TOPICS}messagesin_total{{topic="t"}}' not in found
        assert found[f"{TOPICS}messagesin_total"] == 9, "a total never falls"


def test_in_3_bytes_between_brokers(tmp_path: Path) -> None:
    async def test() -> None:
        async with pair(tmp_path) as (one, two):
            leading(one, two)
            one.append(NAME, b"x" * 800)
            await level(one, two)
            size = len(batch(b"x" * 800))
            leader = samples(page_of(one.server.metrics))
            follower = samples(page_of(two.server.metrics))
            for topic in ("", '{topic="t"}'):
                assert leader[f"{TOPICS}replicationbytesout_total{topic}"] == size
                assert leader[f"{TOPICS}bytesin_total{topic}"] == size
                assert leader[f"{TOPICS}bytesout_total{topic}"] == 0
                assert follower[f"{TOPICS}replicationbytesin_total{topic}"] == size
                assert follower[f"{TOPICS}bytesin_total{topic}"] == 0

    run(test)


def test_in_3_only_topics_with_a_replica_have_a_name() -> None:
    registry = Registry()
    traffic = Traffic(registry, lambda: None)
    for number in range(100):
        first, second = traffic.join(f"t-{number}"), traffic.join(f"t-{number}")
        assert first is second
        first.bytes_in += 1
        traffic.leave(f"t-{number}")
        assert f'topic="t-{number}"' in page_of(registry)
        traffic.leave(f"t-{number}")
    found = samples(page_of(registry))
    assert len(found) == 5 and found[f"{TOPICS}bytesin_total"] == 100
