"""Fetches of replicas, as other brokers send them: what they may read, what they
report, and what they wait for."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from barnabas import Broker
from barnabas.broker.security.authorization import Needs
from barnabas.clock import SystemClock
from barnabas.errors import (
    FencedLeaderEpoch,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    TopicAuthorizationFailed,
    UnknownLeaderEpoch,
)
from barnabas.protocol.api import FETCH, PRODUCE
from barnabas.replication.fetch_session import FetchSession
from barnabas.security.acl import Operation, Principal
from tests.kit.broker.authorizers import authorized_by
from tests.kit.broker.fetches import fetch_request, only, values
from tests.kit.broker.loops import inside
from tests.kit.broker.produces import produce_request
from tests.kit.broker.replicated import Follower, Shared, fill, meet, parts_of
from tests.kit.broker.topics import create, topic_id_of
from tests.kit.raw_client import AN_HOUR_MS, PATIENCE_S, RawClient, batch

WAIT = {"max_wait_ms": 10_000}


@pytest.fixture
def follower(node: Broker, replicated: Shared) -> Iterator[Follower]:
    with RawClient(node.bootstrap_servers) as raw:
        yield Follower(raw, replicated)


def _is_silent(client: RawClient, for_s: float = 0.2) -> bool:
    """Whether nothing arrives within that time."""
    client.socket.settimeout(for_s)
    try:
        client.socket.recv(1, socket.MSG_PEEK)
    except TimeoutError:
        return True
    finally:
        client.socket.settimeout(PATIENCE_S)
    return False


# --- what the leader learns (RE-5, RE-6) ---------------------------------------------------------


@pytest.mark.parametrize("version", [4, 11, 12, 14, 15, FETCH.max_version])
def test_re_6_the_table(
    client: RawClient, replicated: Shared, follower: Follower, version: int
) -> None:
    follower.version = version
    topic = replicated.name.topic
    fill(client, topic, batch(b"a"))
    assert (replicated.replica.log.log_end_offset, replicated.replica.high_watermark) == (1, 0)
    first = follower.fetch(0)
    assert (values(first), first.high_watermark) == ([b"a"], 0)
    assert replicated.replica.partition.follower_end_offset(1) == 0
    second = follower.fetch(1)
    assert (values(second), second.high_watermark) == ([], 1)
    assert replicated.replica.partition.follower_end_offset(1) == 1
    assert replicated.replica.high_watermark == 1


def test_re_6_a_fetch_that_was_parked_before_the_produce(
    client: RawClient, replicated: Shared, follower: Follower
) -> None:
    follower.send(0, **WAIT)
    assert _is_silent(follower.client, 0.05)
    fill(client, replicated.name.topic, batch(b"a"))
    first = follower.receive()
    assert first is not None
    assert (values(first), first.high_watermark) == ([b"a"], 0)
    assert follower.fetch(1).high_watermark == 1


def test_consumers_see_what_the_follower_has(
    client: RawClient, replicated: Shared, follower: Follower
) -> None:
    """RE-4, CO-7: a consumer that waits is answered when the high watermark rises."""
    topic = replicated.name.topic
    fill(client, topic, batch(b"a"), batch(b"b"))
    assert values(only(client.call(FETCH, 11, fetch_request(topic)))) == []
    client.send(FETCH, 11, fetch_request(topic, **WAIT))
    follower.fetch(0)
    assert _is_silent(client, 0.05)
    follower.fetch(1)
    assert values(only(client.receive(FETCH, 11)[1])) == [b"a"]
    client.send(FETCH, 11, fetch_request(topic, 1, **WAIT))
    assert _is_silent(client, 0.05)
    follower.fetch(2)
    assert not _is_silent(client, 3)  # at once, which is long before its wait is over
    assert values(only(client.receive(FETCH, 11)[1])) == [b"b"]


def test_pr_4_acks_all_waits_for_the_follower(
    client: RawClient, replicated: Shared, follower: Follower
) -> None:
    sent = produce_request(replicated.name.topic, {0: batch(b"a")}, acks=-1)
    client.send(PRODUCE, 9, sent)
    while not values(follower.fetch(0, **WAIT)):
        pass
    assert _is_silent(client, 0.05)
    follower.fetch(1)
    _, answer = client.receive(PRODUCE, 9)
    assert answer.responses[0].partition_responses[0].error_code == 0


def test_offsets_count_though_the_answer_is_full(
    node: Broker, client: RawClient, replicated: Shared, follower: Follower
) -> None:
    """An offset acknowledges, whatever there is room for in the answer."""
    create(client, "full")
    other = Shared(node, "full", topic_id_of(client, "full"))
    other.change_role()
    for each in (replicated, other):
        fill(client, each.name.topic, batch(b"a"), batch(b"b"))
    follower.begin_session()
    for offset in (0, 1):
        request = follower.request(offset, max_bytes=1)
        request.topics += Follower(client, other).request(offset).topics
        answer = client.call(FETCH, follower.version, request)
        follower.session_id, follower.session_epoch = answer.session_id, 1
    assert replicated.replica.high_watermark == other.replica.high_watermark == 1


def test_offsets_count_though_nothing_is_asked_for(
    client: RawClient, replicated: Shared, follower: Follower
) -> None:
    fill(client, replicated.name.topic, batch(b"a"), batch(b"b"))
    assert values(follower.fetch(1, max_bytes=0)) == []
    assert replicated.replica.high_watermark == 1


def test_re_8_a_fetch_that_waited_counts_from_when_it_came(
    replicated: Shared, follower: Follower
) -> None:
    """The follower that sent it may be dead by the time that it is answered."""
    began_ms = SystemClock().monotonic_ms()
    follower.fetch(0, max_wait_ms=1_000)
    # Not when it was answered, which was a second later at least.
    assert replicated.replica.partition.caught_up_at_ms(1) < began_ms + 900


# --- what wakes a follower (RE-7) ----------------------------------------------------------------


def test_re_7_a_higher_watermark_alone_does_not_wake_a_follower(
    node: Broker, client: RawClient, replicated: Shared, follower: Follower
) -> None:
    replicated.replicas = (0, 1, 2)
    replicated.change_role(isr=(0, 1, 2))
    fill(client, replicated.name.topic, batch(b"a"))
    with RawClient(node.bootstrap_servers) as raw:
        other = Follower(raw, replicated, 2)
        follower.send(1, **WAIT)
        assert _is_silent(follower.client, 0.05)
        assert other.fetch(1).high_watermark == 1
        assert _is_silent(follower.client)
        fill(client, replicated.name.topic, batch(b"b"))
        woken = follower.receive()
    assert woken is not None
    assert (values(woken), woken.high_watermark) == ([b"b"], 1)


def test_re_7_it_has_the_watermark_when_its_wait_is_over(
    node: Broker, client: RawClient, replicated: Shared, follower: Follower
) -> None:
    """In a session too, where only what is new is in the answer."""
    replicated.replicas = (0, 1, 2)
    replicated.change_role(isr=(0, 1, 2))
    fill(client, replicated.name.topic, batch(b"a"))
    follower.begin_session()
    assert follower.fetch(1).high_watermark == 0
    with RawClient(node.bootstrap_servers) as raw:
        other = Follower(raw, replicated, 2)
        began = time.monotonic()
        follower.send(None, max_wait_ms=1500)
        assert _is_silent(follower.client, 0.05)
        assert other.fetch(1).high_watermark == 1
        found = follower.receive()
    assert time.monotonic() - began > 1.45
    assert found is not None
    assert (found.high_watermark, values(found)) == (1, [])
    follower.send(None, max_wait_ms=50)
    assert follower.receive() is None


def test_an_idle_session_is_asked_nothing_and_woken_by_data(
    client: RawClient, replicated: Shared, follower: Follower
) -> None:
    """RE-1: what did not change costs nothing."""
    follower.begin_session()
    follower.fetch(0)
    for _ in range(2):
        follower.send(None)
        assert follower.receive() is None
    follower.send(None, **WAIT)
    assert _is_silent(follower.client, 0.05)
    fill(client, replicated.name.topic, batch(b"a"))
    found = follower.receive()
    assert found is not None and values(found) == [b"a"]
    found = follower.fetch(1)
    assert (values(found), found.high_watermark) == ([], 1)


def test_a_new_log_start_is_in_the_next_answer(
    client: RawClient, replicated: Shared, follower: Follower
) -> None:
    """ST-10: the records that were deleted shall go everywhere."""
    fill(client, replicated.name.topic, batch(b"a"), batch(b"b"))
    follower.begin_session()
    assert follower.fetch(2).high_watermark == 2
    follower.send(None, **WAIT)
    assert _is_silent(follower.client, 0.05)

    def delete() -> None:
        replicated.replica.log.raise_log_start(1)
        replicated.replica.log_start_moved()

    inside(replicated.broker, delete)
    fill(client, replicated.name.topic, batch(b"c"))
    found = follower.receive()
    assert found is not None and found.log_start_offset == 1


# --- the ISR (RE-8) ------------------------------------------------------------------------------


def test_re_8_who_has_caught_up_joins(
    client: RawClient, replicated: Shared, follower: Follower
) -> None:
    fill(client, replicated.name.topic, batch(b"a"))
    replicated.change_role(isr=(0,))
    assert replicated.replica.high_watermark == 1
    follower.fetch(0)
    assert replicated.proposed() == []
    follower.fetch(1)
    assert replicated.proposed() == [(0, 1)]
    assert [member.broker_epoch for member in replicated.proposals[0].isr] == [100, 101]
    assert replicated.replica.partition.isr == (0,)
    replicated.agree()
    assert replicated.replica.partition.isr == (0, 1)


def test_who_is_out_of_sync_joins_when_it_may_though_nothing_moves(
    replicated: Shared, follower: Follower
) -> None:
    """Its session has said where it is already: it is looked at with every request."""
    replicated.change_role(isr=(0,))
    inside(replicated.broker, lambda: _set_live(replicated, {0: 100}))
    follower.begin_session()
    follower.fetch(0)
    assert replicated.proposed() == []
    follower.send(None)
    assert follower.receive() is None
    inside(replicated.broker, lambda: _set_live(replicated, {0: 100, 1: 101}))
    follower.send(None)
    assert follower.receive() is None
    assert replicated.proposed() == [(0, 1)]


def test_who_is_put_out_of_the_isr_by_the_controller_comes_back(
    replicated: Shared, follower: Follower
) -> None:
    follower.begin_session()
    follower.fetch(0)
    follower.send(None)
    assert follower.receive() is None
    replicated.change_role(isr=(0,), is_new_epoch=False)
    follower.send(None)
    follower.receive()
    assert replicated.proposed() == [(0, 1)]


def _set_live(replicated: Shared, live: dict[int, int]) -> None:
    meet(parts_of(replicated.broker), live)


def test_re_8_an_idle_follower_is_no_slow_one(
    client: RawClient, replicated: Shared, follower: Follower
) -> None:
    """The time that it may lag begins with the last request before the first record that it has
    not got: a request of its session, in which an idle partition is not named."""
    replica = replicated.replica
    follower.begin_session()
    follower.fetch(0)
    lag_ms = 30_000
    later_ms = _hours_later_ms(replicated)

    def append() -> None:
        for session in sessions_of(replicated):
            session.used_ms = later_ms
        replica.append(memoryview(bytearray(batch(b"a"))), later_ms)
        replica.write_staged()
        replica.count_up_to(later_ms, replica.log.log_end_offset)

    inside(replicated.broker, append)
    for after_ms, wanted in ((lag_ms - 1, []), (lag_ms + 1, [(0,)])):
        inside(
            replicated.broker,
            lambda after_ms=after_ms: replica.carry_out(  # type: ignore[misc]
                replica.partition.expire(later_ms + after_ms)
            ),
        )
        assert replicated.proposed() == wanted


def test_re_8_a_follower_that_fell_silent_while_idle_gets_no_more_time(
    client: RawClient, replicated: Shared, follower: Follower
) -> None:
    """It is out of the ISR at the next look, and not a whole lag time after it."""
    replica = replicated.replica
    follower.begin_session()
    follower.fetch(0)
    later_ms = _hours_later_ms(replicated)

    def append() -> None:
        replica.append(memoryview(bytearray(batch(b"a"))), later_ms)
        replica.write_staged()
        replica.count_up_to(later_ms, replica.log.log_end_offset)
        replica.carry_out(replica.partition.expire(later_ms + 1))

    inside(replicated.broker, append)
    assert replicated.proposed() == [(0,)]


def sessions_of(replicated: Shared) -> list[FetchSession]:
    return list(replicated.broker.server.node.fetch_sessions)


def _hours_later_ms(replicated: Shared) -> int:
    """By the clock of the broker's sessions."""
    return max(session.used_ms for session in sessions_of(replicated)) + 3 * AN_HOUR_MS


