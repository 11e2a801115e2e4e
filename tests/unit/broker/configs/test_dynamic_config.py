"""Settings that change while the broker runs: where they are kept, and that they are obeyed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from barnabas.broker.configs.config_edit import Change, Operation, increments, replacement
from barnabas.broker.configs.dynamic_config import DynamicConfig, apply_log_level
from barnabas.broker.configs.effective_config import Source, topic_configs
from barnabas.broker.node import Node
from barnabas.broker.seams import system_seams
from barnabas.broker.server import Server
from barnabas.clock import SystemClock
from barnabas.cluster import config_changes, layout
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.loading import children
from barnabas.cluster.store import Create, Delete, MetadataStore, Set, Znode
from barnabas.cluster.store import Operation as StoreOperation
from barnabas.config import TOPIC_KEYS, BrokerConfig, key_of
from barnabas.controller.topics import NewTopic
from barnabas.errors import (
    InvalidConfig,
    InvalidRequest,
    KafkaError,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from tests.kit.broker.brokers import delete_topic
from tests.kit.forwarding_store import ForwardingStore
from tests.kit.waiting import until

CHANGES = "/config/changes"


class LateClock:
    """The system's clock, put forward by the test."""

    def __init__(self) -> None:
        self._clock = SystemClock()
        self.ahead_ms = 0

    def monotonic_ms(self) -> int:
        return self._clock.monotonic_ms() + self.ahead_ms

    def wall_ms(self) -> int:
        return self._clock.wall_ms() + self.ahead_ms


class Beset(ForwardingStore):
    """A metadata store that takes its time, and where somebody else is faster once."""

    def __init__(self, store: MetadataStore, rival: Callable[[], Awaitable[object]]) -> None:
        super().__init__(store)
        self._rivals = [rival]

    async def read(self, path: str) -> Znode | None:
        await asyncio.sleep(0.005)
        return await super().read(path)

    async def commit(self, operations: Sequence[StoreOperation]) -> list[str | int]:
        if self._rivals:
            await self._rivals.pop()()
        return await super().commit(operations)


def dynamic_of(node: Node, store: MetadataStore) -> DynamicConfig:
    """One more, on another store."""
    return DynamicConfig(
        store,
        node.view,
        node.current_config,
        node.clock,
        node.replicas,
        node.controller,
        (node.replicas.broker_config_changed,),
    )


class Running:
    """A server, its metadata store and what tests ask of them."""

    def __init__(self, server: Server, clock: LateClock) -> None:
        self.server, self.clock, self.store = server, clock, server.node.store
        self.node = server.node
        self.dynamic = server.node.dynamic_config

    async def data(self, path: str) -> bytes | None:
        node = await self.store.read(path)
        return None if node is None else node.data

    async def entities_changed(self) -> list[bytes | None]:
        names = await children(self.store, CHANGES)
        return [await self.data(f"{CHANGES}/{name}") for name in names]


def run(directory: Path, scenario: Callable[[Running], Awaitable[None]], **settings: str) -> None:
    async def whole() -> None:
        clock = LateClock()
        named = {name.replace("_", "."): value for name, value in settings.items()}
        config = BrokerConfig(
            {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(directory), **named}
        )
        server = Server(config, system_seams()._replace(clock=clock))
        await server.start()
        try:
            await scenario(Running(server, clock))
        finally:
            await server.stop()

    asyncio.run(whole())


def write_offline(directory: Path, *nodes: tuple[str, bytes]) -> None:
    """What somebody left in the tree while no broker ran."""

    async def write() -> None:
        store = EmbeddedStore.open(directory)
        await store.commit([Create(path, data) for path, data in nodes])
        await store.close()

    asyncio.run(write())


