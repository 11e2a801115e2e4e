"""The embedded broker: several at once, restarts, failures that say what to do."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from barnabas import Broker, Cluster
from barnabas.client.admin.configs import BROKER, ConfigResource
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.fetched import ConsumerRecord
from barnabas.client.consumer.subscription import RebalanceListener
from barnabas.client.errors import ClientClosed
from barnabas.client.producer.producer import Producer
from barnabas.client.sync.producer import SyncAdmin
from barnabas.errors import ConfigError
from barnabas.protocol.api import FETCH
from barnabas.testing.embedded.settings import Setting
from barnabas.types import TopicPartition
from tests.kit.broker.fetches import fetch_request, only, values
from tests.kit.broker.produces import fill
from tests.kit.broker.topics import create
from tests.kit.raw_client import PATIENCE_S, RawClient, batch
from tests.kit.waiting import wait_until


def broker_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if "barnabas" in thread.name]


def test_several_at_once_share_nothing() -> None:
    before = broker_threads()
    with Broker() as one, Broker() as two:
        assert one.port != two.port and one.data_dir != two.data_dir
        with RawClient(one.bootstrap_servers) as client:
            create(client, "only-here")
        assert (one.data_dir / "only-here-0").is_dir()
        assert not (two.data_dir / "only-here-0").exists()
    wait_until(lambda: broker_threads() == before)


def test_a_temporary_directory_goes_with_its_broker() -> None:
    with Broker() as broker:
        directory = broker.data_dir
        assert directory.is_dir()
    assert not directory.exists()


def test_what_was_written_is_there_after_a_restart(tmp_path: Path) -> None:
    """ST-8: a clean stop, and a start that needs no recovery."""
    with Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
        create(client, "kept")
        fill(client, "kept", batch(b"a", b"b"))
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    with Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
        assert not (tmp_path / ".kafka_cleanshutdown").exists()
        partition = only(client.call(FETCH, 11, fetch_request("kept")))
        assert values(partition) == [b"a", b"b"]
        fill(client, "kept", batch(b"c"))
        assert values(only(client.call(FETCH, 11, fetch_request("kept", 2)))) == [b"c"]


def test_the_same_object_starts_again(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    for _ in range(2):
        broker.start()
        with pytest.raises(ConfigError, match="already running"):
            broker.start()
        broker.stop()
    broker.stop()
    with pytest.raises(ConfigError, match="not running"):
        _ = broker.bootstrap_servers


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    """UX-4: locked by another broker, in this process too; nothing is damaged."""
    with Broker(tmp_path) as broker:
        with pytest.raises((ConfigError, OSError), match=str(tmp_path)):
            Broker(tmp_path).start()
        with RawClient(broker.bootstrap_servers) as client:
            create(client, "still-works")


def test_a_taken_port_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port} is in use"):
            Broker(port=port).start()


def test_a_bad_config_is_refused_with_the_nearest_name() -> None:
    """UX-3"""
    with pytest.raises(ConfigError, match=r"num\.partitions"):
        Broker(config={"num.partition": "3"}).start()


def test_a_client_that_stays_connected_does_not_hold_up_the_stop() -> None:
    with Broker() as broker:
        idle = socket.create_connection(("127.0.0.1", broker.port), 5)
        reader = RawClient(broker.bootstrap_servers)
        create(reader, "waited-for")
        reader.send(FETCH, 11, fetch_request("waited-for", max_wait_ms=60_000))
    assert idle.recv(1) == b""
    idle.close()
    reader.socket.close()


def test_the_directories_may_come_with_the_configuration(tmp_path: Path) -> None:
    both = f"{tmp_path / 'a'},{tmp_path / 'b'}"
    with Broker(config={"log.dirs": both}) as broker:
        assert broker.data_dir == tmp_path / "a"
        assert (tmp_path / "b" / "meta.properties").exists()
    with pytest.raises(ConfigError, match="set only one of them"):
        Broker(tmp_path / "c", config={"log.dirs": both})


def test_the_port_stays_the_same_after_a_stop(tmp_path: Path) -> None:
    """TK-1: a client that knew the broker finds it again, and its data."""
    broker = Broker(tmp_path)
    with broker, RawClient(broker.bootstrap_servers) as client:
        port = broker.port
        create(client, "kept")
        fill(client, "kept", batch(b"a"))
    with broker, RawClient(f"127.0.0.1:{port}") as client:
        assert broker.port == port
        assert values(only(client.call(FETCH, 11, fetch_request("kept")))) == [b"a"]


SETTINGS: dict[str, Setting] = {
    "num.partitions": 3,
    "auto.create.topics.enable": False,
    "log.cleaner.min.cleanable.ratio": 0.25,
    "compression.type": "zstd",
}


@pytest.mark.parametrize("kind", [Broker, Cluster])
def test_settings_may_be_numbers_and_booleans(kind: type[Broker | Cluster], tmp_path: Path) -> None:
    """TK-1: as a program writes them; what no file could have is refused by its name."""
    with kind(config={**SETTINGS, "log.dir": tmp_path}) as running:
        described = configs(running, *SETTINGS, "log.dir", "group.initial.rebalance.delay.ms")
    assert described == {
        "num.partitions": "3",
        "auto.create.topics.enable": "false",
        "log.cleaner.min.cleanable.ratio": "0.25",
        "compression.type": "zstd",
        "log.dir": str(tmp_path),
        "group.initial.rebalance.delay.ms": "0",  # unless it is set, as below
    }
    with pytest.raises(ConfigError, match=r"^num\.partitions must be text, a number"):
        kind(config={"num.partitions": [3]})  # type: ignore[dict-item]


@pytest.mark.parametrize(("kind", "size"), [(Broker, 1), (Cluster, 3)])
def test_tk_1_defaults_suit_tests_and_kafkas_are_had_by_one_argument(
    kind: type[Broker | Cluster], size: int
) -> None:
    names = (
        "group.initial.rebalance.delay.ms",
        "offsets.topic.num.partitions",
        "transaction.state.log.num.partitions",
        "replica.fetch.backoff.ms",
    )
    with kind() as running:
        few = configs(running, *names)
    with kind(production_defaults=True) as running:
        many = configs(running, *names)
    assert list(few.values()) == ["0", str(size), str(size), "50"]
    assert list(many.values()) == ["3000", "50", "50", "1000"]


def test_tk_1_the_log_is_quiet_unless_somebody_asks(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")

    def lines(**options: bool) -> int:
        caplog.clear()
        with Broker(**options) as broker:  # type: ignore[arg-type]
            broker.topic("t")
            broker.group("g").state()
        return len([each for each in caplog.records if each.levelno < logging.WARNING])

    assert lines() == 0
    assert lines(production_defaults=True) > 0
    caplog.set_level("INFO", "barnabas")
    assert lines() > 0


def test_tk_1_port_and_data_survive_a_stop_and_end_with_close() -> None:
    broker = Broker().start()
    port, directory = broker.port, broker.data_dir
    broker.topic("kept").send(b"a")
    broker.stop()
    broker.stop()
    broker.start()
    assert (broker.port, broker.topic("kept").values()) == (port, [b"a"])
    broker.close()
    broker.close()
    assert not directory.exists()
    with broker:
        assert (broker.port, broker.topics()) == (port, [])


def test_tk_1_clients_that_were_handed_out_survive_a_stop_and_end_with_close() -> None:
    before = broker_threads()
    with Broker() as broker:
        broker.topic("t")
        producer, consumer = broker.producer(), broker.consumer("t")
        producer.send("t", b"before").result()
        broker.stop()
        broker.start()
        producer.send("t", b"after").result()
        received = 0
        while received < 2:
            received += len(consumer.poll(1000))
    wait_until(lambda: broker_threads() == before)
    with pytest.raises(ClientClosed):
        producer.send("t", b"too late")


class Held(RebalanceListener):
    """Keeps its consumer inside `poll` until it is released."""

    def __init__(self) -> None:
        self.is_inside = threading.Event()
        self.released = threading.Event()

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self.is_inside.set()
        self.released.wait(PATIENCE_S)


@pytest.mark.slow
def test_tk_1_a_client_in_use_does_not_keep_the_broker(caplog: pytest.LogCaptureFixture) -> None:
    before = broker_threads()
    held = Held()
    with Broker() as broker:
        broker.topic("t")
        consumer = broker.consumer(group_id="g", client_id="left-behind", enable_auto_commit=False)
        consumer.subscribe(["t"], held)

        def read() -> None:
            with suppress(ClientClosed):
                while not held.is_inside.is_set():
                    consumer.poll(100)

        thread = threading.Thread(target=read)
        thread.start()
        assert held.is_inside.wait(PATIENCE_S)
        stopped = broker.data_dir
    (warning,) = (each for each in caplog.messages if "outlives its broker" in each)
    assert "'left-behind'" in warning and f"created at {__file__}:" in warning
    assert warning.endswith("is still in use or has records to send")
    assert not stopped.exists()
    held.released.set()
    thread.join(PATIENCE_S)
    consumer.close()
    wait_until(lambda: broker_threads() == before)  # what closed it ends as well


def test_tk_1_any_thread_may_start_and_stop() -> None:
    """One of those that start at once does it, the others are told; a stop is for all."""
    before = broker_threads()
    broker = Broker()
    outcomes: list[str] = []

    def start() -> None:
        try:
            broker.start()
            outcomes.append("started")
        except ConfigError as error:
            outcomes.append(str(error))

    for call in (start, broker.stop):
        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
    assert sorted(outcomes) == ["started", *["this broker is already running"] * 3]
    wait_until(lambda: broker_threads() == before)
    broker.close()


def test_tk_1_an_argument_that_is_none_is_refused() -> None:
    with pytest.raises(TypeError, match="prodution_defaults: Broker has no such argument"):
        Broker(prodution_defaults=True)  # type: ignore[call-arg]


def test_kafkas_rebalance_delay_is_had_by_asking_for_it() -> None:
    """TK-1"""
    name = "group.initial.rebalance.delay.ms"
    with Broker(config={name: 3000}) as broker:
        assert configs(broker, name) == {name: "3000"}
    with Cluster(1, broker_config={1: {name: 3000}}) as cluster:
        assert configs(cluster, name) == {name: "3000"}


def configs(running: Broker | Cluster, *names: str) -> dict[str, str | None]:
    """A broker's settings as a client reads them."""
    with SyncAdmin(running.bootstrap_servers) as admin:
        broker_id = admin.describe_cluster().brokers[0].broker_id
        entries = admin.describe_configs(ConfigResource(BROKER, str(broker_id)), names)
    return {entry.name: entry.value for entry in entries}