# --- refusals ------------------------------------------------------------------------------------


def test_epochs_are_compared(replicated: Shared, follower: Follower) -> None:
    """KIP-320"""
    epoch = replicated.leader_epoch
    old = follower.fetch(0, current_leader_epoch=epoch - 1)
    assert old.error_code == FencedLeaderEpoch.code
    young = follower.fetch(0, current_leader_epoch=epoch + 1)
    assert young.error_code == UnknownLeaderEpoch.code
    assert replicated.replica.partition.follower_end_offset(1) == -1


def test_who_holds_no_replica_is_refused(replicated: Shared, follower: Follower) -> None:
    follower.broker_id = 2
    assert follower.fetch(0).error_code == NotLeaderOrFollower.code


def test_an_offset_that_is_not_there_acknowledges_nothing(
    client: RawClient, replicated: Shared, follower: Follower
) -> None:
    fill(client, replicated.name.topic, batch(b"a"))
    for offset in (2, 1 << 40):
        assert follower.fetch(offset).error_code == OffsetOutOfRange.code
    assert replicated.replica.partition.follower_end_offset(1) == -1
    assert replicated.replica.high_watermark == 0


def test_re_10_a_fetch_of_a_diverging_log_learns_where_it_diverges(
    client: RawClient, replicated: Shared, follower: Follower
) -> None:
    """The answer comes at once, and the offset acknowledges nothing."""
    fill(client, replicated.name.topic, batch(b"a"))
    old = replicated.leader_epoch
    replicated.change_role()
    fill(client, replicated.name.topic, batch(b"b"), batch(b"c"))
    found = follower.fetch(2, last_fetched_epoch=old, **WAIT)
    assert (found.diverging_epoch.epoch, found.diverging_epoch.end_offset) == (old, 1)
    assert (values(found), replicated.replica.high_watermark) == ([], 0)
    found = follower.fetch(1, last_fetched_epoch=old)
    assert (values(found), found.diverging_epoch.end_offset) == ([b"b", b"c"], -1)
    assert replicated.replica.high_watermark == 1


