"""A replicated commit log that speaks Apache Kafka's wire protocol.

`Broker` runs a broker inside this process or beside it, `Cluster` several of them;
`barnabas.client` has the clients, `barnabas.testing` what tests need.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas import client, testing
    from barnabas.broker.embedded.broker import Broker
    from barnabas.broker.embedded.cluster import Cluster

__all__ = ["Broker", "Cluster", "__version__", "client", "testing"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # Lazy, so that a client or the command line does not pay for the broker at import.
    if name == "Broker":
        from barnabas.broker.embedded.broker import Broker

        return Broker
    if name == "Cluster":
        from barnabas.broker.embedded.cluster import Cluster

        return Cluster
    if name in ("client", "testing"):  # documented as barnabas.testing.RemoteBroker, for one
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
