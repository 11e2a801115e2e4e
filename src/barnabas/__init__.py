"""A replicated commit log that speaks Apache Kafka's wire protocol.

`Broker` runs a broker inside this process or beside it, `Cluster` several of them;
`barnabas.client` contains the clients, `barnabas.testing` the tools for tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas._version import __version__

if TYPE_CHECKING:
    from barnabas import client, testing
    from barnabas.testing.embedded.broker import Broker
    from barnabas.testing.embedded.cluster import Cluster

__all__ = ["Broker", "Cluster", "__version__", "client", "testing"]


def __getattr__(name: str) -> Any:
    # Lazy, so that a client or the command line does not pay for the broker at import.
    if name == "Broker":
        from barnabas.testing.embedded.broker import Broker

        return Broker
    if name == "Cluster":
        from barnabas.testing.embedded.cluster import Cluster

        return Cluster
    # This documents barnabas.testing.RemoteBroker, for example, after just `import barnabas`.
    if name == "client":
        import barnabas.client

        return barnabas.client
    if name == "testing":
        import barnabas.testing

        return barnabas.testing
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
