"""MX-1, MX-2: brokers of Kafka's and of ours in one cluster, each kind in every role.

One cluster serves all tests here, because a broker of Kafka's takes seconds to start. The last test
kills one broker of either kind and lets them change places; all that was acknowledged is then on
every replica, the same to the byte.
"""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as Place

from barnabas.client import NewTopic, SyncAdmin
from barnabas.client.admin.partition_admin import PREFERRED
from barnabas.protocol.api import (
    DESCRIBE_CONFIGS,
    INCREMENTAL_ALTER_CONFIGS,
    INIT_PRODUCER_ID,
    METADATA,
)
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.protocol.messages.incremental_alter_configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.types import TopicPartition, uuid_text
from tests.kit.clients import confluent_client
from tests.kit.clients.clients import Promise, Sent
from tests.kit.processes.cluster_load import (
    BURST,
    acknowledge_more,
    check_everything_is_there,
    committed_values,
    wait_for_full_isr,
)
from tests.kit.processes.cluster_process import wait_for_equal_files
from tests.kit.processes.mixed_cluster import (
    KINDS,
    PATIENCE_S,
    Kind,
    MixedCluster,
    described,
    mixed_cluster,
    name_led_by,
    restore_leaders,
)
from tests.kit.processes.senders import PARTITIONS, ConfluentSender, Sender, sending
from tests.kit.raw_client import RawClient
from tests.kit.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.foreign, pytest.mark.timeout(600)]

OPTIONS = (
    "min.insync.replicas=2",
    "replica.lag.time.max.ms=2000",
    "auto.create.topics.enable=false",
    "auto.leader.rebalance.enable=false",
    "zookeeper.session.timeout.ms=6000",
)
FIRST: dict[int, Kind] = {1: "kafka", 2: "ours", 3: "kafka"}
LED_BY: dict[Kind, list[int]] = {"kafka": [1, 2, 3], "ours": [2, 3, 1]}
STEP = 100
BLOCK = 1_000
TOPIC_RESOURCE = 2
QUIET = {"reconnect.backoff.max.ms": 200, "log_level": 0}


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MixedCluster]:
    with mixed_cluster(tmp_path_factory.mktemp("mixed"), FIRST, *OPTIONS) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def admin(mixed: MixedCluster) -> Iterator[SyncAdmin]:
    with SyncAdmin(mixed.bootstrap_servers) as admin:
        yield admin


@pytest.fixture(autouse=True)
def in_order(admin: SyncAdmin) -> None:
    """Each test starts with all replicas in sync and the leaders where they belong."""
    restore_leaders(admin)


def make_topic(admin: SyncAdmin, stem: str, assignment: dict[int, list[int]]) -> str:
    topic = f"{stem}-{uuid4().hex[:6]}"
    admin.create_topics([NewTopic(topic, assignment=assignment)])
    wait_until(partial(is_led_as, admin, topic, {n: each[0] for n, each in assignment.items()}))
    return topic


def is_led_as(admin: SyncAdmin, topic: str, leaders: dict[int, int]) -> bool:
    found = {each.partition: each.leader for each in described(admin, topic).partitions}
    return found == leaders


# --- every role ----------------------------------------------------------------------------------


def transact(producer: Producer, topic: str, values: list[bytes], *, commits: bool = True) -> None:
    producer.begin_transaction()
    send_all(producer, topic, values)
    assert producer.flush(PATIENCE_S) == 0
    end_transaction(producer, commits=commits)


def send_all(producer: Producer, topic: str, values: list[bytes]) -> None:
    for value in values:
        wait_until(partial(is_taken, producer, topic, value), PATIENCE_S)


def is_taken(producer: Producer, topic: str, value: bytes) -> bool:
    """librdkafka believes a Kafka that has just begun and knows of no topic yet."""
    try:
        producer.produce(topic, value, partition=0)
    except KafkaException as refused:
        if refused.args[0].code() != KafkaError._UNKNOWN_TOPIC:
            raise
        producer.list_topics(topic, PATIENCE_S)
        return False
    return True


def end_transaction(producer: Producer, *, commits: bool = True) -> None:
    end = producer.commit_transaction if commits else producer.abort_transaction

    def has_ended() -> bool:
        try:
            end(PATIENCE_S)
        except KafkaException as refused:
            if not refused.args[0].retriable():
                raise
            return False
        return True

    wait_until(has_ended, PATIENCE_S)


