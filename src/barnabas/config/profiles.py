"""Named sets of broker defaults: what another version of Kafka does without a setting.

They stand below every other source, so that a properties file, the environment and the command line
prevail over them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from barnabas.errors import ConfigError

PROFILES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        # Those of Kafka 2.3's defaults that differ from 3.9's and have an effect here.
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
    """The settings of a profile. Raises ConfigError for an unknown name, with the known ones."""
    if name not in PROFILES:
        raise ConfigError(f"{name!r} is no profile; there is {', '.join(PROFILES)}")
    return PROFILES[name]
