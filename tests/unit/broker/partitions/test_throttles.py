"""Throttled replication between real brokers: who is held up, and who is not (RE-13, KIP-73)."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from barnabas.types import TopicPartition
from tests.kit.broker.following import NAME, Site, led, level, pair, run, topic
from tests.kit.waiting import until

RATE = 400_000
SMALL = {"replica.fetch.max.bytes": "50000", "replica.fetch.wait.max.ms": "50"}
OTHER = TopicPartition("t", 1)


def throttle(site: Site, side: str, listed: str, bytes_per_s: int = RATE) -> None:
    node = site.server.node
    node.replicas.update_topic_config("t", {f"{side}.replication.throttled.replicas": listed})
    limit(site, side, bytes_per_s)


def limit(site: Site, side: str, bytes_per_s: int) -> None:
    node = site.server.node
    rate = {f"{side}.replication.throttled.rate": str(bytes_per_s)}
    node.dynamic_config.apply(node.config.with_dynamic(rate, {}))


def fill(site: Site, name: TopicPartition, count: int) -> None:
    for _ in range(count):
        site.append(name, b"x" * 40_000)


@pytest.mark.thorough
@pytest.mark.parametrize("side", ["leader", "follower"])
def test_re_13_who_is_out_of_sync_is_held_up(tmp_path: Path, side: str) -> None:
    """At the given rate; a partition that is not listed is not, on the same connection."""

    async def test() -> None:
        async with pair(tmp_path, SMALL) as (one, two):
            whole = topic("t", led(1, 1, 2), led(1, 1, 2))
            one.hears(whole, one, two)
            slow = one if side == "leader" else two
            for name in (NAME, OTHER):
                fill(one, name, 20)
            began = time.monotonic()
            two.hears(whole, one, two)
            throttle(slow, side, f"0:{slow.broker_id},1:9")
            await level(one, two, OTHER)
            assert two.end(NAME) < 20
            await level(one, two, NAME)
            seconds = time.monotonic() - began
            assert 0.9 < seconds < 30, "800 kB at 400 kB/s, the first second's at once"

    run(test)


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_re_13_who_is_in_sync_is_not_held_up(tmp_path: Path, side: str) -> None:
    """Acknowledgements do not wait for a throttle."""

    async def test() -> None:
        async with pair(tmp_path, SMALL) as (one, two):
            whole = topic("t", led(1, 1, 2, isr=(1, 2)))
            one.hears(whole, one, two)
            two.hears(whole, one, two)
            throttle(one if side == "leader" else two, side, "*", 1)
            for _ in range(10):  # at that rate it would take days
                fill(one, NAME, 1)
                await level(one, two)

    run(test)


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_re_13_a_higher_rate_counts_soon(tmp_path: Path, side: str) -> None:
    """It is set while brokers run, and taken back."""

    async def test() -> None:
        async with pair(tmp_path, SMALL) as (one, two):
            slow = one if side == "leader" else two
            whole = topic("t", led(1, 1, 2))
            one.hears(whole, one, two)
            two.hears(whole, one, two)
            throttle(slow, side, "*", 1)
            fill(one, NAME, 10)
            await until(lambda: two.end(NAME) > 0)
            await asyncio.sleep(0.3)
            assert two.end(NAME) < 3
            limit(slow, side, 2**63 - 1)
            await level(one, two)  # at the first rate it would take days

    run(test)


def test_a_held_up_follower_costs_its_leader_little(tmp_path: Path) -> None:
    """RE-7: its fetches are parked, not answered in a circle."""

    async def test() -> None:
        waiting = {**SMALL, "replica.fetch.wait.max.ms": "200"}
        async with pair(tmp_path, waiting) as (one, two):
            whole = topic("t", led(1, 1, 2))
            one.hears(whole, one, two)
            throttle(one, "leader", "*", 1)
            fill(one, NAME, 10)
            two.hears(whole, one, two)
            await until(lambda: two.end(NAME) > 0)
            began, before = time.monotonic(), time.process_time()
            await asyncio.sleep(1)
            assert time.process_time() - before < 0.2 * (time.monotonic() - began)
            assert two.end(NAME) < 3

    run(test)