def test_a_topics_settings_are_written_as_kafka_writes_them_and_obeyed(tmp_path: Path) -> None:
    """TP-4, ZK-1"""

    async def scenario(running: Running) -> None:
        await running.node.controller.create_topic(NewTopic("t", configs={"flush.ms": "5"}))
        change = [Change("segment.bytes", Operation.SET, "500")]
        await running.dynamic.alter_topic("t", increments(change, TOPIC_KEYS.__getitem__))
        written = b'{"version":1,"config":{"flush.ms":"5","segment.bytes":"500"}}'
        assert await running.data("/config/topics/t") == written
        assert await running.entities_changed() == [b'{"version":2,"entity_path":"topics/t"}']
        (name,) = await children(running.store, CHANGES)
        assert name == "config_change_0000000000"
        (replica,) = running.node.replicas
        assert replica.log.config.segment_bytes == 500
        expected = {"flush.ms": "5", "segment.bytes": "500"}
        assert running.node.image.topics["t"].config == expected
        await running.dynamic.alter_topic("t", replacement([]))
        assert replica.log.config.segment_bytes == 1073741824
        assert running.node.image.topics["t"].config == {}

    run(tmp_path, scenario)


def test_what_is_only_validated_or_refused_leaves_no_trace(tmp_path: Path) -> None:
    async def scenario(running: Running) -> None:
        await running.node.controller.create_topic(NewTopic("t"))
        fine = replacement([("segment.bytes", "500")])
        await running.dynamic.alter_topic("t", fine, validate_only=True)
        await running.dynamic.alter_broker(
            None, replacement([("message.max.bytes", "5")]), validate_only=True
        )
        for settings in ([("segment.bytes", "x")], [("no.such", "1")], [("flush.ms", "-1")]):
            with pytest.raises(InvalidConfig, match=settings[0][0]):
                await running.dynamic.alter_topic("t", replacement(settings))
        with pytest.raises(UnknownTopicOrPartition, match="topic none"):
            await running.dynamic.alter_topic("none", fine)
        assert await running.entities_changed() == []
        assert await running.data("/config/topics/t") == b'{"version":1,"config":{}}'
        assert await running.data("/config/topics/none") is None

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("broker_id", "name", "value", "error", "said"),
    [
        (0, "num.partitions", "3", InvalidRequest, "properties file"),
        (None, "ssl.client.auth", "none", InvalidRequest, "one broker at a time"),
        (0, "ssl.keystore.type", "PEM", InvalidRequest, "only for one listener"),
        (0, "message.max.bytes", "much", InvalidRequest, "message.max.bytes: 'much'"),
        (None, "log.retention.ms", "0", InvalidRequest, "log.retention.ms is 0"),
        (0, "max.connections.per.ip.overrides", "x", InvalidRequest, "overrides: 'x'"),
        (0, "message.max.byte", "5", InvalidConfig, "did you mean message.max.bytes"),
        (0, "sasl.jaas.config", "hush", InvalidConfig, "encoder secret not configured"),
        (None, "listener.name.x.sasl.jaas.config", "hush", InvalidRequest, "one broker at a time"),
        (0, "connections.max.reauth.ms", "5", InvalidRequest, "properties file"),
        (0, "listener.name.x.sasl.login.class", "a.B", InvalidConfig, "clients authenticate"),
        (0, "ssl.engine.factory.class", "x.Y", InvalidConfig, "promises that this class"),
        (0, "principal.builder.class", "a.B", InvalidConfig, "users are distinguished"),
        (0, "listener.name.plaintext.ssl.key.password", "hush", InvalidConfig, "secret not"),
    ],
)
def test_what_cannot_be_changed_so(
    tmp_path: Path,
    broker_id: int | None,
    name: str,
    value: str,
    error: type[KafkaError],
    said: str,
) -> None:
    """UX-3, UX-4"""

    async def scenario(running: Running) -> None:
        with pytest.raises(error, match=said):
            await running.dynamic.alter_broker(broker_id, replacement([(name, value)]))
        assert await running.entities_changed() == []

    run(tmp_path, scenario)


def test_a_change_that_a_topic_could_not_live_with_is_refused(tmp_path: Path) -> None:
    async def scenario(running: Running) -> None:
        topic = NewTopic("t", configs={"max.compaction.lag.ms": "10"})
        await running.node.controller.create_topic(topic)
        too_long = replacement([("log.cleaner.min.compaction.lag.ms", "11")])
        with pytest.raises(InvalidRequest, match=r"min\.compaction\.lag\.ms \(11\)"):
            await running.dynamic.alter_broker(None, too_long)

    run(tmp_path, scenario)


