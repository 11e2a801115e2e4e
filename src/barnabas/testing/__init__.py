"""Provides tools for testing with a broker: pytest fixtures, waits and snapshots. See
`docs/testing.md`.

    def test_orders(barnabas_broker):
        orders = barnabas_broker.topic("orders")
        orders.send(b"one")
        assert orders.values() == [b"one"]

The names below are public. They are loaded on first use, because every pytest run imports this
package once it is installed.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from barnabas.testing.embedded.broker import Broker
    from barnabas.testing.embedded.cluster import Cluster
    from barnabas.testing.embedded.group import Group
    from barnabas.testing.embedded.handle import BrokerHandle
    from barnabas.testing.embedded.snapshot import Snapshot
    from barnabas.testing.embedded.topic import Topic
    from barnabas.testing.embedded.waiting import WaitTimeout
    from barnabas.testing.faults.rule import RuleNotHit
    from barnabas.testing.remote_broker import RemoteBroker

__all__ = [
    "Broker",
    "BrokerHandle",
    "Cluster",
    "Group",
    "RemoteBroker",
    "RuleNotHit",
    "Snapshot",
    "Topic",
    "WaitTimeout",
]

_HOMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Broker": "barnabas.testing.embedded.broker",
        "BrokerHandle": "barnabas.testing.embedded.handle",
        "Cluster": "barnabas.testing.embedded.cluster",
        "Group": "barnabas.testing.embedded.group",
        "RemoteBroker": "barnabas.testing.remote_broker",
        "RuleNotHit": "barnabas.testing.faults.rule",
        "Snapshot": "barnabas.testing.embedded.snapshot",
        "Topic": "barnabas.testing.embedded.topic",
        "WaitTimeout": "barnabas.testing.embedded.waiting",
    }
)


def __getattr__(name: str) -> Any:
    # PEP 562: called for names that are not loaded yet.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