@pytest.mark.parametrize("kind", [Broker, Cluster])
def test_async_with_leaves_nothing_behind(kind: type[Broker | Cluster]) -> None:
    """TK-1: the caller's loop goes on meanwhile; no thread, socket or file stays."""

    async def scene() -> None:
        async with kind() as running:
            directory = running.data_dir
            async with Producer(running.bootstrap_servers) as producer:
                await (await producer.send("t", b"v"))
            async with Consumer(
                running.bootstrap_servers, group_id="g", auto_offset_reset="earliest"
            ) as consumer:
                consumer.subscribe(["t"])
                records = await asyncio.wait_for(polled(consumer), PATIENCE_S)
            assert [record.value for record in records] == [b"v"]
            with pytest.raises(ConfigError, match="already running"):
                await running.__aenter__()
        assert not directory.exists()

    before = (broker_threads(), sockets())
    asyncio.run(scene())
    wait_until(lambda: (broker_threads(), sockets()) == before)  # disk threads end by themselves


@pytest.mark.parametrize("kind", [Broker, Cluster])
def test_an_async_start_that_fails_leaves_nothing_behind(kind: type[Broker | Cluster]) -> None:
    async def scene() -> None:
        with pytest.raises(ConfigError, match=r"no\.such"):
            async with kind(config={"no.such": 1}):
                pass

    before = (broker_threads(), sockets())
    asyncio.run(scene())
    wait_until(lambda: (broker_threads(), sockets()) == before)  # disk threads end by themselves