def test_re_2_a_follower_serves_no_client(client: RawClient, replicated: Shared) -> None:
    replicated.change_role(leader=1)
    found = only(client.call(FETCH, 11, fetch_request(replicated.name.topic)))
    assert found.error_code == NotLeaderOrFollower.code


def test_who_is_refused_hears_of_the_leader_before_the_metadata_does(
    client: RawClient, replicated: Shared
) -> None:
    """KIP-951: UpdateMetadata comes behind LeaderAndIsr, and the leader from before it is no help:
    the client would ask there again."""
    old_epoch = replicated.leader_epoch
    for leader, epoch, error in ((1, -1, NotLeaderOrFollower), (0, old_epoch, FencedLeaderEpoch)):
        replicated.change_role(leader=leader)
        wanted = fetch_request(replicated.topic_id, current_leader_epoch=epoch)
        found = only(client.call(FETCH, FETCH.max_version, wanted))
        assert found.error_code == error.code
        current = found.current_leader
        assert (current.leader_id, current.leader_epoch) == (leader, replicated.leader_epoch)


def test_a_fetch_that_waits_learns_of_a_new_leader(replicated: Shared, follower: Follower) -> None:
    follower.send(0, **WAIT)
    assert _is_silent(follower.client, 0.05)
    replicated.change_role(leader=1)
    found = follower.receive()
    assert found is not None and found.error_code == FencedLeaderEpoch.code


