"""SE-5: quotas beside a real Kafka. The same load gets the same throttle times, and the same rate.

Both sides serve at the same time, each a client that sends as fast as it is read. Throttle times
are the brokers' own words, so a slow machine changes little; it may try a second time.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

from barnabas.errors import ThrottlingQuotaExceeded
from barnabas.protocol.api import FETCH, PRODUCE, Api
from barnabas.protocol.message import Message
from tests.kit.broker.fetches import fetch_request
from tests.kit.broker.produces import produce_request
from tests.kit.broker.quota_calls import (
    Parts,
    alter_quotas,
    created_strictly,
    describe_quotas,
    mentioned,
    quotas_found,
    set_quotas,
)
from tests.kit.broker.topics import create
from tests.kit.clients.kafka_process import kafka_broker
from tests.kit.raw_client import RawClient, batch
from tests.kit.waiting import wait_until

pytestmark = [pytest.mark.foreign, pytest.mark.slow]

RATE = 100_000.0
BATCH_BYTES = 10_000
ATTEMPTS = 5  # of ten seconds, in which other work may hold up one broker more than the other
SECONDS = 9.0  # ten, with the burst
_numbers = itertools.count()


class Seen(NamedTuple):
    """What one side did."""

    served: int  # requests that carried records
    throttle_ms: int  # within the time that counts


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with kafka_broker(tmp_path_factory.mktemp("kafka")) as address:
        yield address


def load_for_a_while(client: RawClient, api: Api, version: int, request: Message) -> Seen:
    """Exhaust the burst, then go on for some seconds; only the latter counts."""
    ends_at, served, throttle_ms = 0.0, 0, 0
    while not ends_at or time.monotonic() < ends_at:
        answer = client.call(api, version, request)
        if not ends_at and answer.throttle_time_ms:
            ends_at = time.monotonic() + SECONDS
        if ends_at:
            served += bool(answer.responses)
            left_ms = int((ends_at - time.monotonic()) * 1000)
            throttle_ms += max(0, min(answer.throttle_time_ms, left_ms))
    return Seen(served, throttle_ms)


def produce_for_a_while(client: RawClient, topic: str) -> Seen:
    set_quotas(client, {"client-id": client.client_id}, producer_byte_rate=RATE)
    request = produce_request(topic, {0: batch(bytes(BATCH_BYTES))}, 1)
    return load_for_a_while(client, PRODUCE, 9, request)


def consume_for_a_while(client: RawClient, topic: str) -> Seen:
    """As fast as the broker answers, from a topic that is long enough."""
    for _ in range(300):
        client.call(PRODUCE, 9, produce_request(topic, {0: batch(bytes(BATCH_BYTES))}, 1))
    set_quotas(client, {"client-id": client.client_id}, consumer_byte_rate=RATE)
    request = fetch_request(topic, max_bytes=BATCH_BYTES, partition_max_bytes=BATCH_BYTES)
    return load_for_a_while(client, FETCH, 11, request)


@pytest.mark.parametrize("load", [produce_for_a_while, consume_for_a_while])
def test_se_5_rates_and_throttle_times_are_kafkas(
    servers: str, kafka: str, load: Callable[[RawClient, str], Seen]
) -> None:
    def seen_at(address: str) -> Seen:
        """What a client does that the broker has not seen before, and has no rate of."""
        name = f"t{next(_numbers)}"
        with RawClient(address, client_id=name) as client:
            create(client, name, 1)
            seen = load(client, name)
            nothing = {"producer_byte_rate": None, "consumer_byte_rate": None}
            set_quotas(client, {"client-id": name}, **nothing)
        return seen

    for _ in range(ATTEMPTS):
        with ThreadPoolExecutor(2) as pool:
            ours, theirs = pool.map(seen_at, (servers, kafka))
        print(f"ours {ours}, Kafka's {theirs}")
        is_close = (
            ours.throttle_ms == pytest.approx(theirs.throttle_ms, rel=0.1)
            and abs(ours.served - theirs.served) <= 2
        )
        if is_close:
            break
    assert is_close, (ours, theirs)


@pytest.mark.parametrize(
    ("entity", "quotas"),
    [
        ({}, {}),
        ({"shoe": "x"}, {}),
        ({"user": ""}, {}),
        ({"user": "u"}, {"colour": 1.0}),
        ({"user": "u"}, {"colour": None}),
        ({"user": "u"}, {"producer_byte_rate": 1.5}),
        ({"user": "u"}, {"producer_byte_rate": -1.0}),
        ({"ip": "no such host"}, {}),
        ({"ip": "1.2.3.4", "user": "u"}, {}),
        ({"ip": "1.2.3.4"}, {"connection_creation_rate": 1.5}),
        ({"user": "a b", "client-id": None}, {"request_percentage": 50.0}),
        ({"user": "a b", "client-id": None}, {"request_percentage": None}),
    ],
    ids=str,
)
def test_se_5_changes_are_judged_as_kafka_judges_them(
    servers: str, kafka: str, entity: Parts, quotas: dict[str, float | None]
) -> None:
    with RawClient(servers) as ours, RawClient(kafka) as theirs:
        answers = [alter_quotas(client, entity, quotas) for client in (ours, theirs)]
        ours_and_theirs = [(each.error_code, each.error_message) for each in answers]
        assert ours_and_theirs[0] == ours_and_theirs[1]
        described = [quotas_found(describe_quotas(client)) for client in (ours, theirs)]
        assert described[0] == described[1]


def refusal(address: str) -> int:
    """The throttle time with which a topic is refused, on a connection that is not muted yet."""
    with RawClient(address) as client:
        answer = created_strictly(client, f"m{next(_numbers)}")
        is_refused = answer.topics[0].error_code == ThrottlingQuotaExceeded.code
        return answer.throttle_time_ms if is_refused else 0


def longer_by_metadata(address: str) -> tuple[int, int]:
    """The throttle time of metadata that creates five topics, and by how much they prolong that of
    a creation."""
    with RawClient(address) as client:
        set_quotas(client, {"client-id": "raw"}, controller_mutation_rate=0.05)
        # Kafka follows changes with a delay: until then, and the burst is used up, all is allowed.
        wait_until(lambda: refusal(address))
        before_ms = refusal(address)
        names = [f"m{next(_numbers)}" for _ in range(5)]
        metadata_ms = mentioned(client, *names).throttle_time_ms
        after_ms = refusal(address)
        set_quotas(client, {"client-id": "raw"}, controller_mutation_rate=None)
    return metadata_ms, after_ms - before_ms


def test_se_5_topics_that_metadata_creates_count_as_kafka_counts_them(
    servers: str, kafka: str
) -> None:
    for address in (servers, kafka):
        metadata_ms, longer_ms = longer_by_metadata(address)
        assert metadata_ms == 0
        # Twenty seconds for each topic, less what has passed.
        assert 70_000 < longer_ms <= 100_001, address
