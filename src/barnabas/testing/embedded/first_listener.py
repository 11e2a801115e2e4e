"""The first listener of an embedded broker: its clients connect there, and its port stays. Pure."""

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
"""Is where a client on this machine reaches a listener that is bound to all of its addresses."""


def address(config: Mapping[str, str], port: int) -> str:
    """HOST:PORT for clients of the broker that has this config and this port."""
    return f"{_host(config)}:{port}"


def with_port(properties: Mapping[str, str], port: int) -> dict[str, str]:
    """The properties, with the port of an earlier life in place of any free one (0)."""
    text = properties[_LISTENERS]
    first, comma, others = text.partition(",")
    name, colon, number = first.rpartition(":")
    # A port that the test has chosen stays.
    if number.strip() != "0":
        return dict(properties)
    return {**properties, _LISTENERS: f"{name}{colon}{port}{comma}{others}"}


def _host(config: Mapping[str, str]) -> str:
    if not config.get(_LISTENERS, "").strip():
        return _THIS_MACHINE
    host = parse_listeners(_LISTENERS, config[_LISTENERS])[0].host
    return _HOSTS.get(host, f"[{host}]" if ":" in host else host)
