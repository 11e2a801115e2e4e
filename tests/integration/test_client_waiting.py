"""Our clients while they wait: they log for what, and why it does not come."""

from __future__ import annotations

import asyncio
import logging
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import barnabas
from barnabas.cli.main import main
from barnabas.client.admin.admin import NewTopic
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.errors import DeliveryTimedOut
from barnabas.client.producer.producer import Producer
from barnabas.client.sync.producer import SyncAdmin, SyncConsumer, SyncProducer
from barnabas.errors import CoordinatorLoadInProgress, KafkaError
from barnabas.protocol.api import API_VERSIONS, INIT_PRODUCER_ID, METADATA
from barnabas.protocol.codec import Message
from barnabas.protocol.frame import decode_request_header, encode_response
from barnabas.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from barnabas.protocol.messages.init_producer_id import InitProducerIdResponse
from barnabas.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.types import TopicPartition
from tests.kit.processes.command_line import COMMAND, with_settings
from tests.kit.raw_client import PATIENCE_S
from tests.kit.waiting import until, wait_until

pytestmark = pytest.mark.secured


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """One broker of two, where two replicas are wanted of internal topics, which are not made
    yet, and of `test`, which is led by the one that is left."""
    with barnabas.Cluster(brokers=2) as cluster:
        wanted = NewTopic("test", configs={"min.insync.replicas": "2"}, assignment={0: [1, 2]})
        with SyncAdmin(cluster.bootstrap_servers) as admin:
            half = NewTopic("half", assignment={0: [1], 1: [2], 2: [1]})
            admin.create_topics([wanted, half])
            cluster.stop_broker(2)
            wait_until(lambda: [*admin.describe_topics(["test"])[0].partitions[0].isr] == [1])
        yield cluster.bootstrap_servers


async def warned_of(what: str, caplog: pytest.LogCaptureFixture) -> str:
    """The first such warning of our clients, once it is there."""
    await until(lambda: warnings(what, caplog))
    return warnings(what, caplog)[0]


def warnings(what: str, caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.name.startswith("barnabas.client")
        and record.levelno == logging.WARNING
        and what in record.getMessage()
    ]