class _NoBrokers:
    """Lets any client read, and no broker follow."""

    def allows(
        self, principal: Principal, client_address: str, needs: Needs, resource_name: str
    ) -> bool:
        return needs.operation != Operation.CLUSTER_ACTION


def test_only_brokers_follow(node: Broker, replicated: Shared, follower: Follower) -> None:
    with authorized_by(_NoBrokers()):
        assert follower.fetch(0).error_code == TopicAuthorizationFailed.code
        follower.broker_id = -2
        assert follower.fetch(0).error_code == 0
    assert replicated.replica.partition.follower_end_offset(1) == -1


# --- questions for the end of a log --------------------------------------------------------------


@pytest.mark.parametrize("leader", [0, 1])
def test_any_replica_says_where_its_log_ends(
    client: RawClient, replicated: Shared, follower: Follower, leader: int
) -> None:
    fill(client, replicated.name.topic, batch(b"a"), batch(b"b"))
    written = replicated.leader_epoch
    replicated.change_role(leader=leader)
    follower.broker_id = -2
    asked = {"max_bytes": 0, "last_fetched_epoch": replicated.leader_epoch}
    found = follower.fetch(1 << 62, **asked)
    epoch = replicated.leader_epoch if leader == 0 else written
    assert found.error_code == 0
    assert (found.diverging_epoch.epoch, found.diverging_epoch.end_offset) == (epoch, 2)
    assert values(follower.fetch(1)) == [b"b"]
    assert replicated.replica.high_watermark == 0


def test_an_empty_log_says_where_it_ends(replicated: Shared, follower: Follower) -> None:
    replicated.change_role(leader=1)
    follower.broker_id = -2
    inside(replicated.broker, lambda: replicated.replica.log.start_at(7))
    found = follower.fetch(1 << 62, last_fetched_epoch=replicated.leader_epoch)
    assert (found.diverging_epoch.epoch, found.diverging_epoch.end_offset) == (-1, 7)