def test_new_settings_are_judged_with_those_that_stay(tmp_path: Path) -> None:
    async def scenario(running: Running) -> None:
        topic = NewTopic("t", configs={"min.compaction.lag.ms": "9"})
        await running.node.controller.create_topic(topic)
        change = [Change("max.compaction.lag.ms", Operation.SET, "8")]
        with pytest.raises(InvalidConfig, match=r"min\.compaction\.lag\.ms \(9\)"):
            await running.dynamic.alter_topic("t", increments(change, TOPIC_KEYS.__getitem__))

    run(tmp_path, scenario)


def test_a_brokers_settings_are_obeyed_and_outlive_it(tmp_path: Path) -> None:
    """One broker's before all brokers' before the file; topics take them as defaults."""

    async def change(running: Running) -> None:
        await running.node.controller.create_topic(NewTopic("t"))
        (replica,) = running.node.replicas
        await running.dynamic.alter_broker(None, replacement([("message.max.bytes", "3000")]))
        assert replica.log.config.max_message_bytes == 3000
        await running.dynamic.alter_broker(0, replacement([("message.max.bytes", "2000")]))
        assert replica.log.config.max_message_bytes == 2000
        assert running.node.config.int("message.max.bytes") == 2000
        written = b'{"version":1,"config":{"message.max.bytes":"%d"}}'
        assert await running.data("/config/brokers/0") == written % 2000
        assert await running.data("/config/brokers/<default>") == written % 3000
        assert await running.entities_changed() == [
            b'{"version":2,"entity_path":"brokers/<default>"}',
            b'{"version":2,"entity_path":"brokers/0"}',
        ]

    async def find(running: Running) -> None:
        (replica,) = running.node.replicas
        assert running.node.config.int("message.max.bytes") == 2000
        assert replica.log.config.max_message_bytes == 2000
        await running.dynamic.alter_broker(0, replacement([]))
        assert replica.log.config.max_message_bytes == 3000
        await running.dynamic.alter_broker(None, replacement([]))
        assert replica.log.config.max_message_bytes == 1000

    run(tmp_path, change, message_max_bytes="1000")
    run(tmp_path, find, message_max_bytes="1000")


def test_another_ones_change_is_taken_up_by_the_watch(tmp_path: Path) -> None:
    async def scenario(running: Running) -> None:
        await running.node.controller.create_topic(NewTopic("t"))
        (replica,) = running.node.replicas
        await running.store.commit(
            [
                Set("/config/topics/t", layout.encode_config({"segment.bytes": "700"})),
                Create(f"{CHANGES}/config_change_", b"not json", sequential=True),
                Create(
                    f"{CHANGES}/config_change_",
                    b'{"version":1,"entity_type":"topics","entity_name":"t"}',
                    sequential=True,
                ),
                Create(
                    f"{CHANGES}/config_change_",
                    b'{"version":2,"entity_path":"users/bob"}',
                    sequential=True,
                ),
            ]
        )
        await until(lambda: replica.log.config.segment_bytes == 700)

    run(tmp_path, scenario)


def test_those_who_change_one_node_at_once_lose_nothing(tmp_path: Path) -> None:
    """Each finds its own setting in force when it is answered."""

    async def scenario(running: Running) -> None:
        await running.node.controller.create_topic(NewTopic("t"))
        (replica,) = running.node.replicas
        names = ["flush.ms", "retention.ms", "segment.ms", "segment.bytes", "max.message.bytes"]

        async def alter(name: str) -> None:
            change = [Change(name, Operation.SET, "777")]
            await running.dynamic.alter_topic("t", increments(change, TOPIC_KEYS.__getitem__))
            assert getattr(replica.log.config, name.replace(".", "_")) == 777
            assert running.node.image.topics["t"].config[name] == "777"

        await asyncio.gather(*map(alter, names))
        assert running.node.image.topics["t"].config == dict.fromkeys(names, "777")

    run(tmp_path, scenario)


def test_what_somebody_else_wrote_meanwhile_is_kept(tmp_path: Path) -> None:
    """ZK-1: by the node's version; and a slow store keeps the answer back."""

    async def scenario(running: Running) -> None:
        await running.node.controller.create_topic(NewTopic("t"))
        (replica,) = running.node.replicas
        rival = Set("/config/topics/t", layout.encode_config({"segment.bytes": "700"}))
        dynamic = dynamic_of(
            running.node, Beset(running.store, lambda: running.store.commit([rival]))
        )
        await dynamic.start()
        try:
            change = [Change("flush.ms", Operation.SET, "7")]
            await dynamic.alter_topic("t", increments(change, TOPIC_KEYS.__getitem__))
            assert (replica.log.config.segment_bytes, replica.log.config.flush_ms) == (700, 7)
        finally:
            await dynamic.stop()
        with pytest.raises(UnknownServerError, match="stopping"):
            await dynamic.alter_topic("t", replacement([]))

    run(tmp_path, scenario)


