"""How fast an address may open connections."""

from __future__ import annotations

import pytest

from barnabas import Broker
from barnabas.broker.quotas.ip_quotas import IpQuotas
from barnabas.broker.quotas.measures import Windows
from barnabas.cluster.config_changes import DEFAULT
from tests.kit.broker.quota_calls import set_quotas
from tests.kit.raw_client import RawClient


def test_se_5_an_address_has_its_own_rate_or_that_of_all() -> None:
    quotas = IpQuotas(Windows())
    assert not quotas.is_active
    quotas.set(DEFAULT, 1.0)
    quotas.set("10.0.0.1", 2.0)
    assert quotas.is_active

    def admitted(address: str) -> int:
        return sum(quotas.throttle_ms(address, 0) == 0 for _ in range(50))

    assert (admitted("10.0.0.1"), admitted("10.0.0.2")) == (20, 10)
    assert quotas.throttle_ms("10.0.0.2", 0) == 1_000  # one whole connection at one per second


def test_se_5_a_connection_that_comes_too_fast_does_not_count() -> None:
    quotas = IpQuotas(Windows())
    quotas.set("10.0.0.1", 1.0)
    for _ in range(10):
        assert quotas.throttle_ms("10.0.0.1", 0) == 0
    for _ in range(100):
        assert quotas.throttle_ms("10.0.0.1", 500) > 0
    assert quotas.throttle_ms("10.0.0.1", 11_000) == 0


def test_se_5_an_address_without_a_limit_is_not_throttled() -> None:
    quotas = IpQuotas(Windows())
    quotas.set("10.0.0.1", 0.0)
    quotas.set("10.0.0.1", None)
    quotas.set("10.0.0.2", 0.0)
    assert quotas.throttle_ms("10.0.0.1", 0) == 0
    assert quotas.throttle_ms("10.0.0.2", 0) == 1_000


def test_se_5_a_throttled_connection_is_closed_unread() -> None:
    with Broker() as broker, RawClient(broker.bootstrap_servers) as client:
        set_quotas(client, {"ip": "127.0.0.1"}, connection_creation_rate=1.0)
        others = [RawClient(broker.bootstrap_servers) for _ in range(12)]
        try:
            assert others[-1].is_closed_by_peer()
            set_quotas(client, {"ip": "127.0.0.1"}, connection_creation_rate=None)
            with RawClient(broker.bootstrap_servers) as free:
                set_quotas(free, {"ip": None}, connection_creation_rate=None)
        finally:
            for other in others:
                other.close()


@pytest.mark.parametrize("limit", [0.5, 3.0])
def test_se_5_the_rate_over_a_minute_is_the_limit(limit: float) -> None:
    quotas = IpQuotas(Windows())
    quotas.set("a", limit)
    admitted = sum(quotas.throttle_ms("a", now_ms) == 0 for now_ms in range(0, 60_000, 50))
    assert admitted == pytest.approx(60 * limit, rel=0.25)
