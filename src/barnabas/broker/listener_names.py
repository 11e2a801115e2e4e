"""Determines each listener's security protocol, and which listeners brokers and controllers use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.errors import ConfigError
from barnabas.security.protocol import SecurityProtocol

if TYPE_CHECKING:
    from barnabas.config import BrokerConfig

_PROTOCOLS = ", ".join(each.value for each in SecurityProtocol)


def security_protocols(config: BrokerConfig) -> dict[str, SecurityProtocol]:
    """Return the protocols in `listener.security.protocol.map`, keyed by listener name."""
    protocols = {}
    for entry in config.list("listener.security.protocol.map"):
        name, _, protocol = (part.strip().upper() for part in entry.partition(":"))
        try:
            protocols[name] = SecurityProtocol(protocol)
        except ValueError:
            raise ConfigError(
                f"listener.security.protocol.map: {entry!r} is not NAME:PROTOCOL, where "
                f"PROTOCOL is one of {_PROTOCOLS}"
            ) from None
    return protocols


def inter_broker_listener(config: BrokerConfig) -> tuple[str, SecurityProtocol]:
    """Return the listener that brokers use to connect to each other, with its protocol.

    This is the listener named in `inter.broker.listener.name` or, if that is not set, the listener
    named after the protocol in `security.inter.broker.protocol`. Raises ConfigError.
    """
    name = config.str("inter.broker.listener.name").upper()
    if not name:
        text = config.str("security.inter.broker.protocol").upper()
        try:
            return text, SecurityProtocol(text)
        except ValueError:
            raise ConfigError(
                f"security.inter.broker.protocol: {text!r} is not one of {_PROTOCOLS}"
            ) from None
    if config.is_set("security.inter.broker.protocol"):
        raise ConfigError(
            "inter.broker.listener.name and security.inter.broker.protocol are both set; set "
            "only one of them"
        )
    protocol = security_protocols(config).get(name)
    if protocol is None:
        raise ConfigError(
            f"inter.broker.listener.name: {name} has no entry in listener.security.protocol.map"
        )
    return name, protocol


def control_plane_listener(config: BrokerConfig) -> str:
    """Return the listener that controllers use, or "" if they use the inter-broker listener."""
    return config.str("control.plane.listener.name").upper()
