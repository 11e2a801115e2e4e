"""Metrics of clients with a quota."""

from __future__ import annotations

import re

from barnabas import Broker
from barnabas.broker.metrics.page import page
from barnabas.broker.metrics.quota_families import quota_families
from barnabas.broker.quotas.client_quotas import ClientQuotas
from barnabas.broker.quotas.entity import Entity, encoded
from barnabas.clock import SystemClock
from barnabas.config import BrokerConfig
from barnabas.metrics import text
from barnabas.protocol.api import CREATE_TOPICS, PRODUCE
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.kit.broker.loops import inside
from tests.kit.broker.produces import produce_request
from tests.kit.broker.quota_calls import set_quotas
from tests.kit.broker.topics import create
from tests.kit.raw_client import RawClient, batch


def samples_of(broker: Broker) -> dict[str, float]:
    server = broker.server
    assert server is not None
    lines = inside(broker, lambda: page(server.node, server.parts.partitions.proposals, None))
    found = re.findall(r"^kafka_server_quota_(\S+) (\S+)$", lines.decode(), re.MULTILINE)
    return {name: float(value) for name, value in found}


def labelled(resource: str) -> str:
    return f'resource="{resource}",user="",clientId="raw"'


def test_se_5_a_client_above_its_quota_is_seen_in_the_metrics() -> None:
    with Broker() as broker, RawClient(broker.bootstrap_servers) as client:
        create(client, "t", 1)
        assert samples_of(broker) == {}
        quotas = {"producer_byte_rate": 100.0, "controller_mutation_rate": 0.01}
        set_quotas(client, {"client-id": None}, **quotas)
        wanted = CreatableTopic(name="u", num_partitions=3, replication_factor=1)
        client.call(CREATE_TOPICS, 6, CreateTopicsRequest(topics=[wanted], timeout_ms=60_000))
        assert -3 < samples_of(broker)[f"tokens{{{labelled('ControllerMutation')}}}"] < -2
    with Broker() as broker, RawClient(broker.bootstrap_servers) as client:
        create(client, "t", 1)
        set_quotas(client, {"client-id": None}, producer_byte_rate=100.0)
        request = produce_request("t", {0: batch(bytes(20_000))})
        throttle_ms = client.call(PRODUCE, 9, request).throttle_time_ms
        found = samples_of(broker)
        labels = labelled("Produce")
        assert found.keys() == {f"byte_rate{{{labels}}}", f"throttle_time{{{labels}}}"}
        assert 500 < found[f"byte_rate{{{labels}}}"] < 3_000
        assert throttle_ms - 60_000 < found[f"throttle_time{{{labels}}}"] <= throttle_ms


def test_se_5_a_page_has_a_thousand_clients_at_most() -> None:
    quotas = ClientQuotas(BrokerConfig({}), SystemClock())
    quotas.set(Entity(client_id=encoded(None)), {"producer_byte_rate": 1.0})
    for number in range(1_200):
        limits = quotas.of("ANONYMOUS", f"c{number}")
        assert limits is not None and limits.produce is not None
        limits.produce.count(1, number)
    lines = text(quota_families(quotas, 2_000)).splitlines()
    rates = [each for each in lines if each.startswith("kafka_server_quota_byte_rate{")]
    assert len(rates) == 1_000
    assert not any('clientId="c199"' in each for each in rates)
