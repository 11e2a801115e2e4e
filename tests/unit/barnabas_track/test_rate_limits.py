"""BT-6: addresses are cut to their network before anything is counted."""

from __future__ import annotations

import pytest
from starlette.types import Scope

from barnabas_track.rate_limits import RateLimits, network_of


def request_from(address: str, forwarded: str = "") -> Scope:
    headers = [(b"x-forwarded-for", forwarded.encode())] if forwarded else []
    return {"type": "http", "client": (address, 50_000), "headers": headers}


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.77", "192.0.2.0"),
        ("::ffff:192.0.2.77", "192.0.2.0"),
        ("2001:db8:1:2::3", "2001:db8:1::"),
        ("fe80::1%eth0", "fe80::"),
        ("::1", "::"),
        ("forged\n", ""),
        ("192.0.2.1\0", ""),
        ("192.0.2", "192.0.2.0.1"),
        (":", ""),
        ("", ""),
    ],
)
def test_an_address_is_cut_to_its_network(address: str, network: str) -> None:
    assert network_of(address) == network_of(network)


def test_neighbours_share_a_network_and_others_do_not() -> None:
    addresses = ["192.0.2.1", "192.0.3.1", "2001:db8:1::1", "2001:db8:2::1", "no address"]
    assert len({network_of(each) for each in addresses}) == len(addresses)
    assert [len(network_of(each)) for each in addresses] == [3, 3, 6, 6, 0]


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
