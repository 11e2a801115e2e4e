"""A Produce request that repeats another is answered, and appended, as if it were the first (PR-4).

Two brokers get the same requests. One gets them on one connection, where it may recognise them; the
other each on a connection of its own, where there is nothing to recognise. Answers must be equal to
the byte, and so must the logs.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas import Broker
from barnabas.protocol.api import API_VERSIONS, PRODUCE
from barnabas.protocol.frame import encode_request
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.types import FileSlice
from tests.kit.broker.topics import create
from tests.kit.effort import examples
from tests.kit.raw_client import RawClient, batch

PARTITIONS = 3
TOPICS = ("t", "x" * 120, "y" * 126, "z" * 127, "w" * 200)
VERSIONS = range(3, PRODUCE.max_version + 1)
_NUMBERS = count()


class Pair(NamedTuple):
    """Two brokers with the same topics."""

    one_connection: Broker
    many_connections: Broker


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    directory = tmp_path_factory.mktemp("pair")
    with Broker(directory / "one") as one, Broker(directory / "many") as many:
        yield Pair(one, many)


BATCHES = st.one_of(
    st.builds(batch, st.binary(max_size=300)),
    st.builds(batch, st.just(b"a"), st.just(b"b"), codec=st.sampled_from([0, 1, 2, 3, 4])),
    st.builds(
        batch,
        st.just(b"sequenced"),
        producer_id=st.integers(1, 2),
        producer_epoch=st.integers(0, 1),
        base_sequence=st.integers(0, 3),
    ),
    st.just(batch(b"large" * 5000)),
    st.just(batch(b"corrupt")[:-1] + b"\xff"),
    st.just(batch(b"two") + batch(b"of them")),
    st.sampled_from([None, b"", b"short", bytes(61)]),
)

REQUESTS = st.builds(
    lambda topic, rows, acks, timeout_ms, transactional_id: ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        transactional_id=transactional_id,
        topic_data=[TopicProduceData(name=topic, partition_data=rows)],
    ),
    st.sampled_from((*TOPICS, "unknown", "__consumer_offsets", "a b\u20ac")),
    st.lists(
        st.builds(
            PartitionProduceData, index=st.sampled_from([0, 0, 1, 2, 3, -1]), records=BATCHES
        ),
        min_size=1,
        max_size=2,
    ),
    st.sampled_from([-1, -1, -1, 1, 1, 2]),
    st.sampled_from([1000, 30_000]),
    st.sampled_from([None, None, None, None, "tx"]),
)

CLIENT_IDS = st.sampled_from(["raw", "raw", "raw", None, "", "längere"])


@pytest.mark.thorough
@settings(max_examples=examples(25))
@given(
    requests=st.lists(st.tuples(REQUESTS, CLIENT_IDS), min_size=1, max_size=8),
    version=st.sampled_from([*VERSIONS, 9, 9, 11]),
)
def test_pr_4_a_repetition_is_answered_like_the_first(
    pair: Pair, requests: list[tuple[ProduceRequest, str | None]], version: int
) -> None:
    topics = renamed(pair, requests)
    # Each twice, so that the second repeats the first, and once more at the end, all at once.
    frames = [
        framed(version, number, client_id, request)
        for number, (request, client_id) in enumerate([*doubled(requests), *requests])
    ]
    with RawClient(pair.one_connection.bootstrap_servers) as client:
        client.send_bytes(b"".join(frames))
        together = [client.receive_frame() for _ in frames]
    alone = []
    for frame in frames:
        with RawClient(pair.many_connections.bootstrap_servers) as client:
            client.send_bytes(frame)
            alone.append(client.receive_frame())
    assert together == alone
    assert logs(pair.one_connection, topics) == logs(pair.many_connections, topics)


@pytest.mark.thorough
@settings(max_examples=examples(60))
@given(data=st.data(), version=st.sampled_from([7, 8, 9, 10, 11]))
def test_pr_4_what_hardly_differs_is_no_repetition(
    pair: Pair, data: st.DataObject, version: int
) -> None:
    """A changed, cut, or longer frame after one that was learned: decoded as if nothing was."""
    row = PartitionProduceData(index=0, records=batch(b"value" * 30))
    topics = [TopicProduceData(name="t", partition_data=[row])]
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics)
    (topic,) = renamed(pair, [(request, "raw")])
    good = framed(version, 1, "raw", request)
    body = bytearray(good[4:])
    how = data.draw(st.sampled_from(["change", "cut", "insert", "append"]))
    at = data.draw(st.integers(4, 60) | st.integers(2, len(body) - 1))
    if how == "change":
        body[at] = data.draw(st.integers(0, 255))
    elif how == "cut":
        del body[at:]
    elif how == "insert":
        body[at:at] = data.draw(st.binary(min_size=1, max_size=3))
    else:
        body += data.draw(st.binary(min_size=1, max_size=5))
    bad = struct.pack(">i", len(body)) + body
    end = struct.pack(">ihhih", 10, API_VERSIONS.key, 0, 77, -1)  # no client id, no fields
    with RawClient(pair.one_connection.bootstrap_servers) as client:
        client.send_bytes(good)
        first = client.receive_frame()
        after_it = exchange(client, bad + end)
    with RawClient(pair.many_connections.bootstrap_servers) as client:
        client.send_bytes(good)
        assert client.receive_frame() == first
    with RawClient(pair.many_connections.bootstrap_servers) as client:
        assert exchange(client, bad + end) == after_it
    assert logs(pair.one_connection, [topic]) == logs(pair.many_connections, [topic])


def renamed(pair: Pair, requests: list[tuple[ProduceRequest, str | None]]) -> list[str]:
    """Give the requests topics of their own, new ones on both brokers; their names."""
    number = f"{next(_NUMBERS):06}"  # of one length, so that frames are
    topics = {id(topic): topic for request, _ in requests for topic in request.topic_data}
    created = set()
    for topic in topics.values():
        if topic.name in TOPICS:
            topic.name = (number + topic.name)[: max(len(number) + 1, len(topic.name))]
            created.add(topic.name)
    for broker in pair:
        with RawClient(broker.bootstrap_servers) as client:
            for name in sorted(created):
                create(client, name, PARTITIONS)
    return sorted(created)


def doubled(
    requests: list[tuple[ProduceRequest, str | None]],
) -> list[tuple[ProduceRequest, str | None]]:
    return [each for each in requests for _ in range(2)]


def framed(version: int, number: int, client_id: str | None, request: ProduceRequest) -> bytes:
    parts = encode_request(PRODUCE, version, number, client_id, request)
    return b"".join(part for part in parts if not isinstance(part, FileSlice))


def exchange(client: RawClient, sent: bytes) -> list[bytes]:
    """Everything that is answered, until the answer to the last request or the end."""
    answers: list[bytes] = []
    try:
        client.send_bytes(sent)
        client.socket.shutdown(socket.SHUT_WR)
        while answer := client.receive_frame():
            answers.append(answer)
    except ConnectionError:
        pass
    return answers


def logs(broker: Broker, topics: list[str]) -> dict[str, bytes]:
    """The bytes of every partition."""
    data_dir = Path(broker.data_dir)
    return {
        f"{topic}-{index}": b"".join(
            path.read_bytes() for path in sorted((data_dir / f"{topic}-{index}").glob("*.log"))
        )
        for topic in topics
        for index in range(PARTITIONS)
    }
