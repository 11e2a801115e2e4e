"""Which names in a file of client configs are a mistake."""

from __future__ import annotations

import pytest

from barnabas.client.config import ClientConfig, configure, of_every_client
from barnabas.client.known_options import unknown_options

_NAMES = """
acks allow.auto.create.topics auto.commit.interval.ms auto.include.jmx.reporter
auto.offset.reset batch.size bootstrap.controllers bootstrap.servers buffer.memory
check.crcs client.dns.lookup client.id client.rack compression.gzip.level
compression.lz4.level compression.type compression.zstd.level connections.max.idle.ms
default.api.timeout.ms delivery.timeout.ms enable.auto.commit enable.idempotence
enable.metrics.push exclude.internal.topics fetch.max.bytes fetch.max.wait.ms
fetch.min.bytes group.id group.instance.id group.protocol group.remote.assignor
heartbeat.interval.ms interceptor.classes internal.leave.group.on.close
internal.throw.on.fetch.stable.offset.unsupported isolation.level key.deserializer
key.serializer linger.ms max.block.ms max.in.flight.requests.per.connection
max.partition.fetch.bytes max.poll.interval.ms max.poll.records max.request.size
metadata.max.age.ms metadata.max.idle.ms metadata.recovery.strategy metric.reporters
metrics.num.samples metrics.recording.level metrics.sample.window.ms
partition.assignment.strategy partitioner.adaptive.partitioning.enable
partitioner.availability.timeout.ms partitioner.class partitioner.ignore.keys
receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms request.timeout.ms
retries retry.backoff.max.ms retry.backoff.ms send.buffer.bytes session.timeout.ms
socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
transaction.timeout.ms transactional.id value.deserializer value.serializer
"""
KAFKAS = tuple(filter(None, _NAMES.split()))
"""All of Kafka 3.9.1's ProducerConfig, ConsumerConfig and AdminClientConfig but security's."""


def test_ux_3_no_name_of_kafkas_clients_is_one() -> None:
    more = ["config.providers.file.class", "ssl.truststore.type", "sasl.mechanism", "linger_ms"]
    assert list(unknown_options([*KAFKAS, *more])) == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("request.timeout", "; did you mean request.timeout.ms?"),
        ("securty.protocol", "; did you mean security.protocol?"),
        ("Client.Id", "; did you mean client.id?"),
        ("colour", ""),
        ("security", ""),
    ],
)
def test_ux_3_a_mistyped_one_is_named_with_its_nearest(name: str, expected: str) -> None:
    (line,) = unknown_options([name])
    assert line == f"{name} is not a client config and has no effect{expected}"


def test_a_name_that_is_warned_of_is_left_out() -> None:
    assert of_every_client({"colour": "red", "client.id": "x"}) == {"client_id": "x"}
    assert configure(ClientConfig, {"client_id": "x"})[0].client_id == "x"
