"""Limits the rate of requests per network.

An address is reduced to its network (/24 for IPv4, /48 for IPv6) and hashed with a salt that exists
only in memory and changes daily, so what is remembered here cannot be traced to anyone.
"""

from __future__ import annotations

import hashlib
import logging
import math
import secrets
import socket
import time
from collections import OrderedDict
from typing import Final, NamedTuple

from starlette.types import Scope

_log = logging.getLogger(__name__)

MOST_NETWORKS: Final = 50_000
_DAY_S: Final = 86_400
_BURST_S: Final = 10
_SALT_BYTES: Final = 16
_HASH_BYTES: Final = 8
_MAPPED: Final = bytes(10) + b"\xff\xff"
"""The beginning of an IPv6 address that stands for an IPv4 address."""


class _Bucket(NamedTuple):
    """The number of requests that a network may still send, and the time of its last request."""

    left: float
    at_s: float


class RateLimits:
    """Counts the requests from each network. `rate` is the number of requests allowed per second;
    up to ten seconds' worth may arrive at once.

    `trust_forwarded`: whether to use the last address in X-Forwarded-For, which the nearest proxy
    has added, as the client's address. Without it, all clients behind a proxy share one limit, so
    the log then says once what to do.
    """

    def __init__(
        self, rate: float, *, trust_forwarded: bool = False, most_networks: int = MOST_NETWORKS
    ) -> None:
        self._rate = rate
        self._trust_forwarded = trust_forwarded
        self._most_networks = most_networks
        self._has_warned = trust_forwarded
        self._day = -1
        self._salt = b""
        # The least recently used bucket is the first one.
        self._buckets: OrderedDict[bytes, _Bucket] = OrderedDict()

    def wait_s(self, scope: Scope) -> int:
        """Count a request. Return 0 if it is allowed, or the number of seconds to wait before
        trying again.
        """
        day = int(time.time() // _DAY_S)
        if day != self._day:
            self._day = day
            self._salt = secrets.token_bytes(_SALT_BYTES)
            self._buckets.clear()
        address = client_address(scope, trust_forwarded=self._trust_forwarded)
        network = hashlib.blake2b(
            network_of(address), digest_size=_HASH_BYTES, key=self._salt
        ).digest()
        wait_s = math.ceil(self._count(network, time.monotonic()))
        if wait_s and not self._has_warned and _last_forwarded(scope):
            self._has_warned = True
            _log.warning(
                "requests through a proxy were refused, because they share the limit of %g per"
                " second (--rate): with --trust-forwarded, each network has its own limit",
                self._rate,
            )
        return wait_s

    def _count(self, network: bytes, now_s: float) -> float:
        most = max(1.0, self._rate * _BURST_S)
        left, at_s = self._buckets.pop(network, _Bucket(most, now_s))
        left = min(most, left + (now_s - at_s) * self._rate)
        is_allowed = left >= 1
        if len(self._buckets) >= self._most_networks:
            self._buckets.popitem(last=False)
        self._buckets[network] = _Bucket(left - is_allowed, now_s)
        return 0 if is_allowed else (1 - left) / self._rate


def client_address(scope: Scope, *, trust_forwarded: bool) -> str:
    """Return the address from which a request was sent, or "" if it is not known.

    `trust_forwarded`: whether the nearest proxy has added it to X-Forwarded-For.
    """
    client = scope["client"]
    address = "" if client is None else client[0]
    return _last_forwarded(scope) or address if trust_forwarded else address


def network_of(address: str) -> bytes:
    """Return the network of an address: /24 for IPv4, /48 for IPv6. All invalid addresses share one
    network.
    """
    plain, _, _ = address.partition("%")  # without the zone of an IPv6 address
    try:
        if ":" not in plain:
            return socket.inet_pton(socket.AF_INET, plain)[:3]
        found = socket.inet_pton(socket.AF_INET6, plain)
    except (OSError, ValueError):
        return b""
    if found.startswith(_MAPPED):
        return found[len(_MAPPED) :][:3]
    return found[:6]


def _last_forwarded(scope: Scope) -> str:
    values = [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
    return b",".join(values).rpartition(b",")[2].strip().decode("latin-1")
