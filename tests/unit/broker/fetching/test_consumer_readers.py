"""Fetches of consumers that say where they stand: sent to a follower in sync, and served there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas import Broker
from barnabas.config import BrokerConfig
from barnabas.errors import (
    ConfigError,
    FencedLeaderEpoch,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    UnknownLeaderEpoch,
)
from barnabas.protocol.api import FETCH
from barnabas.protocol.messages.fetch import PartitionData
from tests.kit.broker.fetches import fetch_request, only, values
from tests.kit.broker.following import NAME, Site, leading, led, level, pair, run, topic
from tests.kit.broker.loops import inside
from tests.kit.broker.replicated import Follower, Shared, fill
from tests.kit.broker.topics import create, topic_id_of
from tests.kit.raw_client import AN_HOUR_MS, RawClient, batch
from tests.kit.waiting import until

RACKS = {0: "east", 1: "west", 2: "west"}
SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


@pytest.fixture(scope="module")
def node() -> Iterator[Broker]:
    """A broker that sends consumers on."""
    config = {"replica.selector.class": SELECTOR, "broker.rack": RACKS[0]}
    with Broker(config=config) as broker:
        yield broker


@pytest.fixture
def shared(node: Broker, client: RawClient, request: pytest.FixtureRequest) -> Shared:
    """A partition that broker 0 leads, and 1 and 2 follow from another rack."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)[:200]
    create(client, name)
    found = Shared(node, name, topic_id_of(client, name))
    found.replicas = (0, 1, 2)

    know_racks(node, RACKS)
    found.change_role(isr=(0, 1, 2))
    return found


def know_racks(node: Broker, racks: dict[int, str]) -> None:
    """The controller's word about who lives, and where."""

    def learn() -> None:
        server = node.server.node
        own = server.image.brokers[0]
        brokers = {each: own._replace(broker_id=each, rack=rack) for each, rack in racks.items()}
        server.view.update(server.image._replace(brokers=brokers))

    inside(node, learn)


@pytest.fixture
def followers(node: Broker, shared: Shared) -> Iterator[list[Follower]]:
    with RawClient(node.bootstrap_servers) as raw:
        yield [Follower(raw, shared, 1), Follower(raw, shared, 2)]


def fetch(
    client: RawClient, shared: Shared, offset: int = 0, version: int = 12, **fields: Any
) -> PartitionData:
    named = shared.name.topic if version < 13 else shared.topic_id
    wanted = fetch_request(named, offset, **{"rack_id": "west", **fields})
    answer = client.call(FETCH, version, wanted)
    assert answer.error_code == 0
    found: PartitionData = only(answer)
    return found


def in_sync(client: RawClient, shared: Shared, followers: list[Follower]) -> None:
    """Three records, which all replicas have, and each knows so."""
    fill(client, shared.name.topic, batch(b"a"), batch(b"b"), batch(b"c"))
    for each in followers:
        each.fetch(3)
    assert shared.replica.high_watermark == 3


# --- at the leader -------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [11, 12, 13, FETCH.max_version])
def test_re_2_a_consumer_is_sent_to_its_rack(
    client: RawClient, shared: Shared, followers: list[Follower], version: int
) -> None:
    """With no records, and at once, however long it would wait."""
    in_sync(client, shared, followers)
    for offset in (0, 3):
        found = fetch(client, shared, offset, version, max_wait_ms=AN_HOUR_MS)
        assert (found.error_code, found.preferred_read_replica, values(found)) == (0, 2, [])
        assert (found.high_watermark, found.log_start_offset) == (3, 0)


def test_re_2_the_one_that_has_most(
    client: RawClient, shared: Shared, followers: list[Follower]
) -> None:
    in_sync(client, shared, followers)
    fill(client, shared.name.topic, batch(b"d"))
    assert fetch(client, shared).preferred_read_replica == 2
    followers[0].fetch(4)
    assert fetch(client, shared).preferred_read_replica == 1
    assert fetch(client, shared, 4).preferred_read_replica == 1


@pytest.mark.parametrize(
    ("version", "fields"),
    [
        (12, {"rack_id": ""}),
        (12, {"rack_id": "north"}),
        (12, {"rack_id": "east"}),
        (10, {}),
    ],
    ids=["no rack", "no replica there", "the leader there", "an older version"],
)
def test_re_2_else_the_leader_serves(
    client: RawClient,
    shared: Shared,
    followers: list[Follower],
    version: int,
    fields: dict[str, Any],
) -> None:
    in_sync(client, shared, followers)
    found = fetch(client, shared, version=version, **fields)
    assert (found.preferred_read_replica, values(found)) == (-1, [b"a", b"b", b"c"])


def test_re_2_no_client_is_sent_away_from_a_leader_in_its_rack(
    node: Broker, client: RawClient, shared: Shared, followers: list[Follower]
) -> None:
    in_sync(client, shared, followers)
    know_racks(node, {0: "west", 1: "west", 2: "east"})
    assert len(values(fetch(client, shared))) == 3


