"""SE-5: what clients with quotas do can be seen, under Kafka's names, and in bounded numbers."""

from __future__ import annotations

import sys

import pytest

from barnabas import Broker
from barnabas.broker.quotas.entity import Entity
from barnabas.broker.quotas.ip_quotas import IpQuotas
from barnabas.broker.quotas.measures import Windows
from barnabas.broker.quotas.quota_families import MOST_SHOWN, quota_families
from barnabas.cluster.config_changes import DEFAULT
from barnabas.net.metrics_page import text
from barnabas.protocol.api import PRODUCE
from tests.kit.broker.metric_pages import samples_of
from tests.kit.broker.produces import produce_request
from tests.kit.broker.quota_calls import RAW, Parts, client_quotas, created_strictly, set_quotas
from tests.kit.broker.topics import create
from tests.kit.raw_client import RawClient, batch


def samples(broker: Broker) -> dict[str, float]:
    """Those of quotas, by name and labels."""
    wanted = ("kafka_server_quota_", "kafka_server_socket_server_metrics_connection_accept_rate")
    found = samples_of(broker)
    return {name: found[name] for name in found if name.startswith(wanted)}


def test_se_5_rates_and_throttle_times_are_seen_once_there_is_a_quota() -> None:
    with Broker() as broker, RawClient(broker.bootstrap_servers) as client:
        create(client, "t")
        assert samples(broker) == {}
        user: Parts = {"user": "ANONYMOUS"}
        set_quotas(client, RAW, controller_mutation_rate=0.01)
        set_quotas(client, user, producer_byte_rate=100.0, request_percentage=1000.0)
        set_quotas(client, {"ip": None}, connection_creation_rate=1_000.0)
        client.call(PRODUCE, 9, produce_request("t", {0: batch(bytes(20_000))}, 1))
        with RawClient(broker.bootstrap_servers) as other:
            created_strictly(other, "u")
        with RawClient(broker.bootstrap_servers) as other:
            created_strictly(other, "v")
        found = samples(broker)
        produce = '{resource="Produce",user="ANONYMOUS"}'
        assert 1_000 < found[f"kafka_server_quota_byte_rate{produce}"] < 2_500
        assert found[f"kafka_server_quota_throttle_time{produce}"] > 60_000
        request = '{resource="Request",user="ANONYMOUS"}'
        assert found[f"kafka_server_quota_request_time{request}"] > 0
        assert found[f"kafka_server_quota_throttle_time{request}"] == 0
        mutation = '{resource="ControllerMutation",clientId="raw"}'
        assert -1 < found[f"kafka_server_quota_tokens{mutation}"] < 0
        assert 0 < found[f"kafka_server_quota_mutation_rate{mutation}"] < 1
        assert found[f"kafka_server_quota_throttle_time{mutation}"] > 60_000
        accepted = 'kafka_server_socket_server_metrics_connection_accept_rate{ip="127.0.0.1"}'
        assert 0 < found[accepted] < 1
        with RawClient(broker.bootstrap_servers) as other:
            set_quotas(other, RAW, controller_mutation_rate=None)
            set_quotas(other, user, producer_byte_rate=None, request_percentage=None)
            set_quotas(other, {"ip": None}, connection_creation_rate=None)
        assert samples(broker) == {}


def test_se_5_invented_client_ids_do_not_make_series_without_end() -> None:
    quotas, ip_quotas = client_quotas(), IpQuotas(Windows())
    quotas.set(Entity("", DEFAULT), {"producer_byte_rate": 1.0})
    ip_quotas.set(DEFAULT, 1.0)
    for number in range(MOST_SHOWN + 10):
        limits = quotas.of("ANONYMOUS", f"c {number}")
        assert limits is not None and limits.produce is not None
        limits.produce.record(1, number)
        ip_quotas.throttle_ms(f"10.0.{number >> 8}.{number & 255}", number)
    families = {each.name: each for each in quota_families(quotas, ip_quotas, MOST_SHOWN)}
    assert {name: len(list(each.samples)) for name, each in families.items()} == {
        "kafka_server_quota_byte_rate": MOST_SHOWN,
        "kafka_server_quota_throttle_time": MOST_SHOWN,
        "kafka_server_socket_server_metrics_connection_accept_rate": MOST_SHOWN,
    }
    page = text(families.values())
    assert f'clientId="c {MOST_SHOWN + 9}"' in page and 'clientId="c 0"' not in page


def test_a_broker_without_quotas_loads_nothing_for_their_metrics(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "barnabas.broker.quotas.quota_families", raising=False)
    with Broker() as broker:
        assert samples(broker) == {}
    assert "barnabas.broker.quotas.quota_families" not in sys.modules