def test_without_a_session_nothing_is_changed_and_the_client_gets_an_error(tmp_path: Path) -> None:
    """ZK-5: at a look as at the commit."""

    async def scenario(running: Running) -> None:
        await running.node.controller.create_topic(NewTopic("t"))
        store = EmbeddedStore()
        session = store.session()
        dynamic = dynamic_of(running.node, session)
        await dynamic.start()
        session.expire()
        try:
            with pytest.raises(UnknownServerError, match="the metadata store does not answer"):
                await dynamic.alter_topic("t", replacement([("flush.ms", "7")]))
        finally:
            await dynamic.stop()
            await store.close()

    run(tmp_path, scenario)


def test_a_topic_that_goes_meanwhile_gets_no_settings(tmp_path: Path) -> None:
    """Else they would wait there for the next topic of that name."""

    async def scenario(running: Running) -> None:
        await running.node.controller.create_topic(NewTopic("t"))
        await running.store.commit([Delete("/config/topics/t")])  # as of an old topic
        dynamic = dynamic_of(
            running.node, Beset(running.store, lambda: delete_topic(running.node.controller, "t"))
        )
        await dynamic.start()
        try:
            with pytest.raises(UnknownTopicOrPartition, match="topic t does not exist"):
                await dynamic.alter_topic("t", replacement([("flush.ms", "7")]))
        finally:
            await dynamic.stop()
        assert await running.data("/config/topics/t") is None

    run(tmp_path, scenario)


def test_changes_are_removed_when_everybody_has_had_time_to_see_them(tmp_path: Path) -> None:
    async def scenario(running: Running) -> None:
        await running.dynamic.alter_broker(None, replacement([("log.roll.ms", "1")]))
        running.clock.ahead_ms += 14 * 60 * 1000
        await running.dynamic.alter_broker(None, replacement([("log.roll.ms", "2")]))
        assert len(await running.entities_changed()) == 2
        running.clock.ahead_ms += 2 * 60 * 1000
        await running.dynamic.alter_broker(None, replacement([("log.roll.ms", "3")]))
        assert await children(running.store, CHANGES) == (
            "config_change_0000000001",
            "config_change_0000000002",
        )

    run(tmp_path, scenario)


def test_what_cannot_be_used_is_left_out_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """UX-4: left by hand or by another version; the rest counts, and can be changed."""

    async def scenario(running: Running) -> None:
        assert running.node.config.int("message.max.bytes") == 5
        assert running.node.config.int("num.partitions") == 1
        edit = increments([Change("log.roll.ms", Operation.SET, "9")], key_of)
        await running.dynamic.alter_broker(0, edit)
        assert running.node.config.int("log.roll.ms") == 9
        data = await running.data("/config/brokers/0")
        assert layout.decode_config("", data)["no.such"] == "1"

    run(tmp_path, lambda _: asyncio.sleep(0))
    settings = {"message.max.bytes": "5", "num.partitions": "9", "no.such": "1"}
    bad = {"log.segment.bytes": "x", "listener.name.tls.ssl.key.password": "hush"}
    bad["listener.name.tls.ssl.engine.factory.class"] = "x.Y"
    bad["listener.name.tls.principal.builder.class"] = "a.B"
    write_offline(
        tmp_path,
        ("/config/brokers/0", layout.encode_config({**settings, **bad})),
        ("/config/brokers/<default>", b"not json"),
    )
    run(tmp_path, scenario)
    for name in (
        "num.partitions",
        "no.such",
        "log.segment.bytes",
        "ssl.key.password",
        "engine.factory.class",
        "principal.builder.class",
    ):
        assert name in caplog.text
    assert "/config/brokers/<default>" in caplog.text
    assert "hush" not in caplog.text


