"""Produce with acks=all to a partition that has followers (PR-4)."""

from __future__ import annotations

import pytest

from barnabas.errors import (
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    RequestTimedOut,
)
from barnabas.protocol.api import PRODUCE
from barnabas.protocol.messages.produce import PartitionProduceResponse, ProduceRequest
from tests.kit.broker.loops import inside
from tests.kit.broker.produces import produce, produce_request
from tests.kit.broker.replicated import EPOCHS, Follower, Shared, meet, parts_of
from tests.kit.raw_client import RawClient, batch
from tests.kit.waiting import wait_until


def _need(replicated: Shared, min_insync_replicas: int) -> None:
    def change() -> None:
        replicated.replica.partition.configure(min_insync_replicas)

    inside(replicated.broker, change)


def _received(client: RawClient, version: int = 9) -> PartitionProduceResponse:
    _, answer = client.receive(PRODUCE, version)
    return answer.responses[0].partition_responses[0]


def _request(topic: str, timeout_ms: int = 5000) -> ProduceRequest:
    sent = produce_request(topic, {0: batch(b"a")})
    sent.timeout_ms = timeout_ms
    return sent


@pytest.fixture
def parked(client: RawClient, replicated: Shared) -> RawClient:
    """A connection on which an acks=all request waits for the follower."""
    client.send(PRODUCE, 9, _request(replicated.name.topic))
    wait_until(lambda: bool(replicated.replica._waiting))
    return client


def test_pr_4_too_few_in_sync_are_refused_before_the_append(
    client: RawClient, replicated: Shared
) -> None:
    _need(replicated, 2)
    replicated.change_role(isr=(0,), is_new_epoch=False)
    refused = produce(client, replicated.name.topic, batch(b"a"))
    assert (refused.error_code, refused.base_offset) == (NotEnoughReplicas.code, -1)
    assert replicated.replica.log.log_end_offset == 0
    assert produce(client, replicated.name.topic, batch(b"a"), acks=1).error_code == 0


def test_pr_4_too_few_after_the_append(replicated: Shared, parked: RawClient) -> None:
    _need(replicated, 2)
    replicated.change_role(isr=(0,), is_new_epoch=False)
    answer = _received(parked)
    assert (answer.error_code, answer.base_offset) == (NotEnoughReplicasAfterAppend.code, 0)
    assert (replicated.replica.log.log_end_offset, replicated.replica.high_watermark) == (1, 0)


def test_pr_4_a_smaller_isr_that_is_large_enough_is_waited_for_no_longer(
    replicated: Shared, parked: RawClient
) -> None:
    """RE-8: a dead follower holds up acks=all no longer than until it is out."""
    inside(replicated.broker, replicated.replica.isr_changed)
    inside(replicated.broker, lambda: _forget(replicated, 1))
    replicated.change_role(isr=(0,), is_new_epoch=False)
    assert _received(parked).error_code == 0


def _forget(replicated: Shared, broker_id: int) -> None:
    live = {broker: epoch for broker, epoch in EPOCHS.items() if broker != broker_id}
    meet(parts_of(replicated.broker), live)


def test_who_waits_learns_of_a_new_leader(replicated: Shared, parked: RawClient) -> None:
    replicated.change_role(leader=1)
    assert _received(parked).error_code == NotLeaderOrFollower.code


def test_a_follower_that_does_not_come_in_time(client: RawClient, replicated: Shared) -> None:
    client.send(PRODUCE, 9, _request(replicated.name.topic, timeout_ms=100))
    assert _received(client).error_code == RequestTimedOut.code
    with RawClient(replicated.broker.bootstrap_servers) as raw:
        Follower(raw, replicated).fetch(1)
    assert replicated.replica.high_watermark == 1


def test_nothing_is_kept_of_producers_that_have_given_up(
    client: RawClient, replicated: Shared
) -> None:
    """While the watermark stands still, producers that try again and again take no memory."""
    kept = []
    for _ in range(10):
        for _ in range(100):
            client.send(PRODUCE, 9, _request(replicated.name.topic, timeout_ms=1))
        answers = [_received(client).error_code for _ in range(100)]
        assert answers == [RequestTimedOut.code] * 100
        kept.append(len(replicated.replica._waiting or ()))
    assert max(kept) < 400
    client.send(PRODUCE, 9, _request(replicated.name.topic))
    with RawClient(replicated.broker.bootstrap_servers) as raw:
        Follower(raw, replicated).fetch(1001)
    assert _received(client).error_code == 0