def test_who_is_cancelled_in_it_leaves_nothing_behind(tmp_path: Path) -> None:
    """And the stop is a clean one all the same."""

    async def life(is_inside: asyncio.Event) -> None:
        async with Broker(tmp_path):
            is_inside.set()
            await asyncio.Event().wait()

    async def scene() -> None:
        is_inside = asyncio.Event()
        task = asyncio.create_task(life(is_inside))
        await is_inside.wait()
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()  # while it stops
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()

    before = (broker_threads(), sockets())
    asyncio.run(scene())
    wait_until(lambda: (broker_threads(), sockets()) == before)  # disk threads end by themselves
    assert (tmp_path / ".kafka_cleanshutdown").exists()


@pytest.mark.thorough
def test_leaving_a_cluster_prints_nothing() -> None:
    """TK-1: where logging is not set up, warnings go to standard error: there are none."""
    done = subprocess.run(
        [sys.executable, "-c", CLUSTER_IN_USE], capture_output=True, timeout=PATIENCE_S, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


CLUSTER_IN_USE = """
import barnabas
from barnabas.client.admin.admin import NewTopic
from barnabas.client.sync.producer import SyncAdmin, SyncProducer

with barnabas.Cluster(brokers=3) as cluster:
    with SyncAdmin(cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("t", 6, 3)])
    with SyncProducer(cluster.bootstrap_servers, acks="all") as producer:
        for number in range(100):
            producer.send("t", b"%d" % number)
"""


async def polled(consumer: Consumer) -> list[ConsumerRecord]:
    while True:
        records = await consumer.poll(100)
        if records:
            return records


def sockets() -> int:
    """How many this process has open; 0 where that cannot be seen."""
    links = Path("/proc/self/fd")
    return sum("socket:" in os.readlink(link) for link in links.iterdir() if link.is_symlink())