def test_a_consumer_without_a_coordinator_says_so(
    servers: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> str:
        async with Consumer(servers, group_id="k1") as consumer:
            consumer.subscribe(["test"])
            await consumer.poll(0)
            return await warned_of("group 'k1'", caplog)

    said = asyncio.run(work())
    assert said.startswith("the coordinator of group 'k1' is not available, retrying: COORD")


def test_a_producer_without_a_transaction_coordinator_says_so(
    servers: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> str:
        async with Producer(servers, transactional_id="t1") as producer:
            waiting = asyncio.create_task(producer.init_transactions())
            said = await warned_of("transactional id 't1'", caplog)
            waiting.cancel()
            return said

    assert "is not available, retrying: COORDINATOR_NOT_AVAILABLE: " in asyncio.run(work())


def test_the_command_line_shows_it(servers: str) -> None:
    """UX-4: a command that waits does not look like one that hangs."""
    words = ["consume", "test", "--group", "k1", "--from-beginning", "--max-messages", "1"]
    with subprocess.Popen(
        [COMMAND, *with_settings([*words, "--bootstrap-server", servers])], stderr=subprocess.PIPE
    ) as consuming:
        bound = threading.Timer(PATIENCE_S, consuming.kill)
        bound.start()
        assert consuming.stderr is not None
        said = consuming.stderr.readline()
        bound.cancel()
        consuming.send_signal(signal.SIGINT)
        consuming.communicate()
    assert said.startswith(b"the coordinator of group 'k1' is not available, retrying: ")


def test_what_the_broker_refused_last_is_in_the_error(
    servers: str, caplog: pytest.LogCaptureFixture
) -> None:
    """PR-3, PR-5: once when it begins, and in the error at the end."""
    with (
        SyncProducer(servers, delivery_timeout_ms=5_000, request_timeout_ms=4_000) as producer,
        pytest.raises(
            DeliveryTimedOut, match=r"sent \d+ times, last rejected with NOT_ENOUGH_REPL"
        ),
    ):
        producer.send("test", b"x").result()
    assert len(warnings("retrying records for test-0: refused with NOT_EN", caplog)) == 1


@pytest.mark.parametrize(("refusals", "warned"), [(1, 0), (2, 1)])
def test_a_leader_that_is_a_moment_behind_is_no_warning(
    refusals: int, warned: int, caplog: pytest.LogCaptureFixture
) -> None:
    """PR-5: as after a topic is created; the second time it is."""
    with barnabas.Broker() as broker, SyncProducer(broker.bootstrap_servers) as producer:
        refused = broker.faults.add(
            api="Produce", topic="t", error="NOT_LEADER_OR_FOLLOWER", count=refusals
        )
        producer.send("t", b"x").result(PATIENCE_S)
    assert refused.hits == refusals
    assert len(warnings("retrying records for t-0: refused with NOT_LEADER", caplog)) == warned


def test_a_topic_that_stays_without_a_leader_is_not_asked_for_in_a_loop() -> None:
    """PR-9: quickly at first, as long as a topic takes to be made, then at some distance."""
    with (
        barnabas.Broker() as broker,
        SyncProducer(broker.bootstrap_servers, max_block_ms=500) as producer,
    ):
        asked = broker.faults.add(api="Metadata", topic="t", error="LEADER_NOT_AVAILABLE")
        with pytest.raises(KafkaError):
            producer.send("t", b"x").result(PATIENCE_S)
    assert 2 <= asked.hits <= 30


class WithoutIds:
    """Listens and answers as a broker that leads a partition and has no producer ids to give."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                header = decode_request_header(memoryview(await reader.readexactly(size)))
                api = {each.key: each for each in (API_VERSIONS, METADATA, INIT_PRODUCER_ID)}[
                    header.api_key
                ]
                _, port = writer.get_extra_info("sockname")
                answer = self._answer(header.api_key, port)
                parts = encode_response(api, header.api_version, header.correlation_id, answer)
                writer.write(b"".join(map(bytes, parts)))  # type: ignore[arg-type]
        except EOFError:
            writer.close()

    def _answer(self, api_key: int, port: int) -> Message:
        if api_key == API_VERSIONS.key:
            offered = (API_VERSIONS, METADATA, INIT_PRODUCER_ID)
            return ApiVersionsResponse(
                api_keys=[
                    ApiVersion(api_key=each.key, min_version=0, max_version=each.max_version)
                    for each in offered
                ]
            )
        if api_key == METADATA.key:
            partition = MetadataResponsePartition(
                partition_index=0, leader_id=0, replica_nodes=[0], isr_nodes=[0]
            )
            return MetadataResponse(
                brokers=[MetadataResponseBroker(node_id=0, host="127.0.0.1", port=port)],
                topics=[MetadataResponseTopic(name="test", partitions=[partition])],
            )
        return InitProducerIdResponse(error_code=CoordinatorLoadInProgress.code)


def test_a_producer_without_a_producer_id_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> str:
        listening = await asyncio.start_server(WithoutIds().serve, "127.0.0.1", 0)
        _, port = listening.sockets[0].getsockname()
        producer = Producer(f"127.0.0.1:{port}", delivery_timeout_ms=3_600_000)
        await producer.start()
        await producer.send("test", b"x")
        said = await warned_of("producer id", caplog)
        closing = asyncio.create_task(producer.close())
        await asyncio.sleep(0)
        closing.cancel()  # it would wait for the record
        await asyncio.gather(closing, return_exceptions=True)
        listening.close()
        await until(lambda: len(asyncio.all_tasks()) == 1)
        return said

    assert asyncio.run(work()) == (
        "there is no producer id yet, retrying: COORDINATOR_LOAD_IN_PROGRESS: "
        + CoordinatorLoadInProgress.meaning.rstrip(".")
    )


def test_partitions_with_a_leader_are_known_and_used_for_files(
    servers: str, tmp_path: Path
) -> None:
    """PR-2: what has no leader is not chosen, as for single records."""
    with SyncProducer(servers) as producer, SyncConsumer(servers) as consumer:
        for client in (producer, consumer):
            assert client.partitions_for("half") == [0, 1, 2]
            assert client.available_partitions_for("half") == [0, 2]
    lines = tmp_path / "lines"
    lines.write_bytes(b"x" * 99 + b"\n" + b"y" * 99 + b"\n" * 20_000)
    assert main(["produce", "half", str(lines), "--quiet", "--bootstrap-server", servers]) == 0
    with SyncConsumer(servers) as consumer:
        ends = consumer.end_offsets([TopicPartition("half", 0), TopicPartition("half", 2)])
    assert sum(ends.values()) == 20_001 and all(ends.values())
