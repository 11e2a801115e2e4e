"""Handles the first listener of an embedded broker. Clients connect to this listener, and its port
stays the same. This module is pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.broker.network.listeners import parse_listeners

_LISTENERS: Final = "listeners"
_THIS_MACHINE: Final = "127.0.0.1"
_HOSTS: Final[Mapping[str, str]] = {
    "": _THIS_MACHINE,
    "0.0.0.0": _THIS_MACHINE,
    "localhost": _THIS_MACHINE,
    "::": "[::1]",
}
"""Maps addresses that mean "all addresses" to addresses that a client on this machine can use."""


def address(config: Mapping[str, str], port: int) -> str:
    """Return the HOST:PORT at which clients reach a broker with this config and port."""
    return f"{_host(config)}:{port}"


def with_port(properties: Mapping[str, str], port: int) -> dict[str, str]:
    """Return the properties with port 0 ("any free port") replaced by the port that was used
    before.
    """
    text = properties[_LISTENERS]
    first, comma, others = text.partition(",")
    name, colon, number = first.rpartition(":")
    # Keep a port chosen by the test.
    if number.strip() != "0":
        return dict(properties)
    return {**properties, _LISTENERS: f"{name}{colon}{port}{comma}{others}"}


def _host(config: Mapping[str, str]) -> str:
    if not config.get(_LISTENERS, "").strip():
        return _THIS_MACHINE
    host = parse_listeners(_LISTENERS, config[_LISTENERS])[0].host
    return _HOSTS.get(host, f"[{host}]" if ":" in host else host)
