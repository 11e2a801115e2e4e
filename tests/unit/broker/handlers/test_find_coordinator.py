"""GC-1: FindCoordinator names the leader of the partition that keeps the key."""

from __future__ import annotations

import pytest

from barnabas import Broker, Cluster
from barnabas.config import BrokerConfig
from barnabas.errors import CoordinatorNotAvailable, InvalidRequest
from barnabas.protocol.api import DESCRIBE_CONFIGS, FIND_COORDINATOR, METADATA
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.kit.raw_client import RawClient

GROUP, TRANSACTION, SHARE = 0, 1, 2


@pytest.mark.parametrize("version", range(FIND_COORDINATOR.max_version + 1))
def test_the_coordinator_of_a_group_in_every_version_gc_1(
    node: Broker, client: RawClient, version: int
) -> None:
    host, port = node.bootstrap_servers.rsplit(":", 1)
    if version < 4:
        answer = client.call(FIND_COORDINATOR, version, FindCoordinatorRequest(key="group"))
        assert (answer.error_code, answer.node_id) == (0, 0)
        assert (answer.host, answer.port) == (host, int(port))
        assert answer.error_message in ("NONE", "")  # version 0 has none
    else:
        request = FindCoordinatorRequest(coordinator_keys=["a", "b", "a"])
        answer = client.call(FIND_COORDINATOR, version, request)
        assert [each.key for each in answer.coordinators] == ["a", "b"]
        for each in answer.coordinators:
            assert (each.error_code, each.node_id, each.host, each.port) == (
                0, 0, host, int(port),
            )  # fmt: skip
            assert each.error_message == ""


@pytest.mark.parametrize("key_type", [SHARE, 7, -1])
def test_kinds_of_keys_that_have_no_coordinator_here(client: RawClient, key_type: int) -> None:
    request = FindCoordinatorRequest(coordinator_keys=["a"], key_type=key_type)
    answer = client.call(FIND_COORDINATOR, 6, request)
    assert answer.coordinators[0].error_code == InvalidRequest.code
    assert str(key_type) in answer.coordinators[0].error_message


def test_the_internal_topics_are_made_when_first_asked_for_tp_8(client: RawClient) -> None:
    for key_type, topic, expected in (
        (GROUP, "__consumer_offsets", {"compression.type": "producer"}),
        (
            TRANSACTION,
            "__transaction_state",
            {
                "compression.type": "uncompressed",
                "min.insync.replicas": "1",
                "unclean.leader.election.enable": "false",
            },
        ),
    ):
        request = FindCoordinatorRequest(coordinator_keys=["k"], key_type=key_type)
        found = client.call(FIND_COORDINATOR, 4, request)
        assert found.coordinators[0].error_code == 0
        wanted = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
        (described,) = client.call(METADATA, 9, wanted).topics
        assert described.is_internal
        assert len(described.partitions) == 1  # as embedded brokers have it
        resource = DescribeConfigsResource(
            resource_type=2, resource_name=topic, configuration_keys=None
        )
        answer = client.call(DESCRIBE_CONFIGS, 1, DescribeConfigsRequest(resources=[resource]))
        configs = {each.name: each.value for each in answer.results[0].configs}
        assert configs["cleanup.policy"] == "compact"
        assert configs["segment.bytes"] == "104857600"
        assert expected.items() <= configs.items()


def test_what_cannot_be_made_is_no_coordinator_and_says_why_tp_8(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = {"offsets.topic.replication.factor": "3"}
    with Broker(config=settings) as broker, RawClient(broker.bootstrap_servers) as client:
        for _ in range(3):
            answer = client.call(FIND_COORDINATOR, 2, FindCoordinatorRequest(key="group"))
            assert answer.error_code == CoordinatorNotAvailable.code
            assert answer.node_id == -1
            assert answer.error_message.startswith(
                "__consumer_offsets cannot be created: offsets.topic.replication.factor is 3: "
            )
            assert "larger than the number of live brokers, 1; start more" in answer.error_message
    assert caplog.text.count("__consumer_offsets cannot be created") == 1


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        (
            {"transaction.state.log.replication.factor": "1"},
            "transaction.state.log.min.isr is 2, its default, and "
            "transaction.state.log.replication.factor is only 1: no write could ever be",
        ),
        (
            {"transaction.state.log.min.isr": "4"},
            "transaction.state.log.min.isr is 4, and "
            "transaction.state.log.replication.factor is only 3, its default: no write could",
        ),
    ],
)
def test_a_log_that_could_never_be_written_is_not_made_and_says_why_tp_8(
    settings: dict[str, str], complaint: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Kafka makes it, and then lets every InitProducerId run into its timeout."""
    with Cluster(brokers=1) as cluster:
        config = cluster.server(1).config
        of_cluster = {"log.dirs": "d", "zookeeper.connect": "zk:2181"}
        cluster.server(1).node.current_config.replace(BrokerConfig({**of_cluster, **settings}))
        with RawClient(cluster.bootstrap_servers) as client:
            request = FindCoordinatorRequest(key="k", key_type=1)
            for _ in range(2):
                answer = client.call(FIND_COORDINATOR, 2, request)
                assert answer.error_code == CoordinatorNotAvailable.code
                assert complaint in answer.error_message
            assert caplog.text.count(complaint) == 1
        cluster.server(1).node.current_config.replace(config)


def test_kafkas_default_for_three_brokers_is_named_where_fewer_live_tp_8(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Where the broker's file does not set it: the error says so, and is logged."""
    with Cluster(brokers=1) as cluster:
        config = cluster.server(1).config
        unset = {"log.dirs": "d", "zookeeper.connect": "zk:2181"}
        cluster.server(1).node.current_config.replace(BrokerConfig(unset))
        with RawClient(cluster.bootstrap_servers) as client:
            for key_type, setting in (
                (0, "offsets.topic.replication.factor"),
                (1, "transaction.state.log.replication.factor"),
            ):
                request = FindCoordinatorRequest(key="k", key_type=key_type)
                answer = client.call(FIND_COORDINATOR, 2, request)
                assert answer.error_code == CoordinatorNotAvailable.code
                assert f"{setting} is 3, its default: " in answer.error_message
                assert answer.error_message in caplog.text
        cluster.server(1).node.current_config.replace(config)
