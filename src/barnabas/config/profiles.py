"""Defines named sets of broker defaults, which are taken from other versions of Kafka.

They are overridden by all other sources: properties files, the environment and the command line.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from barnabas.errors import ConfigError

PROFILES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        # The defaults of Kafka 2.3 that differ from those of 3.9 and have an effect in Barnabas.
        "kafka-2.3": MappingProxyType(
            {
                "inter.broker.protocol.version": "2.3-IV1",
                "message.max.bytes": "1000012",
                "replica.lag.time.max.ms": "10000",
                "zookeeper.session.timeout.ms": "6000",
            }
        ),
    }
)


def profile(name: str) -> Mapping[str, str]:
    """Return the settings of a profile.

    If there is no such profile, raises ConfigError, which lists all profiles.
    """
    if name not in PROFILES:
        raise ConfigError(f"{name!r} is not a profile; use {', '.join(PROFILES)}")
    return PROFILES[name]