def transactional(servers: str, name: str) -> Producer:
    settings = {"bootstrap.servers": servers, "transactional.id": name, **QUIET}
    producer = Producer({**settings, "transaction.timeout.ms": 300_000})
    producer.init_transactions(PATIENCE_S)
    return producer


def read_in_group(servers: str, group: str, topic: str, count: int) -> list[bytes]:
    """The next `count` records of a group, which commits behind them."""
    settings = {"bootstrap.servers": servers, "group.id": group, "enable.auto.commit": False}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest", **QUIET})
    consumer.subscribe([topic])
    seen: list[bytes] = []

    def has_read() -> bool:
        for message in consumer.consume(count - len(seen), 0.2):
            if message.error() is None:
                seen.append(confluent_client.value_of(message))
        return len(seen) >= count

    try:
        wait_until(has_read, PATIENCE_S)
        [committed] = consumer.commit(
            offsets=[Place(topic, 0, consumer.position([Place(topic, 0)])[0].offset)],
            asynchronous=False,
        )
        assert committed.error is None
        return seen
    finally:
        consumer.close()


def test_either_kind_is_controller_leader_and_coordinator(
    mixed: MixedCluster, admin: SyncAdmin
) -> None:
    """MX-1, MX-2: an idempotent producer, a group and a transaction in each of the eight pairings
    of roles; producers and positions of one pairing are used again in the others."""
    servers = mixed.bootstrap_servers
    plain = {kind: make_topic(admin, f"by-{kind}", {0: LED_BY[kind]}) for kind in KINDS}
    whole = {kind: make_topic(admin, f"tx-{kind}", {0: LED_BY[kind]}) for kind in KINDS}
    confluent_client.produce(servers, plain["ours"], [])
    warm_internal_topics(mixed, admin)
    groups, producers = {}, {}
    for kind in KINDS:
        ids = mixed.of_kind(kind)
        groups[kind] = name_led_by(admin, "__consumer_offsets", "readers", ids)
        producers[kind] = transactional(
            servers, name_led_by(admin, "__transaction_state", "writer", ids)
        )
    written = dict.fromkeys((*plain.values(), *whole.values()), 0)
    read = {(topic, group): 0 for topic in plain.values() for group in groups.values()}
    committed: dict[str, list[bytes]] = {topic: [] for topic in whole.values()}
    for controller, leader, coordinator in itertools.product(KINDS, KINDS, KINDS):
        mixed.give_control_to(controller)
        topic, tx_topic, group = plain[leader], whole[leader], groups[coordinator]
        values = [b"%d" % (written[topic] + n) for n in range(STEP)]
        sent = [Sent(0, b"key", value) for value in values]
        promise = Promise(-1, is_idempotent=True)
        confluent_client.produce(servers, topic, sent, promise=promise)
        written[topic] += STEP
        start = read[topic, group]
        read[topic, group] = written[topic]
        seen = read_in_group(servers, group, topic, written[topic] - start)
        assert seen == [b"%d" % n for n in range(start, written[topic])]
        for commits in (True, False):
            values = [b"%d" % (written[tx_topic] + n) for n in range(STEP)]
            written[tx_topic] += STEP
            transact(producers[coordinator], tx_topic, values, commits=commits)
            committed[tx_topic] += values * commits
    for topic in whole.values():
        assert committed_values(servers, topic, 1) == committed[topic]
    for topic in (*plain.values(), *whole.values()):
        wait_for_equal_files(mixed.ours, topic, 0)


def warm_internal_topics(mixed: MixedCluster, admin: SyncAdmin) -> None:
    """Have both internal topics created, and led by their preferred replicas."""
    topic = make_topic(admin, "warm", {0: [2, 3, 1]})
    confluent_client.produce(mixed.bootstrap_servers, topic, [Sent(0, b"key", b"first")])
    read_in_group(mixed.bootstrap_servers, "warm", topic, 1)
    transactional(mixed.bootstrap_servers, "warm")
    restore_leaders(admin)


# --- what brokers ask of the controller ----------------------------------------------------------