def test_a_topic_with_settings_that_it_cannot_have_is_there_without_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """UX-4: as above, of a topic. They can be taken back, and others changed."""

    async def create(running: Running) -> None:
        await running.node.controller.create_topic(NewTopic("t", configs={"flush.ms": "7"}))
        settings = {"flush.ms": "7", "segment.bytes": "x", "no.such": "1"}
        await running.store.commit([Set("/config/topics/t", layout.encode_config(settings))])

    async def find(running: Running) -> None:
        (replica,) = running.node.replicas
        assert replica.log.config.flush_ms == 7
        assert replica.log.config.segment_bytes == 1073741824
        (entry,) = (
            each
            for each in topic_configs(running.node.config, running.node.image.topics["t"].config)
            if each.key.name == "segment.bytes"
        )
        assert (entry.value, entry.source) == ("1073741824", Source.DEFAULT)
        for said in ("segment.bytes: 'x'", "no.such is not a topic config"):
            assert said in caplog.text
        for change in (
            Change("flush.ms", Operation.SET, "8"),
            Change("no.such", Operation.DELETE, None),
        ):
            await running.dynamic.alter_topic("t", increments([change], TOPIC_KEYS.__getitem__))
        assert replica.log.config.flush_ms == 8
        data = await running.data("/config/topics/t")
        assert layout.decode_config("", data) == {"flush.ms": "8", "segment.bytes": "x"}

    run(tmp_path, create)
    run(tmp_path, find)


def test_a_setting_without_effect_is_warned_about(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """UX-3"""

    async def scenario(running: Running) -> None:
        await running.node.controller.create_topic(NewTopic("t"))
        await running.dynamic.alter_topic("t", replacement([("preallocate", "true")]))
        await running.dynamic.alter_broker(None, replacement([("num.io.threads", "9")]))

    run(tmp_path, scenario)
    warnings = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert "topic t: preallocate has no effect: segments grow as they are written" in warnings
    assert "num.io.threads has no effect: Barnabas does this work on one event loop" in warnings


def test_the_log_level_is_obeyed_at_once(tmp_path: Path) -> None:
    logger = logging.getLogger("barnabas")
    before = logger.level

    async def scenario(running: Running) -> None:
        assert logger.level == logging.ERROR
        await running.dynamic.alter_broker(None, replacement([("barnabas.log.level", "WARN")]))
        assert logger.level == logging.WARNING
        await running.dynamic.alter_broker(None, replacement([]))
        assert logger.level == logging.ERROR

    try:
        run(tmp_path, scenario, barnabas_log_level="ERROR")
    finally:
        logger.setLevel(before)


def test_a_session_that_ends_is_one_line_and_the_next_one_takes_up_what_was_missed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """TP-5, ZK-5"""

    async def scenario() -> None:
        store = EmbeddedStore()
        session = store.session()
        change = config_changes.encode_change("topics/t")
        config = BrokerConfig({"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path)})
        server = Server(config, store=session)
        await server.start()
        try:
            await server.node.controller.create_topic(NewTopic("t", configs={"flush.ms": "5"}))
            replica = server.node.replicas.replica_of(("t", 0))
            session.expire()
            await store.commit(
                [
                    Set("/config/topics/t", layout.encode_config({"flush.ms": "7"})),
                    Create(config_changes.CHANGE_PREFIX, change, sequential=True),
                ]
            )
            await asyncio.sleep(0.05)
            assert replica.log.config.flush_ms == 5
            session.reconnect()
            async with asyncio.timeout(60):
                while replica.log.config.flush_ms != 7:
                    await asyncio.sleep(0.01)
        finally:
            await server.stop()

    asyncio.run(scenario())
    said = [each for each in caplog.records if each.name.endswith("dynamic_config")]
    warnings = [each.getMessage() for each in said if each.levelno >= logging.WARNING]
    assert warnings == [
        "config changes will be applied in the next session: "
        "/config/changes: the session has expired"
    ]
    assert not any(each.exc_info for each in said)


def test_without_a_configured_level_the_parent_loggers_decide() -> None:
    logger = logging.getLogger("barnabas")
    before = logger.level
    try:
        apply_log_level(BrokerConfig({"log.dir": "/d", "barnabas.log.level": "FATAL"}))
        assert logger.level == logging.CRITICAL
        apply_log_level(BrokerConfig({"log.dir": "/d"}))
        assert logger.level == logging.NOTSET
    finally:
        logger.setLevel(before)
