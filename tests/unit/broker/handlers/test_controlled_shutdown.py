"""ControlledShutdown: what a broker leads that wants to stop (RE-13)."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas import Broker
from barnabas.errors import BrokerIdNotRegistered, ClusterAuthorizationFailed, StaleBrokerEpoch
from barnabas.protocol.api import CONTROLLED_SHUTDOWN
from barnabas.protocol.messages.controlled_shutdown import ControlledShutdownRequest
from tests.kit.broker.cluster_calls import Member, cluster_member, rewrite_topic
from tests.kit.broker.group_calls import allowing
from tests.kit.broker.topics import create
from tests.kit.raw_client import RawClient


def ask(broker_epoch: int = -1, broker_id: int = 0) -> ControlledShutdownRequest:
    return ControlledShutdownRequest(broker_id=broker_id, broker_epoch=broker_epoch)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_partitions_without_another_leader_are_reported(tmp_path: Path, version: int) -> None:
    """RE-13: partitions with one replica go down with it, and are not reported."""
    with cluster_member(tmp_path) as peer:
        create(peer.client, "t", 2)
    # Its last partition, as if broker 7 had been here.
    rewrite_topic(tmp_path, "t", lambda node: node._replace(replicas={**node.replicas, 1: (0, 7)}))
    with cluster_member(tmp_path) as peer:
        epoch = peer.node.controller.image.brokers[0].epoch if version >= 2 else -1
        answer = peer.call(CONTROLLED_SHUTDOWN, ask(epoch), version)
    assert answer.error_code == 0
    left = [(each.topic_name, each.partition_index) for each in answer.remaining_partitions]
    assert left == [("t", 1)]


def test_who_is_refused(peer: Member) -> None:
    epoch = peer.node.controller.image.brokers[0].epoch
    assert peer.call(CONTROLLED_SHUTDOWN, ask(epoch - 1)).error_code == StaleBrokerEpoch.code
    stranger = peer.call(CONTROLLED_SHUTDOWN, ask(epoch, broker_id=5))
    assert stranger.error_code == BrokerIdNotRegistered.code
    with allowing(peer.broker, "only"):
        answer = peer.call(CONTROLLED_SHUTDOWN, ask(epoch))
    assert answer.error_code == ClusterAuthorizationFailed.code


def test_a_broker_without_peers_refuses_the_request(
    node: Broker, client: RawClient, topic: str
) -> None:
    answer = Member(node, client).call(CONTROLLED_SHUTDOWN, ask())
    assert answer.error_code == ClusterAuthorizationFailed.code