@pytest.mark.parametrize(
    ("controller", "leader", "follower"),
    [("kafka", 1, 2), ("kafka", 2, 3), ("ours", 1, 3), ("ours", 2, 3)],
)
def test_isrs_shrink_and_grow(
    mixed: MixedCluster, admin: SyncAdmin, controller: Kind, leader: int, follower: int
) -> None:
    """MX-1: AlterPartition of either kind of leader at either kind of controller."""
    [third] = {1, 2, 3} - {leader, follower}
    topic = make_topic(admin, "isr", {0: [leader, third, follower]})
    while mixed.give_control_to(controller) == follower:
        mixed.depose()
    servers = mixed.bootstrap_servers
    with paused(mixed, follower):
        confluent_client.produce(servers, topic, [Sent(0, b"key", b"%d" % n) for n in range(3)])
        wait_until(lambda: isr_at(mixed, leader, topic) == {leader, third}, PATIENCE_S)
    wait_until(lambda: isr_at(mixed, leader, topic) == {1, 2, 3}, PATIENCE_S)
    wait_for_equal_files(mixed.ours, topic, 0)


def isr_at(mixed: MixedCluster, broker_id: int, topic: str) -> set[int]:
    """As this broker has it, as a client might ask the one that does nothing."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    with RawClient(mixed.ours.brokers[broker_id].bootstrap_servers) as client:
        [found] = client.call(METADATA, 9, request).topics
    return set(found.partitions[0].isr_nodes)


@contextmanager
def paused(mixed: MixedCluster, broker_id: int) -> Iterator[None]:
    """A broker does nothing for the length of the block."""
    os.kill(mixed.pid_of(broker_id), signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(mixed.pid_of(broker_id), signal.SIGCONT)


def test_producer_ids_are_given_once(mixed: MixedCluster) -> None:
    """MX-1: AllocateProducerIds of either kind of broker at either kind of controller."""
    given: list[int] = []
    for controller, kind in itertools.product(KINDS, KINDS):
        mixed.give_control_to(controller)
        broker = mixed.ours.brokers[mixed.of_kind(kind)[0]]
        with RawClient(broker.bootstrap_servers) as client:
            wanted = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
            count = 0
            while count <= BLOCK:  # so that a new block has to be asked for
                answer = client.call(INIT_PRODUCER_ID, 4, wanted)
                if not answer.error_code:
                    given.append(answer.producer_id)
                    count += 1
    assert len(set(given)) == len(given) == 4 * (BLOCK + 1)


# --- what operators do ---------------------------------------------------------------------------


def test_configs_are_changed_through_either_kind(mixed: MixedCluster, admin: SyncAdmin) -> None:
    """MX-1: IncrementalAlterConfigs at each broker is in force at all of them."""
    topic = make_topic(admin, "configs", {0: [1, 2, 3]})
    for controller, broker_id in itertools.product(KINDS, mixed.kinds):
        mixed.give_control_to(controller)
        value = str(1_000_000 + 10 * broker_id + KINDS.index(controller))
        change_topic(mixed, broker_id, topic, value)
        for each in mixed.kinds:
            wait_until(partial(is_in_force, mixed, each, topic, value), PATIENCE_S)


def change_topic(mixed: MixedCluster, broker_id: int, topic: str, value: str) -> None:
    config = IncrementalAlterableConfig(name="max.message.bytes", config_operation=0, value=value)
    resource = IncrementalAlterConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=topic, configs=[config]
    )
    with RawClient(mixed.ours.brokers[broker_id].bootstrap_servers) as client:
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
        answer = client.call(INCREMENTAL_ALTER_CONFIGS, 1, request)
        assert [each.error_code for each in answer.responses] == [0], answer


def is_in_force(mixed: MixedCluster, broker_id: int, topic: str, value: str) -> bool:
    resource = DescribeConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=topic, configuration_keys=["max.message.bytes"]
    )
    with RawClient(mixed.ours.brokers[broker_id].bootstrap_servers) as client:
        answer = client.call(DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(resources=[resource]))
    return [each.value for each in answer.results[0].configs] == [value]


@pytest.mark.parametrize("controller", KINDS)
def test_partitions_move_between_the_kinds(
    mixed: MixedCluster, admin: SyncAdmin, controller: Kind
) -> None:
    """MX-1: reassignments and preferred elections; the topic's id is the same to all brokers."""
    servers = mixed.bootstrap_servers
    mixed.give_control_to(controller)
    topic = make_topic(admin, "moved", {0: [1, 3]})
    topic_id, name = described(admin, topic).topic_id, TopicPartition(topic, 0)
    assert any(topic_id)
    count = 0
    for replicas in ([2, 3], [3, 1], [1, 2, 3], [2, 1, 3]):
        count += STEP
        values = [Sent(0, b"key", b"%d" % n) for n in range(count - STEP, count)]
        confluent_client.produce(servers, topic, values)
        assert admin.alter_partition_reassignments({name: replicas}) == {name: None}
        wait_until(partial(has_moved, admin, topic, tuple(replicas)), PATIENCE_S)
        admin.elect_leaders(PREFERRED, [name])
        wait_until(partial(is_led_as, admin, topic, {0: replicas[0]}), PATIENCE_S)
    seen = confluent_client.consume(servers, topic, 1, count)
    assert [one.value for one in seen] == [b"%d" % n for n in range(count)]
    for broker in mixed.ours.brokers.values():
        with SyncAdmin(broker.bootstrap_servers) as one:
            assert described(one, topic).topic_id == topic_id
        assert uuid_text(topic_id) in metadata_file(broker.data_dir, topic)
    wait_for_equal_files(mixed.ours, topic, 0)
    admin.create_partitions(topic, 3)
    wait_until(lambda: len(described(admin, topic).partitions) == 3, PATIENCE_S)
    admin.delete_topics([topic])
    for broker in mixed.ours.brokers.values():
        wait_until(partial(is_gone, broker.data_dir / f"{topic}-0"), PATIENCE_S)
    mixed.wait_for_deletion(topic)


