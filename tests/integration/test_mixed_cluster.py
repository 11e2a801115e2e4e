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

import pytest

from barnabas.client import SyncAdmin
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
from tests.kit.clients.clients import Sent
from tests.kit.processes.cluster_process import wait_for_equal_files
from tests.kit.processes.mixed_checks import STEP, check_changes, check_every_role
from tests.kit.processes.mixed_cluster import (
    KINDS,
    OPTIONS,
    PATIENCE_S,
    Kind,
    MixedCluster,
    described,
    mixed_cluster,
    restore_leaders,
)
from tests.kit.processes.mixed_load import is_led_as, make_topic
from tests.kit.raw_client import RawClient
from tests.kit.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.foreign, pytest.mark.timeout(600)]

FIRST: dict[int, Kind] = {1: "kafka", 2: "ours", 3: "kafka"}
BLOCK = 1_000
TOPIC_RESOURCE = 2


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


def test_either_kind_is_controller_leader_and_coordinator(
    mixed: MixedCluster, admin: SyncAdmin
) -> None:
    """MX-1, MX-2: every role, by either kind."""
    check_every_role(mixed, admin)


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
    """MX-1, MX-2: kill -9 of either kind; then each starts in the other's place."""
    record_property("acknowledged", check_changes(mixed, admin, CHANGES))
