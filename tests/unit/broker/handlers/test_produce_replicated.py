"""Produce with acks=all to a partition that has followers (PR-4)."""

from __future__ import annotations

import pytest

from barnabas import Broker
from barnabas.errors import (
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    RequestTimedOut,
)
from barnabas.protocol.api import PRODUCE
from barnabas.protocol.messages.produce import PartitionProduceResponse, ProduceRequest
from tests.raw_client import RawClient, batch
from tests.unit.broker.handlers.test_fetch import topic_id_of
from tests.unit.broker.handlers.test_produce import produce, request
from tests.unit.broker.replicated import Follower, Shared, inside


@pytest.fixture
def shared(node: Broker, client: RawClient, topic: str) -> Shared:
    found = Shared(node, topic, topic_id_of(client, topic))
    found.told()
    return found


def _need(shared: Shared, min_insync_replicas: int) -> None:
    def change() -> None:
        shared.replica.partition.min_insync_replicas = min_insync_replicas

    inside(shared.broker, change)


def _received(client: RawClient, version: int = 9) -> PartitionProduceResponse:
    _, answer = client.receive(PRODUCE, version)
    return answer.responses[0].partition_responses[0]


def _request(topic: str, timeout_ms: int = 5000) -> ProduceRequest:
    sent = request(topic, {0: batch(b"a")})
    sent.timeout_ms = timeout_ms
    return sent


@pytest.fixture
def parked(client: RawClient, shared: Shared) -> RawClient:
    """A connection on which an acks=all request waits for the follower."""
    client.send(PRODUCE, 9, _request(shared.name.topic))
    while shared.replica._waiting is None or not shared.replica._waiting:
        pass
    return client


def test_pr_4_too_few_in_sync_are_refused_before_the_append(
    client: RawClient, shared: Shared
) -> None:
    _need(shared, 2)
    shared.told(isr=(0,), is_new_epoch=False)
    refused = produce(client, shared.name.topic, batch(b"a"))
    assert (refused.error_code, refused.base_offset) == (NotEnoughReplicas.code, -1)
    assert shared.replica.log.log_end_offset == 0
    assert produce(client, shared.name.topic, batch(b"a"), acks=1).error_code == 0


def test_pr_4_too_few_after_the_append(shared: Shared, parked: RawClient) -> None:
    _need(shared, 2)
    shared.told(isr=(0,), is_new_epoch=False)
    answer = _received(parked)
    assert (answer.error_code, answer.base_offset) == (NotEnoughReplicasAfterAppend.code, 0)
    assert (shared.replica.log.log_end_offset, shared.replica.high_watermark) == (1, 0)


def test_pr_4_a_smaller_isr_that_is_large_enough_is_waited_for_no_longer(
    shared: Shared, parked: RawClient
) -> None:
    """RE-8: a dead follower holds up acks=all no longer than until it is out."""
    inside(shared.broker, shared.replica.isr_changed)
    inside(shared.broker, lambda: _forget(shared, 1))
    shared.told(isr=(0,), is_new_epoch=False)
    assert _received(parked).error_code == 0


def _forget(shared: Shared, broker_id: int) -> None:
    from tests.unit.broker.replicated import EPOCHS, replicas_of

    live = {broker: epoch for broker, epoch in EPOCHS.items() if broker != broker_id}
    replicas_of(shared.broker).live = live


def test_who_waits_learns_of_a_new_leader(shared: Shared, parked: RawClient) -> None:
    shared.told(leader=1)
    assert _received(parked).error_code == NotLeaderOrFollower.code


def test_a_follower_that_does_not_come_in_time(client: RawClient, shared: Shared) -> None:
    client.send(PRODUCE, 9, _request(shared.name.topic, timeout_ms=100))
    assert _received(client).error_code == RequestTimedOut.code
    with RawClient(shared.broker.bootstrap_servers) as raw:
        Follower(raw, shared).fetch(1)
    assert shared.replica.high_watermark == 1
