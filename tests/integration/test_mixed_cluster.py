"""MX-1, MX-2: brokers of Kafka's and of ours in one cluster, each kind in every role.

One cluster serves all tests here, because a broker of Kafka's takes seconds to start. The last test
kills one broker of either kind and lets them change places; all that was acknowledged is then on
every replica, the same to the byte.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from barnabas.client import SyncAdmin
from barnabas.protocol.api import (
    DESCRIBE_CONFIGS,
    INCREMENTAL_ALTER_CONFIGS,
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
from tests.kit.processes.mixed_checks import (
    check_changes,
    check_every_role,
    check_isrs,
    check_moves,
    check_producer_ids,
)
from tests.kit.processes.mixed_cluster import (
    KINDS,
    OPTIONS,
    PATIENCE_S,
    Kind,
    MixedCluster,
    mixed_cluster,
    restore_leaders,
)
from tests.kit.processes.mixed_load import make_topic
from tests.kit.raw_client import RawClient
from tests.kit.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.foreign, pytest.mark.timeout(600)]

FIRST: dict[int, Kind] = {1: "kafka", 2: "ours", 3: "kafka"}
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
    check_isrs(mixed, admin, controller, leader, follower)


def test_producer_ids_are_given_once(mixed: MixedCluster) -> None:
    """MX-1: AllocateProducerIds of either kind of broker at either kind of controller."""
    check_producer_ids(mixed)


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
    topic_id = check_moves(mixed, admin, controller)
    assert any(topic_id)


# --- kills, and changes of places ----------------------------------------------------------------


# The broker that ends, which leads everything then, and the kind that starts in its place. One of
# its own kind: it is killed.
CHANGES: tuple[tuple[int, Kind], ...] = ((1, "kafka"), (2, "ours"), (3, "ours"), (2, "kafka"))


def test_nothing_is_lost_when_brokers_die_and_change_places(
    mixed: MixedCluster, admin: SyncAdmin, record_property: Callable[[str, object], None]
) -> None:
    """MX-1, MX-2: kill -9 of either kind; then each starts in the other's place."""
    record_property("acknowledged", check_changes(mixed, admin, CHANGES))