def test_re_2_no_client_is_sent_to_a_broker_that_has_gone(
    node: Broker, client: RawClient, shared: Shared, followers: list[Follower]
) -> None:
    """It is still in the ISR."""
    in_sync(client, shared, followers)
    know_racks(node, {0: "east", 1: "west"})
    assert fetch(client, shared).preferred_read_replica == 1
    know_racks(node, {0: "east"})
    assert len(values(fetch(client, shared))) == 3


def test_a_consumer_is_woken_by_a_watermark_that_rises_over_an_older_epochs_records(
    client: RawClient, shared: Shared, followers: list[Follower]
) -> None:
    """CO-7: nothing is appended then, and there is something to be seen."""
    fill(client, shared.name.topic, batch(b"a"))
    shared.change_role(isr=(0, 1))
    wanted = fetch_request(shared.name.topic, max_wait_ms=AN_HOUR_MS)
    client.send(FETCH, 12, wanted)
    followers[0].fetch(1)
    assert values(only(client.receive(FETCH, 12)[1])) == [b"a"]


def test_re_2_no_client_is_sent_to_a_replica_out_of_sync_or_not_fetching(
    client: RawClient, shared: Shared, followers: list[Follower]
) -> None:
    fill(client, shared.name.topic, batch(b"a"))
    assert fetch(client, shared).preferred_read_replica == -1
    in_sync(client, shared, followers)
    shared.change_role(isr=(0, 1), is_new_epoch=False)
    assert fetch(client, shared).preferred_read_replica == 1
    shared.change_role(isr=(0,), is_new_epoch=False)
    assert fetch(client, shared).preferred_read_replica == -1


def test_re_2_without_the_selector_the_leader_serves(
    node: Broker, client: RawClient, shared: Shared, followers: list[Follower]
) -> None:
    in_sync(client, shared, followers)
    server = node.server.node
    before = server.config
    plain = {k: v for k, v in before.properties.items() if k != "replica.selector.class"}
    inside(node, lambda: server.dynamic_config.apply(BrokerConfig(plain)))
    try:
        found = fetch(client, shared)
        assert (found.preferred_read_replica, len(values(found))) == (-1, 3)
    finally:
        inside(node, lambda: server.dynamic_config.apply(before))


def test_re_2_in_a_session_it_is_said_each_time(
    client: RawClient, shared: Shared, followers: list[Follower]
) -> None:
    in_sync(client, shared, followers)
    full = fetch_request(shared.name.topic, 0, rack_id="west")  # type: ignore[arg-type]
    full.session_id, full.session_epoch = 0, 0
    answer = client.call(FETCH, 12, full)
    assert only(answer).preferred_read_replica == 2
    again = fetch_request(shared.name.topic, 0, rack_id="west")  # type: ignore[arg-type]
    again.topics, again.session_id, again.session_epoch = [], answer.session_id, 1
    assert only(client.call(FETCH, 12, again)).preferred_read_replica == 2


@pytest.mark.parametrize("value", ["", "com.example.Nearest", "rackawarereplicaselector"])
def test_another_selector_is_refused_at_the_start(value: str) -> None:
    """UX-3: and what there is is said."""
    with pytest.raises(
        ConfigError, match=f"replica.selector.class: '{value}' is not one of .*Rack"
    ):
        BrokerConfig({"replica.selector.class": value})
    short = BrokerConfig({"replica.selector.class": "RackAwareReplicaSelector"})
    assert not any("selector" in warning for warning in short.warnings)


# --- at a follower -------------------------------------------------------------------------------


def test_re_2_a_follower_serves_below_its_watermark(
    client: RawClient, shared: Shared, followers: list[Follower]
) -> None:
    """And says OFFSET_OUT_OF_RANGE beyond its log, so that the leader is asked."""
    in_sync(client, shared, followers)
    fill(client, shared.name.topic, batch(b"d"))
    shared.change_role(leader=1, isr=(0, 1, 2))
    for version in (11, 12, FETCH.max_version):
        found = fetch(client, shared, 1, version)
        assert (found.error_code, values(found)) == (0, [b"b", b"c"])
        assert (found.high_watermark, found.preferred_read_replica) == (3, -1)
        for offset in (3, 4):
            waited = fetch(client, shared, offset, version, max_wait_ms=50)
            assert (waited.error_code, values(waited)) == (0, [])
        beyond = fetch(client, shared, 5, version)
        assert (beyond.error_code, beyond.high_watermark) == (OffsetOutOfRange.code, -1)


