"""SE-5: topics that requests bring into being count, and only changes of topics are refused."""

from __future__ import annotations

import pytest

from barnabas import Broker
from barnabas.errors import NONE, ThrottlingQuotaExceeded
from barnabas.protocol.api import FIND_COORDINATOR
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.kit.broker.quota_calls import RAW, created_strictly, mentioned, set_quotas
from tests.kit.raw_client import RawClient

RATE = 0.01  # so low that a slow machine changes nothing
CONFIG = {"offsets.topic.num.partitions": "4", "num.partitions": "2"}


def by_metadata(client: RawClient) -> None:
    answer = mentioned(client, "a", "b", "a")
    assert [topic.error_code for topic in answer.topics] == [NONE, NONE]
    assert answer.throttle_time_ms == 0
    assert mentioned(client, "a", "b").throttle_time_ms == 0  # those are there already


def by_looking_for_a_coordinator(client: RawClient) -> None:
    answer = client.call(FIND_COORDINATOR, 3, FindCoordinatorRequest(key="g"))
    assert (answer.error_code, answer.throttle_time_ms) == (NONE, 0)


@pytest.mark.parametrize("use", [by_metadata, by_looking_for_a_coordinator])
def test_se_5_what_a_request_has_created_counts(use: object) -> None:
    assert callable(use)
    with Broker(config=CONFIG) as broker, RawClient(broker.bootstrap_servers) as client:
        set_quotas(client, RAW, controller_mutation_rate=RATE)
        use(client)
        refused = created_strictly(client, "c")
        assert refused.topics[0].error_code == ThrottlingQuotaExceeded.code
        # Four partitions, less the burst of eleven seconds.
        assert 350_000 < refused.throttle_time_ms <= 400_000


def test_se_5_a_topic_that_cannot_be_created_does_not_count() -> None:
    config = {**CONFIG, "default.replication.factor": "3"}
    with Broker(config=config) as broker, RawClient(broker.bootstrap_servers) as client:
        set_quotas(client, RAW, controller_mutation_rate=RATE)
        assert mentioned(client, "a").topics[0].error_code != NONE
        answer = created_strictly(client, "c")
        assert (answer.topics[0].error_code, answer.throttle_time_ms) == (NONE, 0)
