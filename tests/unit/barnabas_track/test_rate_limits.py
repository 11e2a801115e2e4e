"""BT-6: addresses are cut to their network before anything is counted."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from barnabas_track.rate_limits import RateLimits, network_of


def request_from(address: str, forwarded: str = "") -> Request:
    headers = [(b"x-forwarded-for", forwarded.encode())] if forwarded else []
    return Request({"type": "http", "client": (address, 50_000), "headers": headers})


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.77", "192.0.2.0/24"),
        ("::ffff:192.0.2.77", "192.0.2.0/24"),
        ("2001:db8:1:2::3", "2001:db8:1::/48"),
        ("fe80::1%eth0", "fe80::/48"),
        ("forged\n", "unknown"),
        ("", "unknown"),
    ],
)
def test_an_address_is_cut_to_its_network(address: str, network: str) -> None:
    assert network_of(address) == network


def test_the_least_recent_network_is_forgotten() -> None:
    limits = RateLimits(0.001, most_networks=2)
    while not limits.wait_s(request_from("192.0.2.1")):
        pass
    assert limits.wait_s(request_from("192.0.2.2")) > 900
    assert limits.wait_s(request_from("198.51.100.1")) == 0
    assert limits.wait_s(request_from("203.0.113.1")) == 0
    assert limits.wait_s(request_from("192.0.2.1")) == 0


def test_a_forwarded_address_counts_only_if_it_is_trusted() -> None:
    limits = RateLimits(0.001)
    while not limits.wait_s(request_from("192.0.2.1")):
        pass
    assert limits.wait_s(request_from("192.0.2.1", "198.51.100.1")) > 900
