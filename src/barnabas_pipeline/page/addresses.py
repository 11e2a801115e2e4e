"""Reduces network addresses to their networks, in text that will be shared. Pure.

    198.51.100.23                 198.51.100.x         the first 24 of 32 bits
    2001:db8:85a3::8a2e:370:7334  2001:db8:85a3::x     the first 48 of 128

Malformed lines often end within an address, so partial addresses are also masked. Text that merely
looks like an address, such as a four-part version number, also has its end masked.
"""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv6Address, IPv6Network
from typing import Final

import polars as pl

_IPV4: Final = re.compile(r"(?<![\d.])(\d{1,3}\.\d{1,3}\.\d{1,3}\.)\d{1,3}(?!\d|\.\d)")
# Host names that providers assign to customers' addresses contain these separators.
_DASHED: Final = re.compile(r"(?<!\d)(\d{1,3}-\d{1,3}-\d{1,3}-)\d{1,3}(?!\d|-\d)")
_IPV6: Final = re.compile(
    r"(?<![\w:.])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?![\w:]|\.\d)", re.ASCII
)
_TIME: Final = re.compile(r"(?:\d{4}:)?\d{1,2}:\d\d:\d\d")
_PREFIX_BITS: Final = 48
_PREFIX_GROUPS: Final = 3
# A text without a match contains no address. This is used for whole columns.
_SUSPECT: Final = r"\d[.-]\d{1,3}[.-]\d|:[0-9A-Fa-f]{0,4}:"


def mask_addresses(text: str) -> str:
    """Hide the ends of the addresses in a text."""
    return _IPV6.sub(_mask_ipv6, _DASHED.sub(r"\1x", _IPV4.sub(r"\1x", text)))


def mask_column(texts: pl.Series) -> pl.Series:
    """Mask the addresses in a column of strings; nulls stay null."""
    suspect = texts.filter(texts.str.contains(_SUSPECT).fill_null(False)).unique()
    known = {text: mask_addresses(text) for text in suspect}
    return texts.replace(list(known), list(known.values())) if known else texts


def _mask_ipv6(found: re.Match[str]) -> str:
    text = found[0]
    if _TIME.fullmatch(text):
        return text
    try:
        network = IPv6Network((IPv6Address(text), _PREFIX_BITS), strict=False)
    except AddressValueError:
        # This is a partial address. If it has few groups, there is nothing to hide.
        groups = text.split(":")
        if len(groups) <= _PREFIX_GROUPS:
            return text
        return ":".join(groups[:_PREFIX_GROUPS]) + "::x"
    return f"{network.network_address}x"