@pytest.mark.parametrize(("version", "rack"), [(12, ""), (FETCH.max_version, ""), (10, "west")])
def test_re_2_who_does_not_say_where_it_stands_is_refused(
    client: RawClient, shared: Shared, followers: list[Follower], version: int, rack: str
) -> None:
    in_sync(client, shared, followers)
    shared.change_role(leader=1, isr=(0, 1, 2))
    found = fetch(client, shared, version=version, rack_id=rack)
    assert (found.error_code, values(found)) == (NotLeaderOrFollower.code, [])


def test_a_follower_checks_the_leader_epoch(
    client: RawClient, shared: Shared, followers: list[Follower]
) -> None:
    """RE-10"""
    in_sync(client, shared, followers)
    shared.change_role(leader=1, isr=(0, 1, 2))
    epoch = shared.leader_epoch
    for asked, error in ((epoch - 1, FencedLeaderEpoch), (epoch + 1, UnknownLeaderEpoch)):
        found = fetch(client, shared, current_leader_epoch=asked)
        assert found.error_code == error.code
    assert len(values(fetch(client, shared, current_leader_epoch=epoch))) == 3


def _wait_for(site: Site, offset: int, **fields: Any) -> PartitionData:
    """A consumer's fetch that waits; in a thread."""
    with RawClient(f"127.0.0.1:{site.server.port}") as raw:
        patient: dict[str, Any] = {"max_wait_ms": AN_HOUR_MS, "rack_id": "west"}
        wanted = fetch_request("t", offset, **patient | fields)
        found: PartitionData = only(raw.call(FETCH, 12, wanted))
        return found


def test_re_2_who_waits_at_a_follower_is_woken_by_its_watermark(tmp_path: Path) -> None:
    async def test() -> None:
        async with pair(tmp_path) as (one, two):
            leading(one, two)
            for index in range(5):
                waiting = asyncio.create_task(asyncio.to_thread(_wait_for, two, index))
                await asyncio.sleep(0.05)
                assert not waiting.done()
                one.append(NAME, b"%d" % index)
                found = await waiting
                assert (values(found), found.high_watermark) == ([b"%d" % index], index + 1)
                await level(one, two)

    run(test)


def test_re_2_a_follower_waits_for_as_much_as_is_asked(tmp_path: Path) -> None:
    async def test() -> None:
        async with pair(tmp_path) as (one, two):
            leading(one, two)
            wait = asyncio.to_thread(_wait_for, two, 0, min_bytes=2_500)
            waiting = asyncio.create_task(wait)
            for _ in range(2):
                await asyncio.sleep(0.05)
                one.append(NAME, b"x" * 1_000)
                await level(one, two)
            await asyncio.sleep(0.05)
            assert not waiting.done()
            one.append(NAME, b"x" * 1_000)
            assert len(values(await waiting)) == 3

    run(test)


def test_who_waits_at_a_follower_hears_of_another_leader(tmp_path: Path) -> None:
    """RE-10: its epoch is over."""

    async def test() -> None:
        async with pair(tmp_path) as (one, two):
            leading(one, two)
            wait = asyncio.to_thread(_wait_for, two, 0, current_leader_epoch=1)
            waiting = asyncio.create_task(wait)
            await asyncio.sleep(0.05)
            two.hears(topic("t", led(1, 2, 2)), one, two)
            assert (await waiting).error_code == FencedLeaderEpoch.code

    run(test)


def test_who_waits_at_a_follower_hears_that_the_log_begins_later(tmp_path: Path) -> None:
    """ST-10: what the leader has deleted is out of reach at the follower too."""

    async def test() -> None:
        async with pair(tmp_path) as (one, two):
            leading(one, two)
            for _ in range(4):
                one.append(NAME, b"x")
            await level(one, two)
            one.replica(NAME).log.raise_log_start(3)
            one.replica(NAME).log_start_moved()
            await until(lambda: two.replica(NAME).log.log_start_offset == 3)
            refused = await asyncio.to_thread(_wait_for, two, 2)
            assert refused.error_code == OffsetOutOfRange.code
            found = await asyncio.to_thread(_wait_for, two, 3)
            assert (values(found), found.log_start_offset) == ([b"x"], 3)

    run(test)


def test_a_fetch_waiting_at_a_follower_fails_when_its_log_starts_over(tmp_path: Path) -> None:
    """RE-10: it had been left so far behind that the leader has deleted what came next."""

    async def test() -> None:
        async with pair(tmp_path) as (one, two):
            leading(one, two)
            one.append(NAME, b"x")
            await level(one, two)
            two.fetchers.on_unfollowing(two.replica(NAME))
            for _ in range(9):
                one.append(NAME, b"x")
            one.replica(NAME).log.raise_log_start(10)
            one.replica(NAME).log_start_moved()
            waiting = asyncio.create_task(asyncio.to_thread(_wait_for, two, 1))
            await asyncio.sleep(0.05)
            assert not waiting.done()
            two.fetchers.on_following(two.replica(NAME), 1)
            assert (await waiting).error_code == OffsetOutOfRange.code

    run(test)