def is_gone(path: Path) -> bool:
    return not path.exists()


def has_moved(admin: SyncAdmin, topic: str, replicas: tuple[int, ...]) -> bool:
    if admin.list_partition_reassignments():
        return False
    [partition] = described(admin, topic).partitions
    return tuple(partition.replicas) == replicas and set(partition.isr) == set(replicas)


def metadata_file(data_dir: Path, topic: str) -> str:
    return (data_dir / f"{topic}-0" / "partition.metadata").read_text()


# --- kills, and changes of places ----------------------------------------------------------------


# The broker that ends, which leads everything then, and the kind that starts in its place. One of
# its own kind: it is killed.
CHANGES: tuple[tuple[int, Kind], ...] = ((1, "kafka"), (2, "ours"), (3, "ours"), (2, "kafka"))


def test_nothing_is_lost_when_brokers_die_and_change_places(
    mixed: MixedCluster, admin: SyncAdmin, record_property: Callable[[str, object], None]
) -> None:
    """MX-1, MX-2: kill -9 of the leader of either kind under an idempotent producer and inside a
    transaction; then a clean stop of each kind, after which the other kind starts in its place."""
    servers = mixed.bootstrap_servers
    topic = make_topic(admin, "tx", {0: [1, 2, 3]})
    producer = transactional(servers, "through-kills")
    committed: list[bytes] = []
    with sending(their_sender, servers, 3) as sender:
        for number, (broker_id, kind) in enumerate(CHANGES):
            restore_leaders(admin)
            acknowledge_more([sender])
            lead(admin, sender.topic, 0, broker_id)
            lead(admin, topic, 0, broker_id)
            values = [b"%d-%d" % (number, n) for n in range(STEP)]
            producer.begin_transaction()
            send_all(producer, topic, values[: STEP // 2])
            sender.allow(BURST)
            (mixed.kill_one if mixed.kinds[broker_id] == kind else mixed.stop_one)(broker_id)
            send_all(producer, topic, values[STEP // 2 :])
            acknowledge_more([sender])
            end_transaction(producer)
            committed += values
            mixed.start_one(broker_id, kind)
            wait_for_full_isr(servers, sender.topic)
            wait_for_full_isr(servers, topic)
        acknowledge_more([sender])
        sender.stop()
    check_everything_is_there(sender, servers)
    assert committed_values(servers, topic, 1) == committed
    for name, partitions in ((sender.topic, PARTITIONS), (topic, 1)):
        for partition in range(partitions):
            wait_for_equal_files(mixed.ours, name, partition)
    record_property("acknowledged", sender.acknowledged_count())
    print(f"{sender.acknowledged_count()} records and {len(committed)} in transactions are there")


def lead(admin: SyncAdmin, topic: str, partition: int, broker_id: int) -> None:
    """Make this broker the preferred leader, and elect it."""
    name = TopicPartition(topic, partition)
    replicas = [broker_id, *({1, 2, 3} - {broker_id})]
    admin.alter_partition_reassignments({name: replicas})
    wait_until(lambda: not admin.list_partition_reassignments(), PATIENCE_S)

    def is_led() -> bool:
        admin.elect_leaders(PREFERRED, [name])
        return described(admin, topic).partitions[partition].leader == broker_id

    wait_until(is_led, PATIENCE_S)


def their_sender(servers: str, replicas: int) -> Sender:
    return ConfluentSender(servers, replicas, {"socket.timeout.ms": 5_000})
