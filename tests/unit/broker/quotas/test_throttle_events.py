"""Events of throttled clients: a beginning, an end, and limits (IN-1)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from barnabas.broker.quotas.client_quotas import FETCH, MUTATION, PRODUCE, REQUEST, ClientQuotas
from barnabas.broker.quotas.entity import Entity, encode_name
from barnabas.broker.quotas.measures import Windows
from barnabas.broker.quotas.throttle_events import EVENTS, MOST_ENTITIES, ThrottleEvents
from barnabas.config import BrokerConfig
from barnabas.events import Event, EventLog
from barnabas.metrics import Registry
from tests.kit.set_clock import SetClock
from tests.kit.waiting import until

WINDOW_MS = 2_000


class Quotas:
    """Those of a broker with short windows, and the events that it adds."""

    def __init__(self) -> None:
        self.clock = SetClock()
        self.metrics = Registry()
        self.events = EventLog(self.clock.wall_ms, self.metrics)
        config = BrokerConfig({"quota.window.num": "2", "quota.window.size.seconds": "1"})
        self.quotas = ClientQuotas(config, self.clock, self._made)

    def _made(self, windows: Windows) -> ThrottleEvents:
        return ThrottleEvents(self.events, self.clock, windows, self.metrics)

    def produce(self, size_bytes: int, user: str = "alice", client_id: str = "web") -> int:
        limits = self.quotas.of(user, client_id)
        assert limits is not None and limits.produce is not None
        return limits.produce.record(size_bytes, self.clock.monotonic_ms())

    def all(self) -> list[Event]:
        return self.events.after(0, 10_000)


def within_loop(scenario: Callable[[Quotas], None]) -> None:
    async def run() -> None:
        quotas = Quotas()
        scenario(quotas)
        quotas.quotas.close()

    asyncio.run(run())


def test_in_1_a_client_at_its_limit_has_one_event_with_limit_and_rate() -> None:
    def scenario(quotas: Quotas) -> None:
        quotas.quotas.set(Entity("alice"), {PRODUCE: 1_000})
        assert quotas.produce(1_000) == 0
        assert quotas.all() == []
        assert quotas.produce(1_500) > 0
        assert quotas.produce(1_500) > 0
        (event,) = quotas.all()
        assert event.cause == (
            "producer_byte_rate is 1000 bytes/s, and the measured rate is 2500 bytes/s"
        )
        assert event.text == f"user alice is throttled for 1500 ms: {event.cause}"
        assert (event.kind, event.is_harmless) == ("throttle", False)

    within_loop(scenario)


def test_in_1_the_other_quotas_have_their_units() -> None:
    def scenario(quotas: Quotas) -> None:
        quotas.quotas.set(Entity("", "web"), {FETCH: 10, REQUEST: 0.5, MUTATION: 1})
        limits = quotas.quotas.of("alice", "web")
        now_ms = quotas.clock.monotonic_ms()
        assert limits is not None and limits.fetch and limits.request and limits.mutation
        limits.fetch.record(25, now_ms)
        limits.request.record_ns(20_000_000, now_ms)
        limits.mutation.take(1_000, now_ms)
        limits.mutation.record_throttle(7, now_ms)
        assert [each.cause for each in quotas.all()] == [
            "consumer_byte_rate is 10 bytes/s, and the measured rate is 25 bytes/s",
            "request_percentage is 0.50% of one core, and the measured rate is 2% of one core",
            "controller_mutation_rate is 1 partitions/s, and the measured rate is 100 partitions/s",
        ]
        assert quotas.all()[0].text.startswith("client-id web is throttled for ")

    within_loop(scenario)


def test_in_1_throttling_ends_when_a_window_has_passed_without_it() -> None:
    async def scenario() -> None:
        quotas = Quotas()
        quotas.quotas.set(Entity("alice", "web"), {PRODUCE: 1_000})
        assert quotas.produce(2_500) == 1_500
        assert quotas.produce(500) == 2_000
        quotas.clock.at_ms += 2_000 + WINDOW_MS
        await until(lambda: len(quotas.all()) == 2)
        event = quotas.all()[1]
        assert event.cause == f"no request was throttled for {WINDOW_MS} ms, the quota's window"
        assert event.text == (
            "user alice, client-id web is no longer throttled by producer_byte_rate after "
            f"2 throttled requests in 4000 ms, the longest for 2000 ms: {event.cause}"
        )
        assert event.is_harmless is True
        assert quotas.produce(10_000) > 0
        assert len(quotas.all()) == 3
        quotas.quotas.close()

    asyncio.run(scenario())


def test_in_1_throttling_ends_when_the_quota_changes() -> None:
    def scenario(quotas: Quotas) -> None:
        quotas.quotas.set(Entity("alice"), {PRODUCE: 1_000})
        quotas.quotas.set(Entity("bob"), {PRODUCE: 1_000})
        quotas.produce(5_000)
        quotas.produce(5_000, "bob")
        quotas.quotas.set(Entity("alice"), {PRODUCE: 2_000})
        quotas.quotas.set(Entity("bob"), {})
        causes = [each.cause for each in quotas.all()[2:]]
        assert causes == ["its quota was changed to 2000 bytes/s", "its quota was removed"]
        quotas.quotas.set(Entity("carol"), {PRODUCE: 1})
        assert len(quotas.all()) == 4

    within_loop(scenario)


def test_in_1_invented_client_ids_cannot_push_out_other_events() -> None:
    def scenario(quotas: Quotas) -> None:
        quotas.quotas.set(Entity("", "<default>"), {PRODUCE: 1})
        for number in range(1_000):
            quotas.produce(1_000, client_id=f"c{number}")
        assert len(quotas.all()) == min(EVENTS, MOST_ENTITIES)
        quotas.clock.at_ms += 60_000
        quotas.produce(1_000, client_id="another")
        assert quotas.all()[-1].text == ("800 throttled requests of other clients without an event")
        hostile = Entity("", encode_name("\x1b[2J"))
        quotas.quotas.set(hostile, {PRODUCE: 1})
        counts = {
            sample.labels: sample.value
            for read in quotas.metrics
            for family in read()
            if family.name == "barnabas_throttled_requests_total"
            for sample in family.samples
        }
        assert counts == {(("quota", "producer_byte_rate"),): 1_001}

    within_loop(scenario)


def test_in_1_hostile_client_ids_are_escaped_and_cut() -> None:
    def scenario(quotas: Quotas) -> None:
        quotas.quotas.set(Entity("", "<default>"), {PRODUCE: 1})
        quotas.produce(1_000, client_id="\x1b[2J\n" + "n" * 30_000)
        (event,) = quotas.all()
        assert event.text.startswith("client-id \\x1b[2J\\nnnn")
        assert event.text.isprintable()
        assert len(event.text) < 500

    within_loop(scenario)
