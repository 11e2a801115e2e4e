"""Addresses in what gets shared: the network stays, the rest does not."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas_pipeline.page.addresses import mask_addresses, mask_column


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('198.51.100.23 - - [17/May/2015:10:00:05 +0000] "GET', "198.51.100.x"),
        ("http://198.51.100.23:8080/a", "http://198.51.100.x:8080/a"),
        ("from 198.51.100.23.", "from 198.51.100.x."),
        ("ec2-198-51-100-23.example.net", "ec2-198-51-100-x.example.net"),
        ("2001:db8:85a3::8a2e:370:7334 - -", "2001:db8:85a3::x - -"),
        ("http://[2001:DB8:85A3:1:2:3:4:5]/", "http://[2001:db8:85a3::x]/"),
        ("2001:db8::1.", "2001:db8::x."),
        ("::ffff:198.51.100.23", "::ffff:198.51.100.x"),
        ("2001:db8:85a3:1:2", "2001:db8:85a3::x"),  # cut off
        ("198.51.100", "198.51.100"),
    ],
)
def test_only_the_network_stays(text: str, expected: str) -> None:
    assert mask_addresses(text).startswith(expected)


@pytest.mark.parametrize(
    "text",
    [
        *("10:00:05", "[17/May/2015:10:00:05 +0000]", "/a/b.html?t=1:2", "2026-03-02", ""),
        *("std::vector", "12:30", "localhost:9092", "1,234,567", "/blog/2015-05-17-08"),
    ],
)
def test_nothing_else_is_changed(text: str) -> None:
    assert mask_addresses(text) == text


@given(st.integers(0, 2**32 - 1), st.sampled_from([" ", "/", '"', "[", "x=", ":8080 "]))
def test_no_ipv4_address_is_left_whole(number: int, beside: str) -> None:
    address = str(IPv4Address(number))
    assert mask_addresses(f"{beside}{address}{beside}") == (
        f"{beside}{address.rpartition('.')[0]}.x{beside}"
    )


@given(st.integers(0, 2**128 - 1), st.booleans())
def test_of_an_ipv6_address_48_bits_stay(number: int, is_whole: bool) -> None:
    address = IPv6Address(number)
    text = mask_addresses(f"[{address.exploded if is_whole else address}]").strip("[]")
    assert text.endswith(":x")
    kept = ip_address(text.removesuffix("x") if text.endswith("::x") else text[:-1] + ":")
    assert int(kept) == number >> 80 << 80


def test_columns() -> None:
    texts = pl.Series(["/a", None, "198.51.100.23", "198.51.100.99", "[2001:db8::1]"])
    assert mask_column(texts).to_list() == [
        *("/a", None, "198.51.100.x", "198.51.100.x", "[2001:db8::x]")
    ]
    assert mask_column(texts[:2]).to_list() == ["/a", None]
